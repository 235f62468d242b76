/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A function that does nothing, called in a loop: compiled with -pg for uftrace, without it for
 * comparison.
 *
 * usage: calls_loop PAIRS THREADS
 */
#include "loop.h"

__attribute__((noinline)) static void iteration(void)
{
	__asm__ volatile("");
}

void loop_pairs(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++)
		iteration();
}
