/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See dwarf_rows.h. libdw finds the units; their line programs are run by ourselves.
 */
#include "binary/dwarf_rows.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <libelf.h>

#include "binary/dwarf_lines.h"

struct rows {
	struct dwarf_line_sections sections;
	struct dwarf_line_table *table; /* of the unit being read */
	struct string_pool *pool;
	int (*each)(void *context, const struct dwarf_code_line *line);
	void *context;
};

static int take_row(void *opaque, const struct dwarf_line_row *row, uint64_t end)
{
	struct rows *rows = opaque;
	struct dwarf_code_line line = {.start = row->address, .end = end};
	int error = 0;

	if (row->line == 0 || row->line > INT32_MAX || row->address == 0 || end <= row->address)
		return 0;
	line.line = (uint32_t)row->line;
	line.file = dwarf_line_path(rows->table, row->file, rows->pool, &error);
	if (error || !line.file)
		return error;
	return rows->each(rows->context, &line);
}

static int read_unit(struct rows *rows, Dwarf_Die *die)
{
	struct dwarf_line_table table = {0};
	const char *directory = NULL;
	Dwarf_Attribute attribute;
	Dwarf_Word offset;
	int error;

	if (!dwarf_attr(die, DW_AT_stmt_list, &attribute) ||
	    dwarf_formudata(&attribute, &offset) != 0)
		return 0;
	if (dwarf_attr(die, DW_AT_comp_dir, &attribute))
		directory = dwarf_formstring(&attribute);
	error = dwarf_line_table_init(&table, &rows->sections, offset, directory);
	if (error)
		return error == -ENOMEM ? error : 0;
	rows->table = &table;
	error = dwarf_line_run(&table, take_row, rows);
	rows->table = NULL;
	dwarf_line_table_deinit(&table);
	return error;
}

static int read_units(struct rows *rows, Dwarf *dwarf)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Half version;
	uint8_t type;
	Dwarf_Die die, split;
	int error = 0;

	while (!error && dwarf_get_units(dwarf, unit, &unit, &version, &type, &die, &split) == 0) {
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			error = read_unit(rows, &die);
	}
	return error;
}

int dwarf_each_line(const struct elf_file *file, struct string_pool *pool,
		    int (*each)(void *context, const struct dwarf_code_line *line), void *context)
{
	struct rows rows = {.pool = pool, .each = each, .context = context};
	Elf *elf;
	Dwarf *dwarf;
	int error;

	elf_version(EV_CURRENT);
	elf = elf_begin(file->descriptor, ELF_C_READ, NULL);
	dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	error = dwarf ? dwarf_line_sections_read(file, &rows.sections) : -ENODATA;
	if (!error)
		error = read_units(&rows, dwarf);
	dwarf_line_sections_deinit(&rows.sections);
	dwarf_end(dwarf);
	elf_end(elf);
	return error;
}
