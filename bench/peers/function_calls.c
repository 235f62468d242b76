/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A function that does nearly nothing, called over and over, and fib(): what recording every call
 * of it costs. Prints ns of CPU time a call, the least of some rounds, on standard output: "leaf
 * N", "fib N", and with the argument rdtsc what two time stamps in its place cost.
 *
 * usage: function_calls CALLS [rdtsc]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#define ROUNDS    5
#define FIB       24
#define FIB_CALLS 150049.0 /* of fib(24): 2 * F(25) - 1 */

#define OUTSIDE __attribute__((no_instrument_function))

__attribute__((noinline)) static uint64_t leaf(uint64_t x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

__attribute__((noinline)) static uint64_t fib(uint64_t n)
{
	__asm__ volatile("" : "+r"(n));
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

OUTSIDE static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

OUTSIDE static uint64_t run_leaf(uint64_t calls)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < calls; i++)
		sum = leaf(sum);
	return sum;
}

OUTSIDE static uint64_t run_time_stamps(uint64_t calls)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < calls; i++)
		sum += __rdtsc() ^ __rdtsc();
	return sum;
}

OUTSIDE static uint64_t run_fib(uint64_t calls)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < calls; i++)
		sum += fib(FIB);
	return sum;
}

OUTSIDE static void measure(const char *name, uint64_t (*run)(uint64_t), uint64_t times,
			    double calls)
{
	double least = 1e30;
	volatile uint64_t sink;

	for (int round = 0; round < ROUNDS; round++) {
		double begin = cpu_ns(), ns;

		sink = run(times);
		ns = (cpu_ns() - begin) / calls;
		least = ns < least ? ns : least;
	}
	(void)sink;
	printf("%s %.2f\n", name, least);
}

OUTSIDE int main(int argc, char **argv)
{
	uint64_t calls = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000000,
		 times = calls / 150049 + 1;

	if (argc > 2 && strcmp(argv[2], "rdtsc") == 0)
		measure("rdtsc", run_time_stamps, calls, (double)calls);
	measure("leaf", run_leaf, calls, (double)calls);
	measure("fib", run_fib, times, FIB_CALLS * (double)times);
	return 0;
}
