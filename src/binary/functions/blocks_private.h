/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What blocks.c (blocks and edges), blocks_tables.c (jump tables) and blocks_loops.c (loops) share:
 * memory that is used for one function after the other.
 */
#ifndef KYMO_BINARY_FUNCTIONS_BLOCKS_PRIVATE_H
#define KYMO_BINARY_FUNCTIONS_BLOCKS_PRIVATE_H

#include "binary/functions/blocks.h"

#define BLOCKS_INDEX_NONE              UINT32_MAX
#define BLOCKS_RECENT_INSTRUCTIONS_MAX 64u /* power of two */
#define BLOCKS_LOADED_ADDRESSES_MAX    64u

/* An instruction behind which control does not simply go on. */
struct block_end_instruction {
	uint32_t next;   /* offset behind it */
	uint32_t target; /* offset, or BLOCKS_INDEX_NONE: none inside */
	uint32_t table;  /* of an indirect jump: index, or BLOCKS_INDEX_NONE */
	uint8_t flow;
};

struct blocks_jump_table {
	uint64_t at, base;            /* where it lies; what its distances count from */
	uint32_t entry_bound;         /* entries by the comparison before it; 0: none was found */
	bool exact;                   /* the comparison was of the index */
	bool absolute;                /* entries are 64-bit addresses; else 32-bit distances */
	uint32_t fitting_entry_count; /* entries before something else begins */
	uint32_t first, count;        /* in blocks.table_targets */
};

/* Sizes of all arrays that grow, in elements. */
struct blocks_workspace {
	uint64_t *instruction_start_bitmap,
		*block_start_bitmap; /* bits, one an offset: instructions, and where blocks begin */
	uint32_t *ranks;             /* blocks before each word of `leaders` */
	size_t bitmap_word_capacity, rank_capacity;
	struct block_end_instruction *block_ends;
	uint32_t block_end_count;
	size_t block_end_capacity;
	struct blocks_jump_table *tables;
	uint32_t table_count;
	size_t table_capacity, table_target_capacity, list_capacity, successor_capacity;
	/* The last instructions, by their number modulo BLOCKS_RECENT_INSTRUCTIONS_MAX. */
	struct {
		uint32_t offset;
		struct instruction instruction;
	} recent_instructions[BLOCKS_RECENT_INSTRUCTIONS_MAX];
	uint64_t loaded[16]; /* the last RIP-relative address that was loaded into each register */
	/* All such addresses outside the function, as far as there is room. */
	uint64_t loaded_addresses[BLOCKS_LOADED_ADDRESSES_MAX];
	uint32_t loaded_address_count;
	uint32_t table_entry_reads_left; /* of entries, until no more are believed */
	const struct blocks_analysis_input *image;
	const uint8_t *code;
	uint64_t vaddr;
	uint32_t size;
	uint32_t *graph;  /* arrays of blocks_loops.c, one after the other */
	void *walk_stack; /* of its walk */
	size_t graph_capacity, walk_stack_capacity;
};

/* Makes room for `count` elements of `size` bytes; the contents stay. */
int blocks_grow_any_array(void *array, size_t *capacity, size_t count, size_t size);

static inline bool blocks_bit_is_set(const uint64_t *bits, uint32_t offset)
{
	return bits[offset / 64] >> offset % 64 & 1;
}

static inline void blocks_set_bit(uint64_t *bits, uint32_t offset)
{
	bits[offset / 64] |= (uint64_t)1 << offset % 64;
}

/* The indirect jump that was decoded as instruction `number` has a table? Adds it to the
 * workspace and gives its index through *ret. -ENOMEM. */
int blocks_add_jump_table_if_found(struct basic_blocks *blocks, uint32_t number, uint32_t *ret);
/* Reads the entries of all tables, once all instructions are known, and sets leaders. */
int blocks_read_jump_tables(struct basic_blocks *blocks);
int blocks_find_loops(struct basic_blocks *blocks);

#endif
