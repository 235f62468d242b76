/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Moved instructions do the same: each case runs where it was written, then as a moved copy, and
 * the registers, flags and memory after both are compared.
 *
 * A case is a piece of code that begins at `moved` and leaves by jumping to one of two exits; a
 * harness in assembly sets registers, enters, and stores what is there at the exit.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "binary/plan/relocate.h"
#include "common/array.h"

#define NEAR     0x10000000ul /* where code is mapped; below 2 GB, as is everything else here */
#define FAR_COPY 0x50000000ul
#define PAGE     4096ul
#define CODE     (NEAR + 0x800)
#define DATA     (NEAR + PAGE)

/* rax, rcx, rdx, rbx, rsi, rdi, r8 to r15, flags, what lies at the top of the stack, exit. */
#define REGISTERS 14
struct state {
	uint64_t registers[REGISTERS];
	uint64_t flags, top, depth, exit;
};

static struct state before __attribute__((used)), after __attribute__((used));
static uint64_t entry_address __attribute__((used)), saved_stack __attribute__((used));

/* Loads `before`, jumps to entry_address; exits come to run_exit with their number in r15. */
void run_case(void);
void run_exit(void);
__asm__(".text\n"
	".type run_case, @function\n"
	"run_case:\n"
	"	push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
	"	mov %rsp, saved_stack(%rip)\n"
	"	sub $256, %rsp\n"
	"	lea before(%rip), %rbp\n"
	"	pushq 112(%rbp)\n popfq\n"
	"	mov 0(%rbp), %rax\n mov 8(%rbp), %rcx\n mov 16(%rbp), %rdx\n mov 24(%rbp), %rbx\n"
	"	mov 32(%rbp), %rsi\n mov 40(%rbp), %rdi\n mov 48(%rbp), %r8\n mov 56(%rbp), %r9\n"
	"	mov 64(%rbp), %r10\n mov 72(%rbp), %r11\n mov 80(%rbp), %r12\n mov 88(%rbp), %r13\n"
	"	mov 96(%rbp), %r14\n"
	"	jmp *entry_address(%rip)\n"
	".type run_exit, @function\n"
	"run_exit:\n"
	"	lea after(%rip), %rbp\n"
	"	mov %rax, 0(%rbp)\n mov %rcx, 8(%rbp)\n mov %rdx, 16(%rbp)\n mov %rbx, 24(%rbp)\n"
	"	mov %rsi, 32(%rbp)\n mov %rdi, 40(%rbp)\n mov %r8, 48(%rbp)\n mov %r9, 56(%rbp)\n"
	"	mov %r10, 64(%rbp)\n mov %r11, 72(%rbp)\n mov %r12, 80(%rbp)\n mov %r13, 88(%rbp)\n"
	"	mov %r14, 96(%rbp)\n"
	"	mov (%rsp), %rax\n mov %rax, 120(%rbp)\n"
	"	lea (%rsp), %rax\n mov %rax, 128(%rbp)\n"
	"	mov %r15, 136(%rbp)\n"
	"	pushfq\n popq 112(%rbp)\n"
	"	mov saved_stack(%rip), %rsp\n"
	"	pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n"
	"	ret\n");

/* Code at `at` that tells which exit it is and leaves; flags are kept. */
static uint8_t *put_exit(uint8_t *at, uint32_t number)
{
	uint64_t target = (uint64_t)(uintptr_t)run_exit;

	memcpy(at, "\x41\xbf", 2); /* mov $number, %r15d */
	memcpy(at + 2, &number, 4);
	memcpy(at + 6, "\xff\x25\0\0\0\0", 6); /* jmp *(%rip) */
	memcpy(at + 12, &target, 8);
	return at + 20;
}

static uint8_t *map_at(uint64_t address, size_t size)
{
	uint8_t *mapped = mmap((void *)address, size, PROT_READ | PROT_WRITE | PROT_EXEC,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	assert_ptr_equal(mapped, address);
	return mapped;
}

struct relocate_case {
	const char *name;
	uint8_t bytes[16];
	uint8_t size;
	uint64_t rax, rcx, flags;
};

/* Branch targets are 0x40 behind the instruction's begin, data at DATA. */
#define FLAG_CARRY  1u
#define FLAG_ZERO   0x40u
#define OTHER       0x40u
#define REL32(size) (OTHER - (size)) & 0xff, 0, 0, 0
#define DISTANCE(size)                                                                             \
	((DATA + 0x10 - CODE - (size)) & 0xff), ((DATA + 0x10 - CODE - (size)) >> 8) & 0xff, 0, 0

static const struct relocate_case cases[] = {
	{"mov reg", {0x48, 0x89, 0xc1}, 3, 5, 0, 0},
	{"add", {0x48, 0x01, 0xc1}, 3, ~0ul, 1, 0},
	{"push", {0x50}, 1, 77, 0, 0},
	{"load", {0x48, 0x8b, 0x05, DISTANCE(7)}, 7, 0, 0, 0},
	{"store", {0x48, 0x89, 0x05, DISTANCE(7)}, 7, 0x123456789, 0, 0},
	{"store immediate", {0xc7, 0x05, DISTANCE(10), 0x78, 0x56, 0x34, 0x12}, 10, 0, 0, 0},
	{"compare immediate", {0x83, 0x3d, DISTANCE(7), 0x11}, 7, 0, 0, 0},
	{"test immediate", {0xf6, 0x05, DISTANCE(7), 0x11}, 7, 0, 0, 0},
	{"lea", {0x48, 0x8d, 0x0d, DISTANCE(7)}, 7, 0, 0, 0},
	{"lea, data16", {0x66, 0x48, 0x8d, 0x0d, DISTANCE(8)}, 8, 0, 0, 0},
	{"comiss", {0x0f, 0x2f, 0x05, DISTANCE(7)}, 7, 0, 0, 0},
	{"pcmpistri", {0x66, 0x0f, 0x3a, 0x63, 0x05, DISTANCE(10), 0x1b}, 10, 0, 9, 0},
	{"vptest", {0xc4, 0xe2, 0x79, 0x17, 0x05, DISTANCE(9)}, 9, 0, 0, 0},
	{"cmov", {0x48, 0x0f, 0x44, 0x05, DISTANCE(8)}, 8, 3, 0, FLAG_ZERO},
	{"jmp short", {0xeb, OTHER - 2}, 2, 0, 0, 0},
	{"jmp", {0xe9, REL32(5)}, 5, 0, 0, 0},
	{"jmp, bnd", {0xf2, 0xe9, REL32(6)}, 6, 0, 0, 0},
	{"je short", {0x74, OTHER - 2}, 2, 0, 0, FLAG_ZERO},
	{"je short, not taken", {0x74, OTHER - 2}, 2, 0, 0, 0},
	{"jb", {0x0f, 0x82, REL32(6)}, 6, 0, 0, FLAG_CARRY},
	{"jae, not taken", {0x0f, 0x83, REL32(6)}, 6, 0, 0, FLAG_CARRY},
	{"jrcxz", {0xe3, OTHER - 2}, 2, 0, 0, FLAG_CARRY},
	{"jrcxz, not taken", {0xe3, OTHER - 2}, 2, 0, 1ul << 32, 0},
	{"jecxz", {0x67, 0xe3, OTHER - 3}, 3, 0, 1ul << 32, 0},
	{"loop", {0xe2, OTHER - 2}, 2, 0, 2, FLAG_ZERO},
	{"loop, done", {0xe2, OTHER - 2}, 2, 0, 1, 0},
	{"loopne", {0xe0, OTHER - 2}, 2, 0, 2, FLAG_ZERO},
	{"loope", {0xe1, OTHER - 2}, 2, 0, 2, FLAG_ZERO},
	{"call", {0xe8, REL32(5)}, 5, 0, 0, FLAG_CARRY},
	{"call, addr32", {0x67, 0xe8, REL32(6)}, 6, 0, 0, 0},
	{"call, data16 rex", {0x66, 0x66, 0x48, 0xe8, REL32(8)}, 8, 0, 0, 0},
	{"call through memory", {0xff, 0x15, DISTANCE(6)}, 6, 0, 0, FLAG_ZERO},
	{"call through memory, data16 rex", {0x66, 0x48, 0xff, 0x15, DISTANCE(8)}, 8, 0, 0, 0},
	{"call register", {0xff, 0xd0}, 2, CODE + OTHER, 0, 0},
	{"call r8, notrack", {0x3e, 0x41, 0xff, 0xd0}, 4, 0, 0, 0},
	{"call *8(rax)", {0xff, 0x50, 0x08}, 3, DATA + 8, 0, FLAG_CARRY},
	{"call *(rax,rcx,8)", {0xff, 0x14, 0xc8}, 3, DATA, 2, 0},
	{"call *(r12)", {0x41, 0xff, 0x14, 0x24}, 4, 0, 0, 0},
	{"jmp through memory", {0xff, 0x25, DISTANCE(6)}, 6, 0, 0, 0},
	{"jmp register", {0xff, 0xe0}, 2, CODE + OTHER, 0, 0},
	{"endbr64", {0xf3, 0x0f, 0x1e, 0xfa}, 4, 0, 0, 0},
};

/* Fills DATA: its third word, which all operands refer to, is the address of the other exit. */
static void fill_data(void)
{
	uint64_t words[4] = {0x1111111111111111, 0x2222222222222222, CODE + OTHER,
			     0x4444444444444444};

	memcpy((void *)DATA, words, sizeof(words));
}

static void run_at(const struct relocate_case *each, uint64_t address, struct state *ret,
		   uint8_t *ret_data)
{
	memset(&before, 0, sizeof(before));
	memset(&after, 0, sizeof(after));
	fill_data();
	before.registers[0] = each->rax;
	before.registers[1] = each->rcx;
	before.registers[6] = CODE + OTHER; /* r8 */
	before.registers[10] = DATA + 0x10; /* r12 */
	before.flags = 0x202 | each->flags;
	entry_address = address;
	run_case();
	*ret = after;
	memcpy(ret_data, (void *)DATA, 64);
}

static void run_one(const struct relocate_case *each, uint64_t to)
{
	uint8_t *code = (uint8_t *)CODE, *copy = (uint8_t *)to;
	uint8_t first_data[64], second_data[64];
	struct instruction instruction;
	struct state first, second;
	int length;

	memset(code, 0xcc, 0x100);
	memset(copy, 0xcc, 0x100);
	memcpy(code, each->bytes, each->size);
	put_exit(code + each->size, 1);
	put_exit(code + OTHER, 2);
	assert_true(instruction_decode(code, each->size, CODE, &instruction));
	assert_int_equal(instruction.length, each->size);
	length = relocate_instruction(code, &instruction, CODE, to, CODE, CODE + each->size, copy);
	assert_true(length > 0 && length <= (int)RELOCATED_INSTRUCTION_BYTES_MAX);
	put_exit(copy + length, 1);
	run_at(each, CODE, &first, first_data);
	run_at(each, to, &second, second_data);
	if (memcmp(&first, &second, sizeof(first)))
		print_message("%s: state differs, exits %d and %d\n", each->name, (int)first.exit,
			      (int)second.exit);
	assert_memory_equal(&first, &second, sizeof(first));
	assert_memory_equal(first_data, second_data, sizeof(first_data));
}

static void test_runs_the_same(void **state)
{
	(void)state;
	map_at(NEAR, 2 * PAGE);
	map_at(FAR_COPY, PAGE);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (cases[i].bytes[0] == 0xc4 && !__builtin_cpu_supports("avx"))
			continue;
		run_one(&cases[i], FAR_COPY + 0x100);
		run_one(&cases[i], NEAR + 0x123);
	}
	munmap((void *)NEAR, 2 * PAGE);
	munmap((void *)FAR_COPY, PAGE);
}

static int relocate(const uint8_t *bytes, size_t size, uint64_t to, uint64_t window)
{
	struct instruction instruction;
	uint8_t out[RELOCATED_INSTRUCTION_BYTES_MAX];
	uint8_t padded[16] = {0};

	memcpy(padded, bytes, size);
	assert_true(instruction_decode(padded, size, CODE, &instruction));
	assert_int_equal(instruction.length, size);
	return relocate_instruction(padded, &instruction, CODE, to, CODE, CODE + window, out);
}

#define RELOCATE(to, window, ...)                                                                  \
	relocate((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), to, window)

static void test_refuses(void **state)
{
	(void)state;
	/* into the window */
	assert_int_equal(RELOCATE(FAR_COPY, 8, 0xeb, 0x02), -ENOTSUP);
	assert_int_equal(RELOCATE(FAR_COPY, 8, 0x75, 0xff), -ENOTSUP);
	/* ... but to its first instruction, where the patch is */
	assert_true(RELOCATE(FAR_COPY, 8, 0x75, 0xfe) > 0);
	assert_int_equal(RELOCATE(FAR_COPY, 8, 0xe3, 0x01), -ENOTSUP);
	assert_int_equal(RELOCATE(FAR_COPY, 8, 0xe8, 0, 0, 0, 0), -ENOTSUP);
	assert_int_equal(RELOCATE(FAR_COPY, 8, 0x8b, 0x05, 0xfa, 0xff, 0xff, 0xff), -ENOTSUP);
	/* returning into the window */
	assert_int_equal(RELOCATE(FAR_COPY, 8, 0xff, 0xd0), -ENOTSUP);
	assert_int_equal(RELOCATE(FAR_COPY, 8, 0xe8, 0x20, 0, 0, 0), -ENOTSUP);
	/* through the stack pointer, far, restarting */
	assert_int_equal(RELOCATE(FAR_COPY, 2, 0xff, 0xd4), -ENOTSUP);
	assert_int_equal(RELOCATE(FAR_COPY, 3, 0xff, 0x14, 0x24), -ENOTSUP);
	assert_int_equal(RELOCATE(FAR_COPY, 4, 0xff, 0x54, 0x24, 0x08), -ENOTSUP);
	assert_int_equal(RELOCATE(FAR_COPY, 2, 0xff, 0x18), -ENOTSUP);
	assert_int_equal(RELOCATE(FAR_COPY, 6, 0xc7, 0xf8, 0x10, 0, 0, 0), -ENOTSUP);
	/* what processors disagree on, and 32-bit addresses */
	assert_int_equal(RELOCATE(FAR_COPY, 6, 0x66, 0xe9, 0x10, 0, 0, 0), -ENOTSUP);
	assert_int_equal(RELOCATE(FAR_COPY, 7, 0x67, 0x8b, 0x05, 0, 1, 0, 0), -ENOTSUP);
	/* out of reach */
	assert_int_equal(RELOCATE(CODE + (1ul << 32), 7, 0x48, 0x8b, 0x05, 0, 1, 0, 0), -ERANGE);
	assert_int_equal(RELOCATE(CODE + (1ul << 32), 5, 0xe9, 0, 1, 0, 0), -ERANGE);
	assert_int_equal(RELOCATE(CODE - (1ul << 32), 2, 0x74, 0x40), -ERANGE);
}

/* call next; pop %rcx: the address that is read is the original one. */
static void test_reads_its_own_address(void **state)
{
	(void)state;
	assert_true(RELOCATE(FAR_COPY, 5, 0xe8, 0, 0, 0, 0) > 0);
	assert_true(RELOCATE(FAR_COPY, 8, 0x48, 0x8d, 0x05, 0xf9, 0xff, 0xff, 0xff) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_the_same),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_reads_its_own_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
