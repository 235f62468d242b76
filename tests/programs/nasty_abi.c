/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Arguments and results of every kind, register allocation that looks into callees, nested
 * functions, and flags: what calls may carry beyond the usual registers arrives.
 */
#include "nasty.h"
#include <complex.h>
#include <immintrin.h>

#define ROUNDS 1000
struct pair {
	long a, b;
};
struct mixed {
	double a;
	long b;
};
struct big {
	long values[20];
};

NASTY_KEEP long abi_varargs(const char *kinds, ...)
{
	va_list arguments;
	double sum = 0;

	va_start(arguments, kinds);
	for (; *kinds; kinds++)
		sum += *kinds == 'd' ? va_arg(arguments, double) : (double)va_arg(arguments, long);
	va_end(arguments);
	return (long)sum;
}

NASTY_KEEP long double abi_x87(long double a, float b, long double c)
{
	NASTY_OPAQUE();
	return a * b + c;
}

NASTY_KEEP double complex abi_complex(double complex a, float complex b)
{
	NASTY_OPAQUE();
	return a * b;
}

NASTY_KEEP long double complex abi_long_complex(long double complex a)
{
	NASTY_OPAQUE();
	return a * a;
}

NASTY_KEEP struct pair abi_pair(struct pair a, struct mixed b)
{
	NASTY_OPAQUE();
	return (struct pair){a.b + b.b, a.a + (long)b.a};
}

NASTY_KEEP struct mixed abi_mixed(struct pair a, struct mixed b)
{
	NASTY_OPAQUE();
	return (struct mixed){(double)a.a + b.a, a.b + b.b};
}

NASTY_KEEP struct big abi_big(struct big given, long add)
{
	NASTY_OPAQUE();
	for (int i = 0; i < 20; i++)
		given.values[i] += add + i;
	return given;
}

NASTY_KEEP unsigned __int128 abi_int128(unsigned __int128 a, long b)
{
	NASTY_OPAQUE();
	return a * (unsigned long)b + 1;
}

NASTY_KEEP long abi_many(long a, long b, long c, long d, long e, long f, long g, double h, float i,
			 long j)
{
	NASTY_OPAQUE();
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + (long)(8 * h) + (long)(9 * i) +
	       10 * j;
}

__attribute__((target("avx2"))) NASTY_KEEP __m256i abi_avx2(__m256i a, __m256i b, __m256i c)
{
	NASTY_OPAQUE();
	return _mm256_add_epi32(_mm256_mullo_epi32(a, b), c);
}

__attribute__((target("avx2"))) static long avx2(int value)
{
	union {
		__m256i whole;
		int parts[8];
	} result = {.whole = abi_avx2(_mm256_set1_epi32(value), _mm256_set1_epi32(3),
				      _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8))};
	long sum = 0;

	for (int i = 0; i < 8; i++)
		sum = sum * 3 + result.parts[i];
	return sum;
}

__attribute__((target("avx512f"))) NASTY_KEEP __m512d abi_avx512(__m512d a, __m512d b,
								 __mmask8 mask)
{
	NASTY_OPAQUE();
	return _mm512_mask_add_pd(a, mask, a, b);
}

__attribute__((target("avx512f"))) static long avx512(int value)
{
	union {
		__m512d whole;
		double parts[8];
	} result = {.whole = abi_avx512(_mm512_set1_pd(value), _mm512_set1_pd(0.5), 0x5a)};
	double sum = 0;

	for (int i = 0; i < 8; i++)
		sum = sum * 3 + result.parts[i];
	return (long)sum;
}

/* A callee whose unused registers callers may go on using (-fipa-ra), vector registers too. */
__attribute__((noinline, used)) static long abi_leaf(long value)
{
	return value * 3 + 1;
}

NASTY_KEEP double abi_keeps(long a, double b, long c)
{
	double x = b * 1.5, y = b + 2.5, z = b * b;
	long p = a * 3, q = a ^ c, r = a - c;

	for (int i = 0; i < 5; i++) {
		p += abi_leaf(q);
		x = x * y + z;
		q = abi_leaf(r) - p;
		r += q & 7;
	}
	return x + y + z + (double)(p + q + r);
}

#ifndef __clang__
/* A nested function gets its frame in r10, and by way of a pointer through code on the stack. */
NASTY_KEEP long abi_nested(long base, long (*volatile call)(long (*)(long), long), long value)
{
	__attribute__((noinline)) long inner(long add)
	{
		NASTY_OPAQUE();
		base += add;
		return base * 2;
	}
	long sum = inner(value);

	return sum + call(inner, value + 1);
}
#endif

NASTY_KEEP long abi_calls(long (*function)(long), long value)
{
	return function(value);
}

/* Takes the carry and the direction flag as its caller left them, and gives them back. */
long abi_flags(long value);
long abi_flags_kept(long value);
__asm__(".text\n"
	".globl abi_flags\n"
	".type abi_flags, @function\n"
	"abi_flags:\n"
	".cfi_startproc\n"
	"	mov %rdi, %rax\n"
	"	adc $0, %rax\n"
	"	nop\n"
	"	pushfq\n"
	".cfi_adjust_cfa_offset 8\n"
	"	pop %rcx\n"
	".cfi_adjust_cfa_offset -8\n"
	"	and $0x400, %ecx\n"
	"	add %rcx, %rax\n"
	"	stc\n"
	"	ret\n"
	".cfi_endproc\n"
	".size abi_flags, . - abi_flags\n"
	".globl abi_flags_kept\n"
	".type abi_flags_kept, @function\n"
	"abi_flags_kept:\n"
	".cfi_startproc\n"
	"	sub $8, %rsp\n"
	".cfi_adjust_cfa_offset 8\n"
	"	std\n"
	"	stc\n"
	"	call abi_flags\n"
	"	setc %cl\n"
	"	cld\n"
	"	movzbl %cl, %ecx\n"
	"	lea (%rax,%rcx,2), %rdi\n"
	"	clc\n"
	"	call abi_flags\n"
	"	add $8, %rsp\n"
	".cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size abi_flags_kept, . - abi_flags_kept\n");

static double numbers(long i)
{
	struct big big = {{i, 2, 3}};
	struct pair pair = abi_pair((struct pair){i, 2}, (struct mixed){3.0, 4});
	struct mixed mixed = abi_mixed(pair, (struct mixed){5.0, i});
	double complex product = abi_complex(1.0 + (double)i * I, 2.0f - 1.0f * I);
	long double complex square = abi_long_complex(1.0L + (long double)i * I);
	unsigned __int128 wide = abi_int128((unsigned __int128)i << 70, 3);

	big = abi_big(big, i);
	return (double)pair.a + (double)pair.b + mixed.a + (double)mixed.b + creal(product) -
	       cimag(product) + (double)creall(square) + (double)(unsigned long)(wide >> 64) +
	       (double)big.values[0] + (double)big.values[19] +
	       (double)abi_x87(2.5L, 1.5f, (long double)i);
}

static void work(void)
{
	int avx2_here = __builtin_cpu_supports("avx2"),
	    avx512_here = __builtin_cpu_supports("avx512f");
	double real = 0;
	long whole = 0;

	for (long i = 0; i < ROUNDS; i++) {
		real += numbers(i) + abi_keeps(i, (double)i / 100, 3);
		whole += abi_varargs("lddldlldddddddddd", i, 1.5, 2.5, 3L, 4.5, 5L, 6L, 7.0, 8.0,
				     9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0);
		whole += abi_many(i, 2, 3, 4, 5, 6, 7, 8.5, 9.5f, 10) + abi_flags_kept(i);
		whole += (avx2_here ? avx2((int)i) : 0) + (avx512_here ? avx512((int)i) : 0);
#ifndef __clang__
		whole += abi_nested(i, abi_calls, 4);
#endif
	}
	nasty_say("real %.6f whole %ld\n", real, whole);
	nasty_count("abi_varargs", ROUNDS);
	nasty_count("abi_many", ROUNDS);
	nasty_count("abi_keeps", ROUNDS);
	nasty_count("abi_leaf", 10 * ROUNDS);
	nasty_count("abi_flags", 2 * ROUNDS);
	nasty_count("abi_big", ROUNDS);
	nasty_count("abi_avx2", avx2_here ? ROUNDS : 0);
	nasty_count("abi_avx512", avx512_here ? ROUNDS : 0);
}

int main(int argc, char **argv)
{
	return nasty_run(argc, argv, work);
}
