/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tail calls, millions in a chain, by jump and by pointer, and from a function with arguments on
 * the stack. Without optimisation they are calls: chains are short then, and there are more of
 * them.
 */
#include "nasty.h"

#ifdef __OPTIMIZE__
#define LENGTH 3000000
#define CHAINS 1
#else
#define LENGTH 3000
#define CHAINS 1000
#endif

NASTY_KEEP long tail_odd(long n, long sum);
NASTY_KEEP long tail_self(long n, long sum);

static long (*volatile self)(long n, long sum) = tail_self;

NASTY_KEEP long tail_even(long n, long sum)
{
	NASTY_OPAQUE();
	if (n == 0)
		return sum;
	return tail_odd(n - 1, sum + 1);
}

NASTY_KEEP long tail_odd(long n, long sum)
{
	NASTY_OPAQUE();
	if (n == 0)
		return -sum;
	return tail_even(n - 1, sum + 2);
}

NASTY_KEEP long tail_self(long n, long sum)
{
	NASTY_OPAQUE();
	if (n == 0)
		return sum;
	return self(n - 1, sum ^ n);
}

NASTY_KEEP long tail_many(long a, long b, long c, long d, long e, long f, long g, long h)
{
	NASTY_OPAQUE();
	if (a == 0)
		return b + c + d + e + f + g + h;
	return tail_many(a - 1, c, d, e, f, g, h, b);
}

static void work(void)
{
	long sum = 0;

	for (int i = 0; i < CHAINS; i++)
		sum += tail_even(LENGTH, 0) + tail_self(LENGTH / 10, 0);
	for (int i = 0; i < 100; i++)
		sum += tail_many(i, 1, 2, 3, 4, 5, 6, 7);
	nasty_say("sum %s\n", sum > 0 ? "positive" : "negative");
	nasty_count("tail_even", (LENGTH / 2 + 1) * CHAINS);
	nasty_count("tail_odd", LENGTH / 2 * CHAINS);
	nasty_count("tail_self", (LENGTH / 10 + 1) * CHAINS);
}

int main(int argc, char **argv)
{
	return nasty_run(argc, argv, work);
}
