/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Fuzzes line number programs: the input is a .debug_line section; its end also serves as both
 * string sections.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "binary/dwarf/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct rows {
	struct dwarf_line_table_header *table;
	struct string_pool *pool;
	size_t count;
};

static int row(void *context, const struct dwarf_line_row *at, uint64_t end)
{
	struct rows *rows = context;
	int error = 0;
	if (at->address >= end)
		abort();
	dwarf_line_table_get_file_path(rows->table, at->file, rows->pool, &error);
	return ++rows->count > 100000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dwarf_line_sections sections;
	struct dwarf_line_table_header table;
	struct rows rows = {.table = &table};
	uint8_t *copy = malloc(size + 1);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	copy[size] = 0;
	sections.line = (struct elf_section_data){copy, size};
	sections.strings = (struct elf_section_data){copy + size / 2, size - size / 2};
	sections.line_strings = sections.strings;
	if (dwarf_line_table_init(&table, &sections, 0, "/build") == 0) {
		if (string_pool_create(&rows.pool) == 0) {
			dwarf_run_line_program(&table, row, &rows);
			string_pool_destroy(rows.pool);
		}
		dwarf_line_table_deinit(&table);
	}
	free(copy);
	return 0;
}
