/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Each thread locks a mutex of its own a given number of times. With `peak`, prints the peak of
 * resident memory in KiB (getrusage(2)), which differs from run to run.
 *
 * usage: locks_counted [THREADS LOCKS [peak]]
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "check.h"

static long locks;

static void *thread_main(void *argument)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	for (long i = 0; i < locks; i++) {
		CHECK(pthread_mutex_lock(&lock) == 0);
		CHECK(pthread_mutex_unlock(&lock) == 0);
	}
	return argument;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 4;
	struct rusage usage;
	pthread_t threads[64];

	locks = argc > 2 ? atol(argv[2]) : 1000;
	CHECK(count > 0 && count <= 64);
	for (int i = 0; i < count; i++)
		CHECK(pthread_create(&threads[i], NULL, thread_main, NULL) == 0);
	for (int i = 0; i < count; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
	if (argc > 3)
		printf("%ld\n", usage.ru_maxrss);
	return check_passed("locks_counted");
}
