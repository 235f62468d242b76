/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Fuzzes the reading of debug information, and with it libdw: the input is an ELF file.
 */
#include <stdint.h>
#include <stdlib.h>

#include "binary/dwarf/dwarf.h"

#define ADDRESS_COUNT 512u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct dwarf_lookup_result_lists *result)
{
	for (size_t i = 0; i < ADDRESS_COUNT; i++) {
		uint32_t scope = result->places[i].scope, depth = 0;
		for (; scope != DWARF_SCOPE_NONE; scope = result->scopes[scope].parent) {
			/* Parents come before what they hold. */
			if (scope >= result->scope_count || depth++ > result->scope_count ||
			    result->scopes[scope].function >= result->function_count)
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_file *file;
	struct string_pool *pool;
	struct dwarf_lookup_result_lists result;
	uint64_t addresses[ADDRESS_COUNT];
	if (elf_open_memory(data, size, "input", &file, NULL))
		return 0;
	uint64_t base = 0;
	for (size_t i = 0; i < file->segment_count; i++) {
		if (file->segments[i].p_type == PT_LOAD && (file->segments[i].p_flags & PF_X))
			base = file->segments[i].p_vaddr;
	}
	base = base > UINT64_MAX - ADDRESS_COUNT ? 0 : base;
	for (size_t i = 0; i < ADDRESS_COUNT; i++)
		addresses[i] = base + i;
	if (dwarf_file_has_debug_info(file) && string_pool_create(&pool) == 0) {
		if (dwarf_lookup_addresses(file, NULL, addresses, ADDRESS_COUNT, pool, &result) ==
		    0) {
			check(&result);
			dwarf_lookup_result_lists_deinit(&result);
		}
		string_pool_destroy(pool);
	}
	elf_close(file);
	return 0;
}
