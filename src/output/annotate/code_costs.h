/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Addresses of files with what was spent at them, and the instructions there: of files that are
 * still those that ran, since their build IDs are compared.
 */
#ifndef KYMO_OUTPUT_ANNOTATE_CODE_COSTS_H
#define KYMO_OUTPUT_ANNOTATE_CODE_COSTS_H

#include "analysis/session.h"
#include "binary/symbols/symbols.h"
#include "output/strings.h"

struct address_cost {
	uint64_t address;
	uint32_t file; /* number of its key */
	uint32_t
		physical_frame; /* of the function that has the address, not of one inlined there */
	uint32_t innermost_frame;
	uint64_t self[MODEL_SOURCE_COUNT];
};

struct code_file {
	uint64_t weight;
	uint32_t module;
	size_t first, count; /* of its costs */
};

struct code_costs {
	const struct session *session;
	unsigned sources; /* what weights are made of: bits by source */
	struct string_table file_keys;
	uint32_t *file_of_module;   /* MODEL_ENTRY_INDEX_NONE: it cannot be told from another */
	struct code_file *files;    /* as many as keys, the heaviest first */
	struct address_cost *costs; /* by file, then address */
	size_t cost_count;
	uint64_t whole; /* weight of all nodes */
};

/* 0 or -ENOMEM; deinit is needed after either. */
int code_costs_init(struct code_costs *costs, const struct session *session, unsigned sources);
void code_costs_deinit(struct code_costs *costs);
uint64_t code_costs_get_weight(const struct code_costs *costs, const uint64_t *self);

/* A file of code with its functions. */
struct code_binary {
	struct elf_file *file;
	struct symbol_table *symbols;
};

enum code_binary_state {
	CODE_BINARY_OPEN,
	CODE_BINARY_UNREADABLE, /* gone, or no ELF file */
	CODE_BINARY_OTHER,      /* another build than the one that ran */
	CODE_BINARY_UNKNOWN     /* not x86-64, or a table too large */
};

/* Of the module, from `path`. `debug_path`: where symbols of stripped files are looked for, as for
 * debugfile_find(); "": nowhere. 0 or -ENOMEM; close is needed after either, whatever *ret_state.
 */
int code_binary_open(struct code_binary *binary, const struct model_module *module,
		     const char *path, const char *debug_path, enum code_binary_state *ret_state);
void code_binary_close(struct code_binary *binary);

#define CODE_FUNCTION_SHOWN 0x8000u /* in a length: the instruction is near a cost */

/* A function and the costs inside it. */
struct code_function {
	const struct symbol *symbol;
	const struct address_cost *costs;
	size_t count;
	uint8_t *bytes;
	uint16_t *lengths; /* by offset; 0: no instruction begins there */
};

/* The function of the first of `count` costs, and those of them that lie in it; at least one, which
 * lies in no function where the symbol is NULL. */
struct code_function code_function_find(const struct code_binary *binary,
					const struct address_cost *costs, size_t count);
/* Reads and decodes it, and marks the instructions around those with a cost. 0, -ENOMEM, or another
 * errno where it cannot be read; deinit is needed after either. */
int code_function_read(struct code_function *function, const struct elf_file *file, size_t context);
void code_function_deinit(struct code_function *function);
static inline size_t code_function_get_length(const struct code_function *function, size_t offset)
{
	return function->lengths[offset] & ~CODE_FUNCTION_SHOWN;
}

#endif
