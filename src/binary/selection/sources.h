/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Source file and line of each function of a plan, for signatures that show them.
 */
#ifndef KYMO_BINARY_SELECTION_SOURCES_H
#define KYMO_BINARY_SELECTION_SOURCES_H

#include "binary/elf.h"
#include "binary/plan/plan.h"

struct selection_source_line_table;

/* By the debug information of the file, or of its separate debug file; without any, *ret is NULL. 0
 * or -ENOMEM. Cost: see binary/dwarf/dwarf.h; about 10 us a function. */
int selection_source_lines_load(const struct elf_file *file, const char *debug_path,
				const struct plan *plan, struct selection_source_line_table **ret);
void selection_source_lines_destroy(struct selection_source_line_table *sources);
/* The file and line of function number `index`; NULL: unknown. */
const char *selection_source_lines_get_file_line(const struct selection_source_line_table *sources,
						 size_t index, uint32_t *ret_line);

/* "name", "name(args)", "name(args) [file.c:12]": as `labels` (enum selection_signature_part_flag)
 * say. `mangled` may be any text. Malloc'ed; NULL: out of memory. */
char *selection_format_signature(const char *mangled, const char *file, uint32_t line,
				 unsigned labels);

#endif
