/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Source file and line of each function of a plan, for signatures that show them.
 */
#ifndef KYMO_BINARY_SELECTION_SOURCES_H
#define KYMO_BINARY_SELECTION_SOURCES_H

#include "binary/elf.h"
#include "binary/plan.h"

struct selection_sources;

/* By the debug information of the file, or of its separate debug file; without any, *ret is NULL. 0
 * or -ENOMEM. Cost: see dwarf.h; about 10 us a function. */
int selection_sources_load(const struct elf_file *file, const char *debug_path,
			   const struct plan *plan, struct selection_sources **ret);
void selection_sources_destroy(struct selection_sources *sources);
/* The file and line of function number `index`; NULL: unknown. */
const char *selection_sources_at(const struct selection_sources *sources, size_t index,
				 uint32_t *ret_line);

/* "name", "name(args)", "name(args) [file.c:12]": as `labels` (enum selection_label) say. `mangled`
 * may be any text. Malloc'ed; NULL: out of memory. */
char *selection_signature(const char *mangled, const char *file, uint32_t line, unsigned labels);

#endif
