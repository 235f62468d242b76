/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A module's file with all that speaks about it: symbols, debug information, unwind tables. What
 * maps (causal_map.h) and places (causal_places.h) are made from.
 */
#ifndef KYMO_BINARY_CAUSAL_MODULE_H
#define KYMO_BINARY_CAUSAL_MODULE_H

#include "binary/dwarf.h"
#include "binary/elf.h"
#include "binary/functions_frames.h"
#include "binary/string_pool.h"
#include "binary/symbols.h"
#include "common/problem.h"

struct causal_module {
	const char *path; /* as the process sees it; borrowed */
	const char *name; /* its last part */
	struct elf_file *file;
	struct elf_file *debug;          /* separate debug file, or NULL */
	struct elf_file *shared;         /* what dwz moved out of it, or NULL */
	const struct elf_file *speaking; /* the one with debug information; NULL: there is none */
	struct symbols *symbols;
	struct frames frames;
	struct string_pool *pool;
	uint64_t low, high; /* link-time addresses of the executable segments */
};

/* `path` can be opened here, `shown` is its path in the process and must outlive the module.
 * `debug_path` as for debugfile_find(). */
int causal_module_open(struct causal_module *ret, const char *path, const char *shown,
		       const char *debug_path, struct problem *problem);
void causal_module_close(struct causal_module *module);

bool causal_module_is_code(const struct causal_module *module, uint64_t vaddr);
/* The symbol of an address, without what compilers add to names of parts and clones (".cold",
 * ".part.0", ".isra.0", ".constprop.0"), or "[module+0x1234]" of the function by unwind tables, in
 * the pool; NULL: nothing is known, or it is a procedure linkage table. -ENOMEM through *error. */
const char *causal_module_symbol(struct causal_module *module, uint64_t vaddr, int *error);

#endif
