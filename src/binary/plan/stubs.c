/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See stubs.h. All stubs are the same bytes but for numbers and distances, then come the displaced
 * instructions and a jump back.
 */
#include "binary/plan/stubs.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "binary/plan/relocate.h"

#define STUB_BYTES_MAX                                                                             \
	1024u /* more than any stub takes: a window is at most 20 bytes of instructions            \
	       */

/* What the layout in kymo/plan.h says, with zeros for numbers and distances. */
static const uint8_t function_stub_template[PLAN_STUB_BODY] = {
	0x68, 0,    0,    0,    0,          /* first: push $number */
	0xe8, 0,    0,    0,    0,          /* call count */
	0xeb, 0,                            /* jmp skipped */
	0xcc, 0xcc,                         /* int3 */
	0x48, 0x89, 0x4c, 0x24, 0xe8,       /* full: mov %rcx, -24(%rsp) */
	0x48, 0x8b, 0x0d, 0,    0,    0, 0, /* mov trampoline(%rip), %rcx */
	0xe3, 0,                            /* jrcxz closed */
	0x68, 0,    0,    0,    0,          /* push $number */
	0xe8, 0,    0,    0,    0,          /* call entry */
	0x48, 0x8d, 0x64, 0x24, 0x10,       /* lea 16(%rsp), %rsp */
	0xe8, 0,    0,    0,    0,          /* call body */
	0x48, 0x8d, 0x64, 0x24, 0xf8,       /* lea -8(%rsp), %rsp */
	0x68, 0,    0,    0,    0,          /* push $number */
	0xe8, 0,    0,    0,    0,          /* call exit */
	0x48, 0x8d, 0x64, 0x24, 0x08,       /* lea 8(%rsp), %rsp */
	0xc3,                               /* ret */
	0x48, 0x8d, 0x64, 0x24, 0x08,       /* skipped: lea 8(%rsp), %rsp */
	0xeb, 0,                            /* jmp closed */
	0xeb, 0,                            /* entry: jmp */
	0x48, 0x89, 0x4c, 0x24, 0xe8,       /* count: mov %rcx, -24(%rsp) */
	0x48, 0x8b, 0x0d, 0,    0,    0, 0, /* mov counts(%rip), %rcx */
	0xe3, 0,                            /* jrcxz closed */
	0x64, 0x48, 0x8b, 0x09,             /* mov %fs:(%rcx), %rcx */
	0xe3, 0,                            /* jrcxz first */
	0x48, 0x89, 0x44, 0x24, 0xf8,       /* mov %rax, -8(%rsp) */
	0x9f,                               /* lahf */
	0x0f, 0x90, 0xc0,                   /* seto %al */
	0x48, 0x03, 0x0d, 0,    0,    0, 0, /* add first_count(%rip), %rcx */
	0x48, 0xff, 0x81, 0,    0,    0, 0, /* incq 8 * number(%rcx) */
	0x04, 0x7f,                         /* add $0x7f, %al */
	0x9e,                               /* sahf */
	0x48, 0x8b, 0x44, 0x24, 0xf8,       /* mov -8(%rsp), %rax */
	0x48, 0x8b, 0x4c, 0x24, 0xe8,       /* closed: mov -24(%rsp), %rcx */
};

/* The stack below rsp may be in use in the middle of a function (red zone, System V ABI 3.2.2). */
static const uint8_t block_stub_template[] = {
	0x48, 0x8d, 0x64, 0x24, 0x80,          /* lea -128(%rsp), %rsp */
	0x51,                                  /* push %rcx */
	0x48, 0x8b, 0x0d, 0,    0,    0, 0,    /* mov trampoline(%rip), %rcx */
	0xe3, 0x0f,                            /* jrcxz skip */
	0x68, 0,    0,    0,    0,             /* push $number */
	0xe8, 0,    0,    0,    0,             /* call count */
	0x48, 0x8d, 0x64, 0x24, 0x08,          /* lea 8(%rsp), %rsp */
	0x59,                                  /* skip: pop %rcx */
	0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0, /* lea 128(%rsp), %rsp */
};

int stubs_init(struct stubs *stubs, uint64_t arena_vaddr)
{
	memset(stubs, 0, sizeof(*stubs));
	stubs->arena_vaddr = arena_vaddr;
	return 0;
}

void stubs_deinit(struct stubs *stubs)
{
	free(stubs->bytes);
	free(stubs->moves);
	memset(stubs, 0, sizeof(*stubs));
}

static int reserve_stub_room(struct stubs *stubs, uint32_t window)
{
	if (stubs->capacity - stubs->size < STUB_BYTES_MAX) {
		size_t capacity = stubs->capacity ? 2 * stubs->capacity : 1u << 16;
		uint8_t *bytes = realloc(stubs->bytes, capacity);

		if (!bytes)
			return -ENOMEM;
		stubs->bytes = bytes;
		stubs->capacity = capacity;
	}
	if (stubs->move_capacity - stubs->move_count < window) {
		size_t capacity = stubs->move_capacity ? 2 * stubs->move_capacity : 4096;
		struct plan_move *moves = realloc(stubs->moves, capacity * sizeof(*moves));

		if (!moves)
			return -ENOMEM;
		stubs->moves = moves;
		stubs->move_capacity = capacity;
	}
	return 0;
}

static void write_uint32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

/* The distance from the end of the four bytes at `at` to a place of the arena. Both are in the
 * arena, which is smaller than 2 GiB. */
static void write_arena_distance(struct stubs *stubs, uint8_t *at, uint32_t place)
{
	uint32_t from = PLAN_STUBS + (uint32_t)(at - stubs->bytes) + 4;

	write_uint32(at, place - from);
}

/* A jump's distance, of one byte that ends the instruction. */
static void write_short_jump_distance(uint8_t *stub, uint32_t at, uint32_t place)
{
	stub[at] = (uint8_t)(place - at - 1);
}

static void fill_counting_part_of_stub(struct stubs *stubs, uint8_t *stub, uint32_t number)
{
	uint32_t counts = (uint32_t)offsetof(struct plan_arena_data, counts);
	uint32_t first = (uint32_t)offsetof(struct plan_trampoline_constants, first_count);

	write_uint32(stub + 1, number);
	write_arena_distance(stubs, stub + 6, PLAN_TRAMPOLINE_COUNT);
	write_short_jump_distance(stub, 11, PLAN_STUB_SKIPPED);
	write_short_jump_distance(stub, 75, PLAN_STUB_CLOSED);
	stub[PLAN_STUB_MODE] = PLAN_STUB_TO_FULL;
	write_arena_distance(stubs, stub + 86, counts);
	write_short_jump_distance(stub, 91, PLAN_STUB_CLOSED);
	write_short_jump_distance(stub, 97, 0);
	write_arena_distance(stubs, stub + 110, PLAN_TRAMPOLINE_CONSTANTS + first);
	write_uint32(stub + 117, (uint32_t)sizeof(uint64_t) * number);
}

static uint8_t *write_function_stub(struct stubs *stubs, uint8_t *stub, uint32_t number)
{
	uint32_t start = PLAN_STUBS + (uint32_t)(stub - stubs->bytes);

	memcpy(stub, function_stub_template, sizeof(function_stub_template));
	fill_counting_part_of_stub(stubs, stub, number);
	write_arena_distance(stubs, stub + 22,
			     (uint32_t)offsetof(struct plan_arena_data, trampoline));
	write_short_jump_distance(stub, 27, PLAN_STUB_CLOSED);
	write_uint32(stub + 29, number);
	write_arena_distance(stubs, stub + 34, PLAN_TRAMPOLINE_ENTRY);
	write_arena_distance(stubs, stub + 44, start + PLAN_STUB_BODY);
	write_uint32(stub + PLAN_STUB_NUMBER, number);
	write_arena_distance(stubs, stub + 59, PLAN_TRAMPOLINE_EXIT);
	return stub + sizeof(function_stub_template);
}

static uint8_t *write_block_stub(struct stubs *stubs, uint8_t *stub, uint32_t number)
{
	memcpy(stub, block_stub_template, sizeof(block_stub_template));
	write_arena_distance(stubs, stub + 9,
			     (uint32_t)offsetof(struct plan_arena_data, trampoline));
	write_uint32(stub + 16, number);
	write_arena_distance(stubs, stub + 21, PLAN_TRAMPOLINE_COUNT);
	return stub + sizeof(block_stub_template);
}

/* The instructions of the window, each noted as a move, and the way back. Where they end, or a
 * negative errno. */
static int64_t write_relocated_window(struct stubs *stubs, uint8_t *at, const uint8_t *code,
				      uint64_t vaddr, uint32_t window, struct plan_site *site)
{
	uint64_t base = stubs->arena_vaddr + PLAN_STUBS - (uint64_t)(uintptr_t)stubs->bytes;
	struct instruction instruction = {.flow = INSTRUCTION_NEXT};
	uint8_t *const begin = at;
	int64_t back;

	for (uint32_t done = 0; done < window; done += instruction.length) {
		uint64_t to = base + (uint64_t)(uintptr_t)at;
		int length;

		if (!instruction_decode(code + done, window - done, vaddr + done, &instruction))
			return -ENOTSUP;
		length = relocate_instruction(code + done, &instruction, vaddr + done, to, vaddr,
					      vaddr + window, at);
		if (length < 0)
			return length;
		stubs->moves[stubs->move_count + site->move_count++] =
			(struct plan_move){.from = done, .to = (uint32_t)(to - stubs->arena_vaddr)};
		at += length;
	}
	if (instruction.flow == INSTRUCTION_JUMP || instruction.flow == INSTRUCTION_JUMP_INDIRECT ||
	    instruction.flow == INSTRUCTION_RETURN || instruction.flow == INSTRUCTION_STOP)
		return at - begin;
	back = (int64_t)(vaddr + window - (base + (uint64_t)(uintptr_t)at + 5));
	if (back != (int32_t)back)
		return -ERANGE;
	*at = 0xe9; /* jmp rel32 */
	write_uint32(at + 1, (uint32_t)back);
	return at + 5 - begin;
}

int64_t stubs_append_stub(struct stubs *stubs, enum stub_kind kind, uint32_t number,
			  const uint8_t *code, uint64_t vaddr, uint32_t window,
			  struct plan_site *site)
{
	int64_t length = reserve_stub_room(stubs, window);
	uint8_t *stub, *body;
	size_t start;

	if (length < 0)
		return length;
	start = (stubs->size + PLAN_STUB_ALIGN - 1) & ~(size_t)(PLAN_STUB_ALIGN - 1);
	stub = stubs->bytes + start;
	memset(stubs->bytes + stubs->size, 0xcc, start - stubs->size);
	body = kind == STUB_KIND_FUNCTION ? write_function_stub(stubs, stub, number)
					  : write_block_stub(stubs, stub, number);
	site->move_count = 0;
	site->first_move = (uint32_t)stubs->move_count;
	length = write_relocated_window(stubs, body, code, vaddr, window, site);
	if (length < 0)
		return length;
	stubs->move_count += site->move_count;
	stubs->size = (size_t)(body - stubs->bytes) + (size_t)length;
	return (int64_t)(PLAN_STUBS + start);
}
