/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Blocks and edges. One pass over the instructions marks where they begin and where branches lead,
 * in two bitmaps; jump tables add to these; then blocks are read off the bitmap.
 */
#include "binary/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/blocks_internal.h"

int blocks_reserve(void *array, size_t *capacity, size_t count, size_t size)
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

int blocks_init(struct blocks *blocks)
{
	memset(blocks, 0, sizeof(*blocks));
	blocks->workspace = calloc(1, sizeof(*blocks->workspace));
	return blocks->workspace ? 0 : -ENOMEM;
}

void blocks_deinit(struct blocks *blocks)
{
	struct blocks_workspace *workspace = blocks->workspace;

	if (workspace) {
		free(workspace->starts);
		free(workspace->leaders);
		free(workspace->ranks);
		free(workspace->ends);
		free(workspace->tables);
		free(workspace->graph);
		free(workspace->steps);
		free(workspace);
	}
	free(blocks->list);
	free(blocks->successors);
	free(blocks->table_targets);
	memset(blocks, 0, sizeof(*blocks));
}

/* One word more than needed, so that the offset behind the last byte has a bit. */
static int clear_bits(struct blocks_workspace *workspace, uint32_t size)
{
	size_t words = (size_t)size / 64 + 1, capacity = workspace->word_capacity;

	if (blocks_reserve(&workspace->ranks, &workspace->rank_capacity, words,
			   sizeof(*workspace->ranks)) ||
	    blocks_reserve(&workspace->starts, &capacity, words, sizeof(*workspace->starts)))
		return -ENOMEM;
	capacity = workspace->word_capacity;
	if (blocks_reserve(&workspace->leaders, &capacity, words, sizeof(*workspace->leaders)))
		return -ENOMEM;
	workspace->word_capacity = capacity;
	memset(workspace->starts, 0, words * sizeof(*workspace->starts));
	memset(workspace->leaders, 0, words * sizeof(*workspace->leaders));
	return 0;
}

static int reset(struct blocks *blocks, const struct blocks_image *image, const uint8_t *code,
		 uint64_t vaddr, uint32_t size)
{
	struct blocks_workspace *workspace = blocks->workspace;

	blocks->count = blocks->successor_count = blocks->table_target_count = 0;
	blocks->instructions = blocks->loops = blocks->decoded = 0;
	blocks->unknown_jumps = blocks->tables = 0;
	blocks->has_return = blocks->has_tail_jump = blocks->has_indirect_call = false;
	blocks->has_middle_target = false;
	workspace->end_count = workspace->table_count = workspace->address_count = 0;
	workspace->image = image;
	workspace->code = code;
	workspace->vaddr = vaddr;
	workspace->size = size;
	memset(workspace->loaded, 0, sizeof(workspace->loaded));
	return clear_bits(workspace, size);
}

/* It may be that of a jump table. */
static void note_address(struct blocks_workspace *workspace, const struct instruction *instruction)
{
	unsigned to =
		(instruction->modrm >> 3 & 7) | (instruction->rex & INSTRUCTION_REX_R ? 8u : 0);

	workspace->loaded[to] = instruction->target;
	if (workspace->address_count < BLOCKS_ADDRESSES &&
	    instruction->target - workspace->vaddr >= workspace->size)
		workspace->addresses[workspace->address_count++] = instruction->target;
}

static int add_end(struct blocks *blocks, uint32_t number, uint32_t next,
		   const struct instruction *instruction)
{
	struct blocks_workspace *workspace = blocks->workspace;
	struct blocks_end *end;
	uint64_t target = instruction->target - workspace->vaddr;
	int error = blocks_reserve(&workspace->ends, &workspace->end_capacity,
				   (size_t)workspace->end_count + 1, sizeof(*workspace->ends));

	if (error)
		return error;
	end = &workspace->ends[workspace->end_count++];
	*end = (struct blocks_end){.next = next,
				   .target = BLOCKS_NONE,
				   .table = BLOCKS_NONE,
				   .flow = instruction->flow};
	blocks_set_bit(workspace->leaders, next);
	switch (instruction->flow) {
	case INSTRUCTION_RETURN:
		blocks->has_return = true;
		return 0;
	case INSTRUCTION_JUMP_INDIRECT:
		return blocks_add_table(blocks, number, &end->table);
	case INSTRUCTION_JUMP:
	case INSTRUCTION_BRANCH:
		if (target < workspace->size) {
			end->target = (uint32_t)target;
			blocks_set_bit(workspace->leaders, end->target);
		} else {
			blocks->has_tail_jump = true;
		}
		return 0;
	default:
		return 0;
	}
}

static int read_instructions(struct blocks *blocks)
{
	struct blocks_workspace *workspace = blocks->workspace;
	const struct blocks_image *image = workspace->image;
	uint32_t offset = 0, number = 0;
	int error;

	for (; offset < workspace->size; number++) {
		struct instruction *instruction =
			&workspace->recent[number % BLOCKS_RECENT].instruction;
		uint64_t vaddr = workspace->vaddr + offset;
		if (!instruction_decode(workspace->code + offset, workspace->size - offset, vaddr,
					instruction))
			break;
		workspace->recent[number % BLOCKS_RECENT].offset = offset;
		blocks_set_bit(workspace->starts, offset);
		if (image->splits && functions_is_target(image->splits, vaddr))
			blocks_set_bit(workspace->leaders, offset);
		offset += instruction->length;
		if (image->each)
			image->each(image->context, vaddr, instruction);
		if (instruction->rip_relative && instruction->opcode == 0x8d && !instruction->map)
			note_address(workspace, instruction);
		if (instruction->flow == INSTRUCTION_NEXT || instruction->flow == INSTRUCTION_CALL)
			continue;
		if (instruction->flow == INSTRUCTION_CALL_INDIRECT) {
			blocks->has_indirect_call = true;
			continue;
		}
		error = add_end(blocks, number, offset, instruction);
		if (error)
			return error;
	}
	blocks->instructions = number;
	blocks->decoded = offset;
	return 0;
}

/* Blocks begin at leaders that are instructions; others lead into the middle of one. */
static int number_blocks(struct blocks *blocks)
{
	struct blocks_workspace *workspace = blocks->workspace;
	size_t words = (size_t)workspace->size / 64 + 1;
	uint32_t count = 0;

	blocks_set_bit(workspace->leaders, 0);
	for (size_t i = 0; i < words; i++) {
		workspace->leaders[i] &= workspace->starts[i];
		workspace->ranks[i] = count;
		count += (uint32_t)__builtin_popcountll(workspace->leaders[i]);
	}
	blocks->count = count;
	return blocks_reserve(&blocks->list, &workspace->list_capacity, count,
			      sizeof(*blocks->list));
}

/* The block that holds the offset of an instruction. */
static uint32_t block_at(const struct blocks_workspace *workspace, uint32_t offset)
{
	uint64_t upto = workspace->leaders[offset / 64] << (63 - offset % 64);

	return workspace->ranks[offset / 64] + (uint32_t)__builtin_popcountll(upto) - 1;
}

static void place_blocks(struct blocks *blocks)
{
	struct blocks_workspace *workspace = blocks->workspace;
	size_t words = (size_t)workspace->size / 64 + 1;
	uint32_t count = 0, instructions = 0;
	struct block *block = NULL;

	for (size_t i = 0; i < words; i++) {
		uint64_t starts = workspace->starts[i], leaders = workspace->leaders[i];
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
			*block = (struct block){.start = offset};
		}
		instructions += (uint32_t)__builtin_popcountll(starts);
	}
	if (block) {
		block->size = blocks->decoded - block->start;
		block->instructions = instructions;
	}
}

static void add_successor(struct blocks *blocks, struct block *block, uint32_t successor)
{
	for (uint32_t i = 0; i < block->successor_count; i++) {
		if (blocks->successors[block->first_successor + i] == successor)
			return;
	}
	blocks->successors[blocks->successor_count++] = successor;
	block->successor_count++;
}

static void add_branch(struct blocks *blocks, struct block *block, uint32_t offset)
{
	struct blocks_workspace *workspace = blocks->workspace;

	if (offset >= blocks->decoded)
		return;
	if (!blocks_bit(workspace->starts, offset))
		blocks->has_middle_target = true;
	add_successor(blocks, block, block_at(workspace, offset));
}

/* Entries of a table are ascending and without duplicates. */
static void add_table_edges(struct blocks *blocks, struct block *block, uint32_t index)
{
	struct blocks_workspace *workspace = blocks->workspace;
	const struct blocks_table *table = &workspace->tables[index];

	for (uint32_t i = 0; i < table->count; i++) {
		uint64_t offset = blocks->table_targets[table->first + i] - workspace->vaddr;
		if (offset >= blocks->decoded)
			continue;
		blocks->successors[blocks->successor_count++] =
			block_at(workspace, (uint32_t)offset);
		block->successor_count++;
	}
}

static void add_edges(struct blocks *blocks, uint32_t index, const struct blocks_end *end)
{
	struct block *block = &blocks->list[index];
	bool passes = true;

	block->first_successor = blocks->successor_count;
	if (end) {
		block->flow = end->flow;
		passes = end->flow == INSTRUCTION_BRANCH;
		if (end->table != BLOCKS_NONE)
			add_table_edges(blocks, block, end->table);
		if (end->target != BLOCKS_NONE)
			add_branch(blocks, block, end->target);
	}
	if (passes && index + 1 < blocks->count)
		add_successor(blocks, block, index + 1);
}

static int connect_blocks(struct blocks *blocks)
{
	struct blocks_workspace *workspace = blocks->workspace;
	size_t edges = 2 * (size_t)blocks->count;
	uint32_t next = 0;
	int error;

	for (uint32_t i = 0; i < workspace->end_count; i++) {
		if (workspace->ends[i].table != BLOCKS_NONE)
			edges += workspace->tables[workspace->ends[i].table].count;
	}
	error = blocks_reserve(&blocks->successors, &workspace->successor_capacity, edges,
			       sizeof(*blocks->successors));
	if (error)
		return error;
	for (uint32_t i = 0; i < blocks->count; i++) {
		uint32_t behind = blocks->list[i].start + blocks->list[i].size;
		const struct blocks_end *end = NULL;
		if (next < workspace->end_count && workspace->ends[next].next == behind)
			end = &workspace->ends[next++];
		add_edges(blocks, i, end);
	}
	return 0;
}

int blocks_find(struct blocks *blocks, const struct blocks_image *image, const uint8_t *code,
		uint64_t vaddr, uint32_t size)
{
	int error = reset(blocks, image, code, vaddr, size);

	if (!error)
		error = read_instructions(blocks);
	if (!error)
		error = blocks_read_tables(blocks);
	if (!error)
		error = number_blocks(blocks);
	if (error)
		return error;
	place_blocks(blocks);
	error = connect_blocks(blocks);
	return error ? error : blocks_find_loops(blocks);
}
