/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The same CPU time at the bottom of a stack of 200 frames and at the bottom of one: a profiler
 * that counts frames instead of time gives nearly everything to the deep one.
 */
#include "check.h"

#define ROUNDS 40

__attribute__((noinline)) static void shallow_work(void)
{
	check_burn_ms(10);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void deep_work(int depth)
{
	if (depth > 0)
		deep_work(depth - 1);
	else
		check_burn_ms(10);
	__asm__ volatile("" ::: "memory");
}

int main(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		shallow_work();
		deep_work(200);
	}
	return check_passed("depths");
}
