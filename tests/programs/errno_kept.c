/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * errno survives interruption at any instruction: set, spin, compare, millions of times, in several
 * threads.
 */
#include <pthread.h>
#include <stdlib.h>

#include "check.h"

static void *thread_main(void *argument)
{
	int base = (int)(uintptr_t)argument;
	uint64_t end = check_clock_ns(CLOCK_THREAD_CPUTIME_ID) + 300 * NS_PER_MS;

	for (int value = base; check_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end; value++) {
		for (int i = 0; i < 1000; i++) {
			errno = value + i;
			__asm__ volatile("" ::: "memory");
			for (volatile int spin = 0; spin < 20; spin++)
				;
			CHECK(errno == value + i);
		}
	}
	errno = 0;
	return NULL;
}

int main(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, thread_main,
				     (void *)(uintptr_t)(1000000 * i)) == 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return check_passed("errno_kept");
}
