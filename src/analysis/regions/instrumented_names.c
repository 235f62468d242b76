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

#include "analysis/regions/calls_private.h"
#include "analysis/regions/instrumented_names.h"
#include "analysis/session_private.h"
#include "analysis/symbols/symbols.h"
#include "binary/elf.h"

struct function_name_lookup_state {
	const struct elf_file *file;
	uint64_t *function_file_offsets; /* in the file, ascending */
	uint64_t *function_vaddrs;
	uint32_t *region_indices; /* by offset */
	size_t count;
};

static bool module_holds_address(const struct model_module *module, uint64_t address)
{
	return address >= module->start && address < module->end;
}

bool instrumented_module_is_sole_at_address(const struct session *session,
					    const struct model_instrumented_module *module,
					    uint64_t address)
{
	bool found = false;

	for (uint32_t i = 0; i < session->module_count; i++) {
		const struct model_module *mapped = &session->modules[i];

		if (mapped->process != module->process || !module_holds_address(mapped, address))
			continue;
		if (strcmp(mapped->path, module->module) != 0)
			return false;
		found = true;
	}
	return found;
}

static bool vaddr_to_file_offset(const struct elf_file *file, uint64_t vaddr, uint64_t *ret)
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
static void gather_function_offsets(struct function_name_lookup_state *naming,
				    const struct model_instrumented_module *module,
				    const struct calls_of_process *calls,
				    const struct plan_functions *plan)
{
	for (uint32_t i = 0; i < plan->count && module->first_id + i < calls->limit; i++) {
		uint32_t region = calls->regions[module->first_id + i];
		uint64_t offset;

		if (plan->list[i].flags & (PLAN_FUNCTION_IS_LOOP | PLAN_FUNCTION_IS_BLOCK))
			return;
		if (region == MODEL_ENTRY_INDEX_NONE ||
		    !vaddr_to_file_offset(naming->file, plan->list[i].vaddr, &offset) ||
		    (naming->count && offset <= naming->function_file_offsets[naming->count - 1]))
			continue;
		naming->function_file_offsets[naming->count] = offset;
		naming->function_vaddrs[naming->count] = plan->list[i].vaddr;
		naming->region_indices[naming->count++] = region;
	}
}

/* The name in a stripped file, as analysis/symbols/resolve.c names code by where its function
 * begins. */
static const char *format_name_by_address(struct arena *arena, const char *path, uint64_t vaddr)
{
	const char *slash = strrchr(path, '/');
	char name[512];

	snprintf(name, sizeof(name), "[%.400s+0x%" PRIx64 "]", slash ? slash + 1 : path, vaddr);
	return arena_intern_string(arena, name);
}

static int set_resolved_names(struct session *session,
			      const struct function_name_lookup_state *naming, const char *path,
			      const struct symbolizer_request_result *result)
{
	static const struct symbolizer_frame unknown;
	struct arena *arena = &session_get_private(session)->arena;

	for (size_t i = 0; i < naming->count && i < result->chain_count; i++) {
		const struct symbolizer_frame_chain *chain = &result->chains[i];
		struct model_region *region =
			&session_get_regions(session)->regions[naming->region_indices[i]];
		const struct symbolizer_frame *frame = &unknown;
		const char *name;

		if (chain->count)
			frame = &result->frames[chain->first + chain->count - 1];
		name = frame->function
			       ? arena_intern_string(arena, frame->function)
			       : format_name_by_address(arena, path, naming->function_vaddrs[i]);
		if (!name)
			return -ENOMEM;
		region->name = name;
		region->kind = SPOOL_REGION_NAMED; /* its address says nothing */
		region->address = 0;
		region->file = frame->file ? arena_intern_string(arena, frame->file) : NULL;
		region->line = frame->function_line;
	}
	return 0;
}

static int symbolize_and_set_names(struct session *session,
				   const struct model_instrumented_module *module,
				   const struct plan_functions *plan,
				   const struct function_name_lookup_state *naming)
{
	const struct session_options *options = &session_get_private(session)->options;
	struct symbolizer_request request = {.path = module->module,
					     .build_id = plan->build_id,
					     .build_id_size = plan->build_id_size,
					     .offsets = naming->function_file_offsets,
					     .count = naming->count,
					     .with_inlines = options->with_inlines,
					     .debug_search_path = options->debug_search_path,
					     .symbol_cache_directory =
						     options->symbol_cache_directory};
	struct symbolizer_request_result result;
	struct problem problem;
	int error = symbolize_module(&request, &result, &problem);

	if (error)
		return error == -ENOMEM ? error : 0;
	error = set_resolved_names(session, naming, module->module, &result);
	symbolizer_result_deinit(&result);
	return error;
}

int instrumented_set_region_names(struct session *session,
				  const struct model_instrumented_module *module,
				  const struct calls_of_process *calls,
				  const struct plan_functions *plan)
{
	struct function_name_lookup_state naming = {0};
	struct elf_file *file;
	int error = 0;

	if (session_get_private(session)->options.skip_symbolizing ||
	    elf_open(module->module, &file, NULL))
		return 0;
	naming.file = file;
	naming.function_file_offsets =
		calloc((size_t)plan->count + 1, sizeof(*naming.function_file_offsets));
	naming.region_indices = calloc((size_t)plan->count + 1, sizeof(*naming.region_indices));
	naming.function_vaddrs = calloc((size_t)plan->count + 1, sizeof(*naming.function_vaddrs));
	if (!naming.function_file_offsets || !naming.region_indices || !naming.function_vaddrs)
		error = -ENOMEM;
	if (!error)
		gather_function_offsets(&naming, module, calls, plan);
	if (!error && naming.count)
		error = symbolize_and_set_names(session, module, plan, &naming);
	free(naming.function_file_offsets);
	free(naming.function_vaddrs);
	free(naming.region_indices);
	elf_close(file);
	return error;
}
