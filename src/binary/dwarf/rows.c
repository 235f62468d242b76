/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See rows.h. libdw finds the units; their line programs are run by ourselves.
 */
#include "binary/dwarf/rows.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <libelf.h>

#include "binary/dwarf/lines.h"

struct line_row_reader {
	struct dwarf_line_sections line_sections;
	struct dwarf_line_table_header *table; /* of the unit being read */
	struct string_pool *string_pool;
	int (*each)(void *context, const struct dwarf_line_code_range *line);
	void *context;
};

static int emit_line_row_as_code_range(void *opaque, const struct dwarf_line_row *row, uint64_t end)
{
	struct line_row_reader *rows = opaque;
	struct dwarf_line_code_range line = {.start = row->address, .end = end};
	int error = 0;

	if (row->line == 0 || row->line > INT32_MAX || row->address == 0 || end <= row->address)
		return 0;
	line.line = (uint32_t)row->line;
	line.file =
		dwarf_line_table_get_file_path(rows->table, row->file, rows->string_pool, &error);
	if (error || !line.file)
		return error;
	return rows->each(rows->context, &line);
}

static int read_line_rows_of_unit(struct line_row_reader *rows, Dwarf_Die *die)
{
	struct dwarf_line_table_header table = {0};
	const char *directory = NULL;
	Dwarf_Attribute attribute;
	Dwarf_Word offset;
	int error;

	if (!dwarf_attr(die, DW_AT_stmt_list, &attribute) ||
	    dwarf_formudata(&attribute, &offset) != 0)
		return 0;
	if (dwarf_attr(die, DW_AT_comp_dir, &attribute))
		directory = dwarf_formstring(&attribute);
	error = dwarf_line_table_init(&table, &rows->line_sections, offset, directory);
	if (error)
		return error == -ENOMEM ? error : 0;
	rows->table = &table;
	error = dwarf_run_line_program(&table, emit_line_row_as_code_range, rows);
	rows->table = NULL;
	dwarf_line_table_deinit(&table);
	return error;
}

static int read_line_rows_of_all_units(struct line_row_reader *rows, Dwarf *dwarf)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Half version;
	uint8_t type;
	Dwarf_Die die, split;
	int error = 0;

	while (!error && dwarf_get_units(dwarf, unit, &unit, &version, &type, &die, &split) == 0) {
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			error = read_line_rows_of_unit(rows, &die);
	}
	return error;
}

int dwarf_for_each_line_range(const struct elf_file *file, struct string_pool *pool,
			      int (*each)(void *context, const struct dwarf_line_code_range *line),
			      void *context)
{
	struct line_row_reader rows = {.string_pool = pool, .each = each, .context = context};
	Elf *elf;
	Dwarf *dwarf;
	int error;

	elf_version(EV_CURRENT);
	elf = elf_begin(file->descriptor, ELF_C_READ, NULL);
	dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	error = dwarf ? dwarf_line_sections_read(file, &rows.line_sections) : -ENODATA;
	if (!error)
		error = read_line_rows_of_all_units(&rows, dwarf);
	dwarf_line_sections_deinit(&rows.line_sections);
	dwarf_end(dwarf);
	elf_end(elf);
	return error;
}
