/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Many short threads, one after the other, joined and detached in turn; a few live at a time.
 *
 * usage: threads_churn [THREADS]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "check.h"

static atomic_int finished;

static void *thread_main(void *argument)
{
	for (volatile int spin = 0; spin < 2000; spin++)
		;
	atomic_fetch_add(&finished, 1);
	return argument;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 100000;

	for (int i = 0; i < threads; i++) {
		pthread_t thread;

		CHECK(pthread_create(&thread, NULL, thread_main, NULL) == 0);
		if (i % 8 == 0) {
			CHECK(pthread_detach(thread) == 0);
			while (atomic_load(&finished) < i + 1)
				sched_yield();
		} else {
			CHECK(pthread_join(thread, NULL) == 0);
		}
	}
	CHECK(atomic_load(&finished) == threads);
	return check_passed("threads_churn");
}
