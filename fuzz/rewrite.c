/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Fuzzes the rewriter: whatever the file is, it is refused, or what comes out is a sound file of
 * the same kind that is known as rewritten.
 */
#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "binary/elf.h"
#include "binary/rewrite/rewrite.h"

#define PLAN_SIZE 8192u
#define STUB_SIZE 128u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One function, at the entry, whose first bytes change. */
static bool make_plan(const struct elf_file *file, uint8_t bytes[PLAN_SIZE])
{
	struct plan_header *plan = (void *)bytes;
	struct plan_function *function = (void *)(plan + 1);
	struct plan_site *site = (void *)(function + 1);
	uint64_t high = 0, entry = 0, offset;

	memset(bytes, 0, PLAN_SIZE);
	for (size_t i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_vaddr + segment->p_memsz > high)
			high = segment->p_vaddr + segment->p_memsz;
		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X)
			entry = segment->p_vaddr;
	}
	memcpy(plan->magic, PLAN_MAGIC, sizeof(plan->magic));
	plan->version = PLAN_VERSION;
	plan->header_size = sizeof(*plan);
	plan->file_size = file->size;
	plan->high = high;
	plan->arena_vaddr = (high + PLAN_PAGE - 1) & ~(uint64_t)(PLAN_PAGE - 1);
	plan->arena_size = PLAN_STUBS + PLAN_PAGE;
	plan->plan_size = PLAN_SIZE;
	plan->stubs = (struct plan_table){PLAN_PAGE, STUB_SIZE};
	plan->functions = (struct plan_table){sizeof(*plan), 1};
	plan->sites = (struct plan_table){sizeof(*plan) + sizeof(*function), 1};
	*function = (struct plan_function){.vaddr = entry, .size = 5, .stub = PLAN_STUBS};
	*site = (struct plan_site){.vaddr = entry, .length = 5};
	memset(site->patched, 0xe9, sizeof(site->patched));
	return elf_vaddr_to_offset(file, entry, &offset) &&
	       elf_read_bytes(file, offset, site->original, 5) == 0;
}

static void check(uint8_t *bytes, size_t size, const struct plan *plan)
{
	static const uint8_t mode = PLAN_MODE_FULL;
	struct rewrite_options options = {.needed_library = "libx.so"};
	struct rewrite_result result;
	struct elf_file *file;
	uint64_t last = 0;

	if (elf_open_memory(bytes, size, "output", &file, NULL))
		abort();
	for (size_t i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];

		if (segment->p_type != PT_LOAD)
			continue;
		if (segment->p_vaddr < last || segment->p_offset > size ||
		    segment->p_filesz > size - segment->p_offset)
			abort();
		last = segment->p_vaddr + segment->p_memsz;
	}
	if (!elf_section_find(file, ".kymo.plan"))
		abort();
	elf_close(file);
	if (rewrite_elf_in_memory("output", &bytes, &size, plan, &mode, &options, &result, NULL) !=
	    -EEXIST)
		abort();
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(8) uint8_t plan_bytes[PLAN_SIZE];
	static const uint8_t mode = PLAN_MODE_COUNT;
	struct plan plan = {.header = (void *)plan_bytes, .size = PLAN_SIZE};
	struct rewrite_options options = {.needed_library = "libx.so", .added_runpath = "/x"};
	struct rewrite_result result;
	struct problem problem;
	struct elf_file *file;

	if (elf_open_memory(data, size, "input", &file, &problem))
		return 0;
	bool planned = make_plan(file, plan_bytes);

	elf_close(file);
	uint8_t *bytes = malloc(size);

	if (!bytes)
		return 0;
	memcpy(bytes, data, size);
	if (!planned)
		((struct plan_header *)(void *)plan_bytes)->functions.count = 0;
	if (rewrite_elf_in_memory("input", &bytes, &size, &plan, &mode, &options, &result,
				  &problem))
		free(bytes);
	else
		check(bytes, size, &plan);
	return 0;
}
