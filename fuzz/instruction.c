/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Fuzzes what is made of code: the input is a function, of which the last part can be read as jump
 * tables. Its instructions are decoded, moved near and far, and its blocks and loops found.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "binary/functions/blocks.h"
#include "binary/instruction.h"
#include "binary/plan/relocate.h"
#include "common/array.h"

#define VADDR 0x401000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void move(const uint8_t *bytes, uint64_t from, const struct instruction *instruction)
{
	static const uint64_t places[] = {0x500000, 0x7fffffff, 0x7ffff0000000};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		uint8_t out[RELOCATED_INSTRUCTION_BYTES_MAX];
		struct instruction moved;
		int length;
		length = relocate_instruction(bytes, instruction, from, places[i], from,
					      from + instruction->length, out);
		if (length == 0 || length > (int)RELOCATED_INSTRUCTION_BYTES_MAX)
			abort();
		if (length > 0 && !instruction_decode(out, (size_t)length, places[i], &moved))
			abort();
		/* What is only aimed anew refers to the same address. */
		if (length > 0 && instruction->is_rip_relative &&
		    instruction->flow == INSTRUCTION_NEXT && moved.target != instruction->target)
			abort();
	}
}

static void decode(const uint8_t *data, size_t size)
{
	size_t at = 0;

	while (at < size) {
		struct instruction instruction;
		if (!instruction_decode(data + at, size - at, VADDR + at, &instruction)) {
			at++;
			continue;
		}
		if (!instruction.length || instruction.length > size - at ||
		    instruction.displacement_offset + instruction.displacement_size >
			    instruction.length ||
		    instruction.immediate_offset + instruction.immediate_size > instruction.length)
			abort();
		move(data + at, VADDR + at, &instruction);
		at += instruction.length;
	}
}

static void check_blocks(const struct basic_blocks *blocks, size_t size)
{
	uint32_t at = 0, heads = 0;

	for (uint32_t i = 0; i < blocks->count; i++) {
		const struct basic_block *block = &blocks->list[i];
		if (block->start != at || !block->size || !block->instructions)
			abort();
		at += block->size;
		heads += block->is_loop_head;
		for (uint32_t k = 0; k < block->successor_count; k++) {
			if (blocks->successors[block->first_successor + k] >= blocks->count)
				abort();
		}
	}
	if (at != blocks->decoded_bytes || at > size || heads != blocks->loops)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct loaded_byte_range range = {.vaddr = VADDR, .size = size, .bytes = data};
	struct blocks_analysis_input image = {.ranges = &range,
					      .range_count = 1,
					      .code_low = VADDR,
					      .code_high = VADDR + size + 0x1000};
	struct basic_blocks blocks;

	if (size > 1u << 16)
		return 0;
	decode(data, size);
	if (blocks_init(&blocks))
		return 0;
	/* Twice: what is left of one function must not show in the next. */
	for (int i = 0; i < 2; i++) {
		if (blocks_find_in_function(&blocks, &image, data, VADDR, (uint32_t)size) == 0)
			check_blocks(&blocks, size);
	}
	blocks_deinit(&blocks);
	return 0;
}
