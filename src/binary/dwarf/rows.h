/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * All rows of a file's line tables, front to back.
 */
#ifndef KYMO_BINARY_DWARF_ROWS_H
#define KYMO_BINARY_DWARF_ROWS_H

#include "binary/elf.h"
#include "binary/string_pool.h"

/* Code from link-time address `start` up to `end` is of this line. */
struct dwarf_line_code_range {
	const char *file; /* in the pool */
	uint32_t line;
	uint64_t start, end;
};

/* `each` returns 0 to go on; anything else ends it and is returned. -ENODATA: no debug information;
 * -ENOMEM. Code that the linker dropped, and lines that the compiler made up, are left out. */
int dwarf_for_each_line_range(const struct elf_file *file, struct string_pool *pool,
			      int (*each)(void *context, const struct dwarf_line_code_range *line),
			      void *context);

#endif
