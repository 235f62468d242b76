/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of functions of libraries that were closed before anybody wrote down where they were, or
 * whose place another one took: their addresses lead to no module, or to the wrong one. Which file
 * they are of is known nevertheless, from the record of their instrumentation.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/calls_private.h"
#include "analysis/instrumented_names.h"
#include "analysis/session_private.h"
#include "analysis/symbolize.h"
#include "binary/elf.h"

struct naming {
	const struct elf_file *file;
	uint64_t *offsets; /* in the file, ascending */
	uint64_t *vaddrs;
	uint32_t *regions; /* by offset */
	size_t count;
};

static bool holds(const struct model_module *module, uint64_t address)
{
	return address >= module->start && address < module->end;
}

bool instrumented_is_mapped(const struct session *session, const struct model_instrumented *module,
			    uint64_t address)
{
	bool found = false;

	for (uint32_t i = 0; i < session->module_count; i++) {
		const struct model_module *mapped = &session->modules[i];

		if (mapped->process != module->process || !holds(mapped, address))
			continue;
		if (strcmp(mapped->path, module->module) != 0)
			return false;
		found = true;
	}
	return found;
}

static bool offset_of(const struct elf_file *file, uint64_t vaddr, uint64_t *ret)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];

		if (segment->p_type == PT_LOAD && vaddr >= segment->p_vaddr &&
		    vaddr - segment->p_vaddr < segment->p_filesz) {
			*ret = vaddr - segment->p_vaddr + segment->p_offset;
			return true;
		}
	}
	return false;
}

/* Functions come first in a plan, by address. */
static void gather(struct naming *naming, const struct model_instrumented *module,
		   const struct process_calls *calls, const struct plan_functions *plan)
{
	for (uint32_t i = 0; i < plan->count && module->first_id + i < calls->limit; i++) {
		uint32_t region = calls->regions[module->first_id + i];
		uint64_t offset;

		if (plan->list[i].flags & (PLAN_FUNCTION_IS_LOOP | PLAN_FUNCTION_IS_BLOCK))
			return;
		if (region == MODEL_NONE ||
		    !offset_of(naming->file, plan->list[i].vaddr, &offset) ||
		    (naming->count && offset <= naming->offsets[naming->count - 1]))
			continue;
		naming->offsets[naming->count] = offset;
		naming->vaddrs[naming->count] = plan->list[i].vaddr;
		naming->regions[naming->count++] = region;
	}
}

/* Of a stripped file: as analysis/resolve.c names code by where its function begins. */
static const char *place_name(struct arena *arena, const char *path, uint64_t vaddr)
{
	const char *slash = strrchr(path, '/');
	char name[512];

	snprintf(name, sizeof(name), "[%.400s+0x%" PRIx64 "]", slash ? slash + 1 : path, vaddr);
	return arena_intern(arena, name);
}

static int take_names(struct session *session, const struct naming *naming, const char *path,
		      const struct symbolize_result *result)
{
	static const struct symbolize_frame unknown;
	struct arena *arena = &session_private(session)->arena;

	for (size_t i = 0; i < naming->count && i < result->chain_count; i++) {
		const struct symbolize_chain *chain = &result->chains[i];
		struct model_region *region = &session->regions->regions[naming->regions[i]];
		const struct symbolize_frame *frame = &unknown;
		const char *name;

		if (chain->count)
			frame = &result->frames[chain->first + chain->count - 1];
		name = frame->function ? arena_intern(arena, frame->function)
				       : place_name(arena, path, naming->vaddrs[i]);
		if (!name)
			return -ENOMEM;
		region->name = name;
		region->kind = SPOOL_REGION_NAMED; /* its address says nothing */
		region->address = 0;
		region->file = frame->file ? arena_intern(arena, frame->file) : NULL;
		region->line = frame->function_line;
	}
	return 0;
}

static int look_up(struct session *session, const struct model_instrumented *module,
		   const struct plan_functions *plan, const struct naming *naming)
{
	const struct session_options *options = &session_private(session)->options;
	struct symbolize_request request = {.path = module->module,
					    .build_id = plan->build_id,
					    .build_id_size = plan->build_id_size,
					    .offsets = naming->offsets,
					    .count = naming->count,
					    .inlines = options->inlines,
					    .debug_path = options->debug_path,
					    .symbol_cache = options->symbol_cache};
	struct symbolize_result result;
	struct problem problem;
	int error = symbolize_module(&request, &result, &problem);

	if (error)
		return error == -ENOMEM ? error : 0;
	error = take_names(session, naming, module->module, &result);
	symbolize_result_deinit(&result);
	return error;
}

int instrumented_name(struct session *session, const struct model_instrumented *module,
		      const struct process_calls *calls, const struct plan_functions *plan)
{
	struct naming naming = {0};
	struct elf_file *file;
	int error = 0;

	if (session_private(session)->options.unresolved_only ||
	    elf_open(module->module, &file, NULL))
		return 0;
	naming.file = file;
	naming.offsets = calloc((size_t)plan->count + 1, sizeof(*naming.offsets));
	naming.regions = calloc((size_t)plan->count + 1, sizeof(*naming.regions));
	naming.vaddrs = calloc((size_t)plan->count + 1, sizeof(*naming.vaddrs));
	if (!naming.offsets || !naming.regions || !naming.vaddrs)
		error = -ENOMEM;
	if (!error)
		gather(&naming, module, calls, plan);
	if (!error && naming.count)
		error = look_up(session, module, plan, &naming);
	free(naming.offsets);
	free(naming.vaddrs);
	free(naming.regions);
	elf_close(file);
	return error;
}
