/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A program to be looked at, not run: its labels mark addresses whose functions, lines and inline
 * chains the tests know. MARK puts a global label (without type and size, as assembly does) and an
 * instruction that belongs to the line where it stands.
 */
#include <stdio.h>

#define MARK(name) __asm__ volatile(".globl mark_" #name "\nmark_" #name ": nop" ::: "memory")

static inline __attribute__((always_inline)) int innermost(int x)
{
	MARK(innermost); /* line 14 */
	return x * 3;
}

static inline __attribute__((always_inline)) int middle(int x)
{
	int y = innermost(x + 1); /* line 20 */
	MARK(middle);             /* line 21 */
	return y;
}

__attribute__((noinline)) int outermost(int x)
{
	MARK(outermost);      /* line 27 */
	return middle(x) + 1; /* line 28 */
}

static __attribute__((noinline)) int local_function(int x)
{
	MARK(local); /* line 33 */
	return x + outermost(x);
}

/* A second, uglier name for the same code. */
extern int __outermost_alias(int x) __attribute__((alias("outermost")));

__attribute__((noinline)) int encloses(int x)
{
	int nested(int y)
	{
		MARK(nested); /* line 44 */
		return y + x;
	}
	int (*volatile call)(int) = nested;
	return call(x);
}

int main(int argc, char **argv)
{
	(void)argv;
	printf("%d\n", local_function(argc) + encloses(argc));
	puts("done");
	return 0;
}
