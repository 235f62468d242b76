/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A module's file with all that speaks about it: symbols, debug information, unwind tables. What
 * maps (map.h) and places (places.h) are made from.
 */
#ifndef KYMO_BINARY_CAUSAL_MODULE_H
#define KYMO_BINARY_CAUSAL_MODULE_H

#include "binary/dwarf/dwarf.h"
#include "binary/elf.h"
#include "binary/functions/frames.h"
#include "binary/string_pool.h"
#include "binary/symbols/symbols.h"
#include "common/problem.h"

struct causal_module {
	const char *path; /* as the process sees it; borrowed */
	const char *name; /* its last part */
	struct elf_file *file;
	struct elf_file *debug;  /* separate debug file, or NULL */
	struct elf_file *shared; /* what dwz moved out of it, or NULL */
	const struct elf_file
		*debug_info_file; /* the one with debug information; NULL: there is none */
	struct symbol_table *symbols;
	struct eh_frame_table frames;
	struct string_pool *string_pool;
	uint64_t low, high; /* link-time addresses of the executable segments */
};

/* `path` can be opened here, `shown` is its path in the process and must outlive the module.
 * `debug_path` as for debugfile_find(). */
int causal_module_open(struct causal_module *ret, const char *path, const char *shown,
		       const char *debug_path, struct problem *problem);
void causal_module_close(struct causal_module *module);

bool causal_module_has_code_at(const struct causal_module *module, uint64_t vaddr);
/* The symbol of an address, without what compilers add to names of parts and clones (".cold",
 * ".part.0", ".isra.0", ".constprop.0"), or "[module+0x1234]" of the function by unwind tables, in
 * the pool; NULL: nothing is known, or it is a procedure linkage table. -ENOMEM through *error. */
const char *causal_module_get_symbol_name_at(struct causal_module *module, uint64_t vaddr,
					     int *error);

#endif
