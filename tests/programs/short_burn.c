/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Uses the given milliseconds of CPU time in burn().
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

__attribute__((noinline)) static void burn(uint64_t until)
{
	volatile uint64_t sum = 0;

	while (cpu_ns() < until) {
		for (unsigned i = 0; i < 10000; i++)
			sum = sum + i;
	}
}

int main(int count, char **arguments)
{
	if (count != 2)
		return 2;
	burn(cpu_ns() + strtoull(arguments[1], NULL, 10) * 1000000u);
	return 0;
}
