/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The inside of one function: its basic blocks, the edges between them, jump tables and loops.
 *
 * Instructions are taken one after the other from the function's first byte to its last; a block
 * begins where a branch or a jump table leads, and behind every instruction that control does not
 * simply pass. Calls do not end blocks. Landing pads have no edges that lead to them: what is
 * reached by nothing is the root of a graph of its own.
 *
 * One struct basic_blocks is used for function after function and keeps its memory. Cost: about 20
 * ns an instruction, decoding included.
 */
#ifndef KYMO_BINARY_FUNCTIONS_BLOCKS_H
#define KYMO_BINARY_FUNCTIONS_BLOCKS_H

#include "binary/functions/functions.h"
#include "binary/instruction.h"

struct basic_block {
	uint32_t start, size; /* in the function, bytes */
	uint32_t instructions;
	uint32_t first_successor, successor_count; /* in blocks.successors: indices of blocks */
	uint8_t flow;                              /* of its last instruction */
	bool is_loop_head; /* a branch leads back here from a block that only this one leads to */
	bool is_root;      /* the entry, or what no edge leads to (landing pads), or data */
};

/* What a function may refer to. */
struct blocks_analysis_input {
	const struct loaded_byte_range
		*ranges; /* read-only data and code, where jump tables may lie */
	size_t range_count;
	uint64_t code_low, code_high; /* addresses that jumps may lead to */
	/* Blocks also begin at its targets: landing pads, what other parts jump to. NULL: no. */
	const struct functions *split_at_targets_of;
	/* Called for every instruction, in order; NULL: not wanted. */
	void (*each)(void *context, uint64_t vaddr, const struct instruction *instruction);
	void *context;
};

struct basic_blocks {
	struct basic_block *list; /* by address */
	uint32_t count;
	uint32_t *successors;
	uint32_t successor_count;
	uint64_t *table_targets; /* addresses that jump tables lead to, here or in other parts */
	uint32_t table_target_count;
	uint32_t instructions, loops;
	uint32_t decoded_bytes; /* bytes; less than the function's size: no instruction follows */
	uint32_t unknown_table_jump_count; /* through tables that were not understood */
	uint32_t tables;                   /* that were */
	bool has_return;
	bool has_tail_jump; /* to an address outside, or through a pointer */
	bool has_indirect_call;
	bool has_target_inside_instruction; /* a branch leads into the middle of an instruction */
	struct blocks_workspace *workspace;
};

int blocks_init(struct basic_blocks *blocks);
void blocks_deinit(struct basic_blocks *blocks);

/* Replaces the contents of `blocks` by those of the function. Only fails for lack of memory
 * (-ENOMEM). */
int blocks_find_in_function(struct basic_blocks *blocks, const struct blocks_analysis_input *image,
			    const uint8_t *code, uint64_t vaddr, uint32_t size);

#endif
