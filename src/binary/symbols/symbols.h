/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which function an address of a file belongs to, by symbol tables alone.
 *
 * Life: symbols_create(), symbols_add_file() for each file that speaks about the same module (the
 * file itself, its separate debug file), symbols_sort_and_flatten(), then lookups.
 *
 * An answer is never "the nearest symbol": an address outside every sized symbol has no name. Only
 * symbols without a size, as hand-written assembly has them, reach to the next symbol of their
 * section. Of several names for one address the one that a person would use is kept: global rather
 * than local, `malloc` rather than `__libc_malloc`. PLT entries get the name of their target with
 * "@plt".
 */
#ifndef KYMO_BINARY_SYMBOLS_SYMBOLS_H
#define KYMO_BINARY_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/elf.h"
#include "common/problem.h"

struct symbol {
	uint64_t address, size;
	const char *name; /* owned by the table; a version suffix (@GLIBC_2.2.5) is cut off */
};

/* What the table was made of, best first. */
enum symbol_table_origin {
	SYMBOLS_FROM_SYMTAB,    /* .symtab */
	SYMBOLS_FROM_MINIDEBUG, /* .dynsym and .gnu_debugdata */
	SYMBOLS_FROM_DYNSYM,    /* .dynsym only */
	SYMBOLS_FROM_NONE
};

struct symbol_table;

int symbols_create(struct symbol_table **ret);
/* Adds the function symbols of one file; damaged tables are skipped. Only fails for lack of memory
 * (-ENOMEM). */
int symbols_add_file(struct symbol_table *symbols, const struct elf_file *file);
/* Sorts and chooses. Cost: about 100 ns a symbol. */
int symbols_sort_and_flatten(struct symbol_table *symbols);
void symbols_destroy(struct symbol_table *symbols);

/* NULL: no symbol covers it. O(log n). */
const struct symbol *symbols_find_at_address(const struct symbol_table *symbols, uint64_t vaddr);
enum symbol_table_origin symbols_get_origin(const struct symbol_table *symbols);
size_t symbols_get_count(const struct symbol_table *symbols);
const struct symbol *symbols_get_nth(const struct symbol_table *symbols, size_t index);

#endif
