/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Most of the time inside the vDSO, and in functions that are reached through PLT and ifunc for the
 * first time: places where the stack's shape is unusual.
 */
#include <stdlib.h>
#include <sys/time.h>

#include "check.h"

int main(void)
{
	uint64_t end = check_clock_ns(CLOCK_THREAD_CPUTIME_ID) + 300 * NS_PER_MS, last = 0;
	char *buffer = malloc(1 << 16), *copy = malloc(1 << 16);

	CHECK(buffer && copy);
	memset(buffer, 'x', 1 << 16);
	buffer[(1 << 16) - 1] = 0;
	while (check_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		for (int i = 0; i < 2000; i++) {
			uint64_t now = check_clock_ns(CLOCK_MONOTONIC);

			CHECK(now >= last);
			last = now;
		}
		for (int i = 0; i < 20; i++) {
			memcpy(copy, buffer, 1 << 16);
			CHECK(strlen(copy) == (1 << 16) - 1 && strchr(copy, 'y') == NULL);
		}
	}
	free(buffer);
	free(copy);
	return check_passed("vdso");
}
