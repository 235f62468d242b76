/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the parts of the symbol table share: symbols.c (the table), sort.c, read.c
 * (from ELF symbol tables), plt.c (from relocations and PLT code).
 */
#ifndef KYMO_BINARY_SYMBOLS_PRIVATE_H
#define KYMO_BINARY_SYMBOLS_PRIVATE_H

#include "binary/symbols/symbols.h"

/* Names for one address compete by rank, lowest first. */
enum symbol_rank_penalty {
	SYMBOL_RANK_UNSIZED = 64,
	SYMBOL_RANK_NOTYPE = 32,
	SYMBOL_RANK_CLONE = 16, /* .cold, .part.0, … */
	SYMBOL_RANK_LOCAL = 8,
	SYMBOL_RANK_WEAK = 1,
	SYMBOL_RANK_UNDERSCORE = 2, /* once for each of up to three leading ones */
};

struct symbol_candidate {
	struct symbol symbol;
	uint64_t limit; /* end of its section */
	uint32_t rank;
	bool has_no_size;
};

/* The code from `start` to the next range's start belongs to `candidate`, or to none. */
struct symbol_range {
	uint64_t start;
	uint32_t candidate_index;
};

/* A PLT entry whose target is chosen by the IFUNC resolver at `resolver`: named once all symbols
 * are known. */
struct symbol_ifunc_slot {
	uint64_t address, size, limit, resolver;
};

struct symbol_table {
	struct symbol_candidate *candidates;
	size_t count, capacity;
	struct symbol_range *ranges;
	size_t range_count;
	struct symbol_ifunc_slot *slots;
	size_t slot_count, slot_capacity;
	uint8_t **name_buffers; /* what names point into */
	size_t name_buffer_count, name_buffer_capacity;
	bool has_symtab, has_dynsym, has_minidebug;
};

#define SYMBOL_INDEX_NONE UINT32_MAX

/* Takes ownership of `bytes`, also on failure. */
int symbols_adopt_name_buffer(struct symbol_table *symbols, uint8_t *bytes);
int symbols_append_candidate(struct symbol_table *symbols,
			     const struct symbol_candidate *candidate);
/* "name@plt", owned by the table; NULL: no memory. */
const char *symbols_create_plt_name(struct symbol_table *symbols, const char *target);

int symbols_add_plt_entries(struct symbol_table *symbols, const struct elf_file *file);
int symbols_add_ifunc_slots(struct symbol_table *symbols);
/* By address, then best name first. */
int symbols_sort_candidates(struct symbol_table *symbols);

#endif
