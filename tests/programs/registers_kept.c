/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Registers survive interruption at any instruction: x87 stack, SSE and (where the CPU has it) AVX
 * registers, the control words MXCSR and x87 CW with unusual rounding, the direction and other
 * flags, and the 128 bytes below the stack pointer that leaf functions use (the red zone).
 */
#include <fenv.h>
#include <stdlib.h>

#include "check.h"

#define SPINS 200000ul

/* Holds pi on the x87 stack over a long loop. */
static void x87(void)
{
	long double result;

	__asm__ volatile("fldpi\n\t"
			 "fld1\n\t"
			 "mov %1, %%rcx\n"
			 "1:\tdec %%rcx\n\t"
			 "jnz 1b\n\t"
			 "faddp\n\t"
			 : "=t"(result)
			 : "r"(SPINS)
			 : "rcx", "cc");
	CHECK(result > 4.14159265L && result < 4.14159266L);
}

static void sse(void)
{
	uint64_t in[2] = {0x0123456789abcdefull, 0xfedcba9876543210ull}, out[2], last[2];

	__asm__ volatile("movdqu (%0), %%xmm3\n\t"
			 "movdqu (%0), %%xmm15\n\t"
			 "mov %3, %%rcx\n"
			 "1:\tdec %%rcx\n\t"
			 "jnz 1b\n\t"
			 "movdqu %%xmm3, (%1)\n\t"
			 "movdqu %%xmm15, (%2)\n\t"
			 :
			 : "r"(in), "r"(out), "r"(last), "r"(SPINS)
			 : "rcx", "xmm3", "xmm15", "memory", "cc");
	CHECK(memcmp(in, out, sizeof(in)) == 0 && memcmp(in, last, sizeof(in)) == 0);
}

__attribute__((target("avx"))) static void avx(void)
{
	uint64_t in[4] = {1, 0x8000000000000001ull, 0x5555555555555555ull, ~0ull}, out[4];

	__asm__ volatile("vmovdqu (%0), %%ymm9\n\t"
			 "mov %2, %%rcx\n"
			 "1:\tdec %%rcx\n\t"
			 "jnz 1b\n\t"
			 "vmovdqu %%ymm9, (%1)\n\t"
			 "vzeroupper\n\t"
			 :
			 : "r"(in), "r"(out), "r"(SPINS)
			 : "rcx", "xmm9", "memory", "cc");
	CHECK(memcmp(in, out, sizeof(in)) == 0);
}

/* Unusual but legal control words and flags. */
static void controls(void)
{
	uint64_t flags = 0;

	CHECK(fesetround(FE_UPWARD) == 0);
	__asm__ volatile("std\n\t"
			 "stc\n\t"
			 "mov %1, %%rcx\n"
			 "1:\tlea -1(%%rcx), %%rcx\n\t"
			 "jrcxz 2f\n\t"
			 "jmp 1b\n"
			 "2:\tpushfq\n\t"
			 "cld\n\t"
			 "pop %0\n\t"
			 : "=r"(flags)
			 : "r"(SPINS)
			 : "rcx", "cc", "memory");
	CHECK((flags & 0x401) == 0x401);
	CHECK(fegetround() == FE_UPWARD);
	CHECK(fesetround(FE_TONEAREST) == 0);
}

/* The red zone belongs to the interrupted function. */
__attribute__((noinline)) static uint64_t red_zone(void)
{
	uint64_t sum;

	__asm__ volatile("mov %1, %%rcx\n\t"
			 "mov %%rcx, -8(%%rsp)\n\t"
			 "mov %%rcx, -64(%%rsp)\n\t"
			 "mov %%rcx, -128(%%rsp)\n"
			 "1:\tdec %%rcx\n\t"
			 "jnz 1b\n\t"
			 "mov -8(%%rsp), %0\n\t"
			 "add -64(%%rsp), %0\n\t"
			 "add -128(%%rsp), %0\n\t"
			 : "=r"(sum)
			 : "r"(SPINS)
			 : "rcx", "memory", "cc");
	return sum;
}

int main(void)
{
	uint64_t end = check_clock_ns(CLOCK_THREAD_CPUTIME_ID) + 500 * NS_PER_MS;

	while (check_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		x87();
		sse();
		if (__builtin_cpu_supports("avx"))
			avx();
		controls();
		CHECK(red_zone() == 3 * SPINS);
	}
	return check_passed("registers_kept");
}
