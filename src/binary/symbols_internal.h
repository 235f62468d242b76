/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the parts of the symbol table share: symbols.c (the table), symbols_sort.c, symbols_read.c
 * (from ELF symbol tables), symbols_plt.c (from relocations and PLT code).
 */
#ifndef KYMO_BINARY_SYMBOLS_INTERNAL_H
#define KYMO_BINARY_SYMBOLS_INTERNAL_H

#include "binary/symbols.h"

/* Names for one address compete by rank, lowest first. */
enum symbol_rank {
	RANK_UNSIZED = 64,
	RANK_NOTYPE = 32,
	RANK_CLONE = 16, /* .cold, .part.0, … */
	RANK_LOCAL = 8,
	RANK_WEAK = 1,
	RANK_UNDERSCORE = 2, /* once for each of up to three leading ones */
};

struct symbol_candidate {
	struct symbol symbol;
	uint64_t limit; /* end of its section */
	uint32_t rank;
	bool unsized;
};

/* The code from `start` to the next range's start belongs to `candidate`, or to none. */
struct symbol_range {
	uint64_t start;
	uint32_t candidate;
};

/* A PLT entry whose target is chosen by the IFUNC resolver at `resolver`: named once all symbols
 * are known. */
struct symbol_ifunc_slot {
	uint64_t address, size, limit, resolver;
};

struct symbols {
	struct symbol_candidate *candidates;
	size_t count, capacity;
	struct symbol_range *ranges;
	size_t range_count;
	struct symbol_ifunc_slot *slots;
	size_t slot_count, slot_capacity;
	uint8_t **buffers; /* what names point into */
	size_t buffer_count, buffer_capacity;
	bool has_symtab, has_dynsym, has_minidebug;
};

#define SYMBOL_NONE UINT32_MAX

/* Takes ownership of `bytes`, also on failure. */
int symbols_keep(struct symbols *symbols, uint8_t *bytes);
int symbols_append(struct symbols *symbols, const struct symbol_candidate *candidate);
/* "name@plt", owned by the table; NULL: no memory. */
const char *symbols_plt_name(struct symbols *symbols, const char *target);

int symbols_add_plt(struct symbols *symbols, const struct elf_file *file);
int symbols_name_ifunc_slots(struct symbols *symbols);
/* By address, then best name first. */
int symbols_sort(struct symbols *symbols);

#endif
