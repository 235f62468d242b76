/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Line number programs (.debug_line), run by ourselves: libdw would keep every row in memory, 40
 * bytes each and a lock for each; here rows pass by the wanted addresses and are gone.
 */
#ifndef KYMO_BINARY_DWARF_LINES_H
#define KYMO_BINARY_DWARF_LINES_H

#include "binary/cursor.h"
#include "binary/elf.h"
#include "binary/string_pool.h"

/* Sections that line tables need; empty where the file has none. */
struct dwarf_line_sections {
	struct elf_section_data line, line_strings, strings;
};

struct dwarf_line_table_file {
	const char *name; /* NULL: damaged */
	uint64_t directory;
	const char *path; /* interned once asked for */
};

/* The head of one unit's table. Strings point into the sections. */
struct dwarf_line_table_header {
	const char *compilation_directory; /* or NULL */
	const char **directories;
	struct dwarf_line_table_file *files; /* by the numbers that the unit uses */
	size_t directory_count, file_count, directory_capacity, file_capacity;
	struct byte_cursor program;
	uint16_t version;
	uint8_t minimum_instruction_size, opcode_base, line_range, address_size;
	int8_t line_base;
	uint8_t operand_counts[256];
};

/* A row holds from its address to that of the next one. */
struct dwarf_line_row {
	uint64_t address;
	uint64_t file;
	uint64_t line;
};

/* Missing sections are no error. -ENOMEM. */
int dwarf_line_sections_read(const struct elf_file *file, struct dwarf_line_sections *ret);
void dwarf_line_sections_deinit(struct dwarf_line_sections *sections);

/* Reads the table's head at `offset`. -EBADMSG: damaged or of an unknown version. */
int dwarf_line_table_init(struct dwarf_line_table_header *table,
			  const struct dwarf_line_sections *sections, uint64_t offset,
			  const char *compilation_directory);
void dwarf_line_table_deinit(struct dwarf_line_table_header *table);

/* Full path of a file of the table in the pool, NULL where there is none. -ENOMEM through *error.
 */
const char *dwarf_line_table_get_file_path(struct dwarf_line_table_header *table, uint64_t file,
					   struct string_pool *pool, int *error);

/* Runs the program once. `each` gets every row together with the address where it ends; it returns
 * 0 to go on. */
int dwarf_run_line_program(const struct dwarf_line_table_header *table,
			   int (*each)(void *context, const struct dwarf_line_row *row,
				       uint64_t end),
			   void *context);

#endif
