/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Fuzzes what finds functions and makes plans: whatever the file is, it is refused, or the plan
 * that comes out is sound.
 */
#include <stdint.h>
#include <stdlib.h>

#include "binary/plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_functions(const struct functions *functions)
{
	for (size_t i = 0; i < functions->count; i++) {
		const struct function *function = &functions->list[i];
		size_t left;
		if (!functions_get_code_bytes_at(functions, function->vaddr, &left) ||
		    left < function->size ||
		    (i && functions->list[i - 1].vaddr >= function->vaddr) ||
		    !functions_address_is_control_target(functions, function->vaddr))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plan_options options = {.arena_placement = size % PLAN_ARENA_PLACEMENT_COUNT};
	struct functions *functions;
	struct elf_file *file;
	struct problem problem;
	struct plan plan;

	if (elf_open_memory(data, size, "input", &file, &problem))
		return 0;
	if (functions_find_in_file(file, NULL, &functions, &problem) == 0) {
		check_functions(functions);
		if (plan_build(file, functions, &options, &plan, &problem) == 0) {
			if (!plan_is_valid(plan.header, plan.size))
				abort();
			plan_close(&plan);
		}
		functions_destroy(functions);
	}
	elf_close(file);
	return 0;
}
