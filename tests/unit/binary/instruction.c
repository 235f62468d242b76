/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The decoder on instructions one by one, and at the end of memory. (Beside another decoder, on
 * whole programs: instruction_oracle.c.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "binary/instruction.h"
#include "common/array.h"

#define ADDRESS 0x401000ul

struct decode_case {
	const char *name;
	uint8_t bytes[16];
	uint8_t length, flow;
	uint8_t displacement_at, displacement_size, immediate_at, immediate_size;
	uint64_t target;
};

#define N INSTRUCTION_NEXT

static const struct decode_case cases[] = {
	{"nop", {0x90}, 1, N, 0, 0, 0, 0, 0},
	{"endbr64", {0xf3, 0x0f, 0x1e, 0xfa}, 4, N, 0, 0, 0, 0, 0},
	{"mov imm64", {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}, 10, N, 0, 0, 2, 8, 0},
	{"mov imm16", {0x66, 0xb8, 1, 2}, 4, N, 0, 0, 2, 2, 0},
	{"data16 under rex.w", {0x66, 0x48, 0x05, 1, 2, 3, 4}, 7, N, 0, 0, 3, 4, 0},
	{"rex that is overridden", {0x48, 0x66, 0xb8, 1, 2}, 5, N, 0, 0, 3, 2, 0},
	{"mov moffs64", {0xa1, 1, 2, 3, 4, 5, 6, 7, 8}, 9, N, 0, 0, 1, 8, 0},
	{"mov moffs32", {0x67, 0xa1, 1, 2, 3, 4}, 6, N, 0, 0, 2, 4, 0},
	{"enter", {0xc8, 1, 0, 0}, 4, N, 0, 0, 1, 3, 0},
	{"ret imm16", {0xc2, 8, 0}, 3, INSTRUCTION_RETURN, 0, 0, 1, 2, 0},
	{"repz ret", {0xf3, 0xc3}, 2, INSTRUCTION_RETURN, 0, 0, 0, 0, 0},
	{"iretq", {0x48, 0xcf}, 2, INSTRUCTION_RETURN, 0, 0, 0, 0, 0},
	{"sysret", {0x48, 0x0f, 0x07}, 3, INSTRUCTION_RETURN, 0, 0, 0, 0, 0},
	{"syscall", {0x0f, 0x05}, 2, N, 0, 0, 0, 0, 0},
	{"ud2", {0x0f, 0x0b}, 2, INSTRUCTION_STOP, 0, 0, 0, 0, 0},
	{"ud1", {0x67, 0x0f, 0xb9, 0x40, 0x0a}, 5, INSTRUCTION_STOP, 4, 1, 0, 0, 0},
	{"hlt", {0xf4}, 1, INSTRUCTION_STOP, 0, 0, 0, 0, 0},
	{"rip", {0x8b, 0x05, 0x10, 0, 0, 0}, 6, N, 2, 4, 0, 0, ADDRESS + 0x16},
	{"rip, immediate", {0xc6, 0x05, 0xf0, 0xff, 0xff, 0xff, 9}, 7, N, 2, 4, 6, 1, ADDRESS - 9},
	{"eip", {0x67, 0x8b, 0x05, 0x10, 0, 0, 0}, 7, N, 3, 4, 0, 0, ADDRESS + 0x17},
	{"sib without base", {0x8b, 0x04, 0x25, 1, 2, 3, 4}, 7, N, 3, 4, 0, 0, 0},
	{"sib, disp8", {0x8b, 0x44, 0x24, 8}, 4, N, 3, 1, 0, 0, 0},
	{"sib, r13 without base", {0x41, 0x8b, 0x04, 0x05, 1, 2, 3, 4}, 8, N, 4, 4, 0, 0, 0},
	{"test imm8", {0xf6, 0xc0, 1}, 3, N, 0, 0, 2, 1, 0},
	{"not", {0xf6, 0xd0}, 2, N, 0, 0, 0, 0, 0},
	{"test imm16", {0x66, 0xf7, 0x00, 1, 2}, 5, N, 0, 0, 3, 2, 0},
	{"mov cr0, its mod does not count", {0x0f, 0x20, 0x05}, 3, N, 0, 0, 0, 0, 0},
	{"jmp short", {0xeb, 0xfe}, 2, INSTRUCTION_JUMP, 0, 0, 1, 1, ADDRESS},
	{"je, hinted", {0x3e, 0x74, 4}, 3, INSTRUCTION_BRANCH, 0, 0, 2, 1, ADDRESS + 7},
	{"jne", {0x0f, 0x85, 0, 1, 0, 0}, 6, INSTRUCTION_BRANCH, 0, 0, 2, 4, ADDRESS + 0x106},
	{"jrcxz", {0xe3, 2}, 2, INSTRUCTION_BRANCH, 0, 0, 1, 1, ADDRESS + 4},
	{"xbegin", {0xc7, 0xf8, 2, 0, 0, 0}, 6, INSTRUCTION_BRANCH, 0, 0, 2, 4, ADDRESS + 8},
	{"xabort", {0xc6, 0xf8, 2}, 3, N, 0, 0, 2, 1, 0},
	{"call", {0xe8, 0xfb, 0xff, 0xff, 0xff}, 5, INSTRUCTION_CALL, 0, 0, 1, 4, ADDRESS},
	{"bnd call", {0xf2, 0xe8, 0, 0, 0, 0}, 6, INSTRUCTION_CALL, 0, 0, 2, 4, ADDRESS + 6},
	{"call *rax", {0xff, 0xd0}, 2, INSTRUCTION_CALL_INDIRECT, 0, 0, 0, 0, 0},
	{"notrack jmp *rax", {0x3e, 0xff, 0xe0}, 3, INSTRUCTION_JUMP_INDIRECT, 0, 0, 0, 0, 0},
	{"far jmp", {0x48, 0xff, 0x28}, 3, INSTRUCTION_JUMP_INDIRECT, 0, 0, 0, 0, 0},
	{"push memory", {0xff, 0x30}, 2, N, 0, 0, 0, 0, 0},
	{"pshufb", {0x66, 0x0f, 0x38, 0x00, 0xc1}, 5, N, 0, 0, 0, 0, 0},
	{"palignr", {0x66, 0x0f, 0x3a, 0x0f, 0xc1, 8}, 6, N, 0, 0, 5, 1, 0},
	{"extrq", {0x66, 0x0f, 0x78, 0xc0, 1, 2}, 6, N, 0, 0, 4, 2, 0},
	{"3DNow!", {0x0f, 0x0f, 0xc1, 0xbb}, 4, N, 0, 0, 3, 1, 0},
	{"vzeroupper", {0xc5, 0xf8, 0x77}, 3, N, 0, 0, 0, 0, 0},
	{"vpshufd", {0xc5, 0xf9, 0x70, 0xc1, 1}, 5, N, 0, 0, 4, 1, 0},
	{"vpermq", {0xc4, 0xe3, 0xfd, 0x00, 0xc1, 1}, 6, N, 0, 0, 5, 1, 0},
	{"evex, disp8", {0x62, 0xf1, 0x7c, 0x48, 0x10, 0x40, 1}, 7, N, 6, 1, 0, 0, 0},
	{"evex, rip, immediate",
	 {0x62, 0xf3, 0x7d, 0x48, 0x25, 0x05, 0, 0, 0, 0, 1},
	 11,
	 N,
	 6,
	 4,
	 10,
	 1,
	 ADDRESS + 11},
	{"xop, imm32", {0x8f, 0xea, 0x78, 0x10, 0xc1, 1, 2, 3, 4}, 9, N, 0, 0, 5, 4, 0},
	{"pop memory", {0x8f, 0x00}, 2, N, 0, 0, 0, 0, 0},
};

static void test_fields(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct decode_case *each = &cases[i];
		struct instruction found;
		if (!instruction_decode(each->bytes, 16, ADDRESS, &found))
			fail_msg("%s: rejected", each->name);
		if (found.length != each->length || found.flow != each->flow ||
		    found.displacement_offset != each->displacement_at ||
		    found.displacement_size != each->displacement_size ||
		    found.immediate_offset != each->immediate_at ||
		    found.immediate_size != each->immediate_size || found.target != each->target)
			fail_msg("%s: length %u, flow %u, displacement %u at %u, immediate %u at "
				 "%u, target %lx",
				 each->name, found.length, found.flow, found.displacement_size,
				 found.displacement_offset, found.immediate_size,
				 found.immediate_offset, (unsigned long)found.target);
	}
}

/* Every instruction just before unreadable memory: whole, and a byte short. */
static void test_ends_of_memory(void **state)
{
	uint8_t *page =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(mprotect(page + 4096, 4096, PROT_NONE), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct decode_case *each = &cases[i];
		struct instruction found;
		for (size_t size = 0; size <= each->length; size++) {
			memcpy(page + 4096 - size, each->bytes, size);
			assert_int_equal(
				instruction_decode(page + 4096 - size, size, ADDRESS, &found),
				size == each->length);
		}
	}
	munmap(page, 8192);
}

static void test_rejects(void **state)
{
	static const uint8_t none[][16] = {
		{0x06},                   /* push %es */
		{0x9a, 1, 2, 3, 4, 5, 6}, /* far call */
		{0x0f, 0x04},
		{0xfe, 0xd0},
		{0xff, 0xf8},
		{0xff, 0xd8}, /* far call through a register */
		{0x8f, 0xe0},
		{0x66, 0xc5, 0xf8, 0x77}, /* prefixes before VEX */
		{0x48, 0xc5, 0xf8, 0x77},
		{0xc5, 0x64, 0x85, 0, 0, 0, 0},
		{0x62, 0xf1, 0x78, 0x48, 0x10, 0xc0},
		{0x0f, 0xb8, 0xc0},
	};
	uint8_t prefixes[16];
	struct instruction found;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		if (instruction_decode(none[i], 16, ADDRESS, &found))
			fail_msg("accepted: %02x %02x %02x", none[i][0], none[i][1], none[i][2]);
	memset(prefixes, 0x66, sizeof(prefixes));
	assert_false(instruction_decode(prefixes, 16, ADDRESS, &found));
	prefixes[14] = 0x90;
	assert_true(instruction_decode(prefixes, 16, ADDRESS, &found));
	assert_int_equal(found.length, INSTRUCTION_LENGTH_MAX);
	prefixes[14] = 0xb0; /* mov imm8: 16 bytes */
	assert_false(instruction_decode(prefixes, 16, ADDRESS, &found));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_ends_of_memory),
		cmocka_unit_test(test_rejects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
