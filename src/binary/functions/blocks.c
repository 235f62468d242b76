/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Blocks and edges. One pass over the instructions marks where they begin and where branches lead,
 * in two bitmaps; jump tables add to these; then blocks are read off the bitmap.
 */
#include "binary/functions/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/functions/blocks_private.h"

int blocks_grow_any_array(void *array, size_t *capacity, size_t count, size_t size)
{
	size_t wanted = *capacity ? *capacity : 64;
	void *old, *grown;

	if (count <= *capacity)
		return 0;
	while (wanted < count)
		wanted *= 2;
	memcpy(&old, array, sizeof(old));
	grown = reallocarray(old, wanted, size);
	if (!grown)
		return -ENOMEM;
	memcpy(array, &grown, sizeof(grown));
	*capacity = wanted;
	return 0;
}

int blocks_init(struct basic_blocks *blocks)
{
	memset(blocks, 0, sizeof(*blocks));
	blocks->workspace = calloc(1, sizeof(*blocks->workspace));
	return blocks->workspace ? 0 : -ENOMEM;
}

void blocks_deinit(struct basic_blocks *blocks)
{
	struct blocks_workspace *workspace = blocks->workspace;

	if (workspace) {
		free(workspace->instruction_start_bitmap);
		free(workspace->block_start_bitmap);
		free(workspace->ranks);
		free(workspace->block_ends);
		free(workspace->tables);
		free(workspace->graph);
		free(workspace->walk_stack);
		free(workspace);
	}
	free(blocks->list);
	free(blocks->successors);
	free(blocks->table_targets);
	memset(blocks, 0, sizeof(*blocks));
}

/* One word more than needed, so that the offset behind the last byte has a bit. */
static int grow_and_clear_instruction_bitmaps(struct blocks_workspace *workspace, uint32_t size)
{
	size_t words = (size_t)size / 64 + 1, capacity = workspace->bitmap_word_capacity;

	if (blocks_grow_any_array(&workspace->ranks, &workspace->rank_capacity, words,
				  sizeof(*workspace->ranks)) ||
	    blocks_grow_any_array(&workspace->instruction_start_bitmap, &capacity, words,
				  sizeof(*workspace->instruction_start_bitmap)))
		return -ENOMEM;
	capacity = workspace->bitmap_word_capacity;
	if (blocks_grow_any_array(&workspace->block_start_bitmap, &capacity, words,
				  sizeof(*workspace->block_start_bitmap)))
		return -ENOMEM;
	workspace->bitmap_word_capacity = capacity;
	memset(workspace->instruction_start_bitmap, 0,
	       words * sizeof(*workspace->instruction_start_bitmap));
	memset(workspace->block_start_bitmap, 0, words * sizeof(*workspace->block_start_bitmap));
	return 0;
}

static int reset_blocks_for_function(struct basic_blocks *blocks,
				     const struct blocks_analysis_input *image, const uint8_t *code,
				     uint64_t vaddr, uint32_t size)
{
	struct blocks_workspace *workspace = blocks->workspace;

	blocks->count = blocks->successor_count = blocks->table_target_count = 0;
	blocks->instructions = blocks->loops = blocks->decoded_bytes = 0;
	blocks->unknown_table_jump_count = blocks->tables = 0;
	blocks->has_return = blocks->has_tail_jump = blocks->has_indirect_call = false;
	blocks->has_target_inside_instruction = false;
	workspace->block_end_count = workspace->table_count = workspace->loaded_address_count = 0;
	workspace->image = image;
	workspace->code = code;
	workspace->vaddr = vaddr;
	workspace->size = size;
	memset(workspace->loaded, 0, sizeof(workspace->loaded));
	return grow_and_clear_instruction_bitmaps(workspace, size);
}

/* It may be that of a jump table. */
static void record_loaded_address(struct blocks_workspace *workspace,
				  const struct instruction *instruction)
{
	unsigned to =
		(instruction->modrm >> 3 & 7) | (instruction->rex & INSTRUCTION_REX_R ? 8u : 0);

	workspace->loaded[to] = instruction->target;
	if (workspace->loaded_address_count < BLOCKS_LOADED_ADDRESSES_MAX &&
	    instruction->target - workspace->vaddr >= workspace->size)
		workspace->loaded_addresses[workspace->loaded_address_count++] =
			instruction->target;
}

static int add_block_end_instruction(struct basic_blocks *blocks, uint32_t number, uint32_t next,
				     const struct instruction *instruction)
{
	struct blocks_workspace *workspace = blocks->workspace;
	struct block_end_instruction *end;
	uint64_t target = instruction->target - workspace->vaddr;
	int error = blocks_grow_any_array(&workspace->block_ends, &workspace->block_end_capacity,
					  (size_t)workspace->block_end_count + 1,
					  sizeof(*workspace->block_ends));

	if (error)
		return error;
	end = &workspace->block_ends[workspace->block_end_count++];
	*end = (struct block_end_instruction){.next = next,
					      .target = BLOCKS_INDEX_NONE,
					      .table = BLOCKS_INDEX_NONE,
					      .flow = instruction->flow};
	blocks_set_bit(workspace->block_start_bitmap, next);
	switch (instruction->flow) {
	case INSTRUCTION_RETURN:
		blocks->has_return = true;
		return 0;
	case INSTRUCTION_JUMP_INDIRECT:
		return blocks_add_jump_table_if_found(blocks, number, &end->table);
	case INSTRUCTION_JUMP:
	case INSTRUCTION_BRANCH:
		if (target < workspace->size) {
			end->target = (uint32_t)target;
			blocks_set_bit(workspace->block_start_bitmap, end->target);
		} else {
			blocks->has_tail_jump = true;
		}
		return 0;
	default:
		return 0;
	}
}

static int decode_function_instructions(struct basic_blocks *blocks)
{
	struct blocks_workspace *workspace = blocks->workspace;
	const struct blocks_analysis_input *image = workspace->image;
	uint32_t offset = 0, number = 0;
	int error;

	for (; offset < workspace->size; number++) {
		struct instruction *instruction =
			&workspace->recent_instructions[number % BLOCKS_RECENT_INSTRUCTIONS_MAX]
				 .instruction;
		uint64_t vaddr = workspace->vaddr + offset;
		if (!instruction_decode(workspace->code + offset, workspace->size - offset, vaddr,
					instruction))
			break;
		workspace->recent_instructions[number % BLOCKS_RECENT_INSTRUCTIONS_MAX].offset =
			offset;
		blocks_set_bit(workspace->instruction_start_bitmap, offset);
		if (image->split_at_targets_of &&
		    functions_address_is_control_target(image->split_at_targets_of, vaddr))
			blocks_set_bit(workspace->block_start_bitmap, offset);
		offset += instruction->length;
		if (image->each)
			image->each(image->context, vaddr, instruction);
		if (instruction->is_rip_relative && instruction->opcode == 0x8d &&
		    !instruction->opcode_map)
			record_loaded_address(workspace, instruction);
		if (instruction->flow == INSTRUCTION_NEXT || instruction->flow == INSTRUCTION_CALL)
			continue;
		if (instruction->flow == INSTRUCTION_CALL_INDIRECT) {
			blocks->has_indirect_call = true;
			continue;
		}
		error = add_block_end_instruction(blocks, number, offset, instruction);
		if (error)
			return error;
	}
	blocks->instructions = number;
	blocks->decoded_bytes = offset;
	return 0;
}

/* Blocks begin at leaders that are instructions; others lead into the middle of one. */
static int count_and_reserve_blocks(struct basic_blocks *blocks)
{
	struct blocks_workspace *workspace = blocks->workspace;
	size_t words = (size_t)workspace->size / 64 + 1;
	uint32_t count = 0;

	blocks_set_bit(workspace->block_start_bitmap, 0);
	for (size_t i = 0; i < words; i++) {
		workspace->block_start_bitmap[i] &= workspace->instruction_start_bitmap[i];
		workspace->ranks[i] = count;
		count += (uint32_t)__builtin_popcountll(workspace->block_start_bitmap[i]);
	}
	blocks->count = count;
	return blocks_grow_any_array(&blocks->list, &workspace->list_capacity, count,
				     sizeof(*blocks->list));
}

/* The block that holds the offset of an instruction. */
static uint32_t get_block_index_at(const struct blocks_workspace *workspace, uint32_t offset)
{
	uint64_t upto = workspace->block_start_bitmap[offset / 64] << (63 - offset % 64);

	return workspace->ranks[offset / 64] + (uint32_t)__builtin_popcountll(upto) - 1;
}

static void set_bounds_of_all_blocks(struct basic_blocks *blocks)
{
	struct blocks_workspace *workspace = blocks->workspace;
	size_t words = (size_t)workspace->size / 64 + 1;
	uint32_t count = 0, instructions = 0;
	struct basic_block *block = NULL;

	for (size_t i = 0; i < words; i++) {
		uint64_t starts = workspace->instruction_start_bitmap[i],
			 leaders = workspace->block_start_bitmap[i];
		while (leaders) {
			uint64_t lowest = leaders & -leaders;
			uint32_t offset = (uint32_t)(i * 64) + (uint32_t)__builtin_ctzll(leaders);
			instructions += (uint32_t)__builtin_popcountll(starts & (lowest - 1));
			starts &= ~(lowest - 1);
			leaders &= leaders - 1;
			if (block) {
				block->size = offset - block->start;
				block->instructions = instructions;
			}
			instructions = 0;
			block = &blocks->list[count++];
			*block = (struct basic_block){.start = offset};
		}
		instructions += (uint32_t)__builtin_popcountll(starts);
	}
	if (block) {
		block->size = blocks->decoded_bytes - block->start;
		block->instructions = instructions;
	}
}

static void add_successor_unless_present(struct basic_blocks *blocks, struct basic_block *block,
					 uint32_t successor)
{
	for (uint32_t i = 0; i < block->successor_count; i++) {
		if (blocks->successors[block->first_successor + i] == successor)
			return;
	}
	blocks->successors[blocks->successor_count++] = successor;
	block->successor_count++;
}

static void add_branch_successor(struct basic_blocks *blocks, struct basic_block *block,
				 uint32_t offset)
{
	struct blocks_workspace *workspace = blocks->workspace;

	if (offset >= blocks->decoded_bytes)
		return;
	if (!blocks_bit_is_set(workspace->instruction_start_bitmap, offset))
		blocks->has_target_inside_instruction = true;
	add_successor_unless_present(blocks, block, get_block_index_at(workspace, offset));
}

/* Entries of a table are ascending and without duplicates. */
static void add_jump_table_successors(struct basic_blocks *blocks, struct basic_block *block,
				      uint32_t index)
{
	struct blocks_workspace *workspace = blocks->workspace;
	const struct blocks_jump_table *table = &workspace->tables[index];

	for (uint32_t i = 0; i < table->count; i++) {
		uint64_t offset = blocks->table_targets[table->first + i] - workspace->vaddr;
		if (offset >= blocks->decoded_bytes)
			continue;
		blocks->successors[blocks->successor_count++] =
			get_block_index_at(workspace, (uint32_t)offset);
		block->successor_count++;
	}
}

static void store_successors_of_block(struct basic_blocks *blocks, uint32_t index,
				      const struct block_end_instruction *end)
{
	struct basic_block *block = &blocks->list[index];
	bool passes = true;

	block->first_successor = blocks->successor_count;
	if (end) {
		block->flow = end->flow;
		passes = end->flow == INSTRUCTION_BRANCH;
		if (end->table != BLOCKS_INDEX_NONE)
			add_jump_table_successors(blocks, block, end->table);
		if (end->target != BLOCKS_INDEX_NONE)
			add_branch_successor(blocks, block, end->target);
	}
	if (passes && index + 1 < blocks->count)
		add_successor_unless_present(blocks, block, index + 1);
}

static int connect_blocks(struct basic_blocks *blocks)
{
	struct blocks_workspace *workspace = blocks->workspace;
	size_t edges = 2 * (size_t)blocks->count;
	uint32_t next = 0;
	int error;

	for (uint32_t i = 0; i < workspace->block_end_count; i++) {
		if (workspace->block_ends[i].table != BLOCKS_INDEX_NONE)
			edges += workspace->tables[workspace->block_ends[i].table].count;
	}
	error = blocks_grow_any_array(&blocks->successors, &workspace->successor_capacity, edges,
				      sizeof(*blocks->successors));
	if (error)
		return error;
	for (uint32_t i = 0; i < blocks->count; i++) {
		uint32_t behind = blocks->list[i].start + blocks->list[i].size;
		const struct block_end_instruction *end = NULL;
		if (next < workspace->block_end_count && workspace->block_ends[next].next == behind)
			end = &workspace->block_ends[next++];
		store_successors_of_block(blocks, i, end);
	}
	return 0;
}

int blocks_find_in_function(struct basic_blocks *blocks, const struct blocks_analysis_input *image,
			    const uint8_t *code, uint64_t vaddr, uint32_t size)
{
	int error = reset_blocks_for_function(blocks, image, code, vaddr, size);

	if (!error)
		error = decode_function_instructions(blocks);
	if (!error)
		error = blocks_read_jump_tables(blocks);
	if (!error)
		error = count_and_reserve_blocks(blocks);
	if (error)
		return error;
	set_bounds_of_all_blocks(blocks);
	error = connect_blocks(blocks);
	return error ? error : blocks_find_loops(blocks);
}
