/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads that stay for a while after the last thing that others hear of their end: a destructor of
 * thread-local data waits in the last round that libc makes of them.
 *
 * usage: threads_linger [THREADS]
 */
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

#define AT_ONCE   10
#define LINGER_US 120000

static pthread_key_t key;

static void linger_in_last_round(void *round)
{
	if ((intptr_t)round < PTHREAD_DESTRUCTOR_ITERATIONS)
		pthread_setspecific(key, (void *)((intptr_t)round + 1));
	else
		usleep(LINGER_US);
}

static void *thread_main(void *argument)
{
	pthread_setspecific(key, (void *)(intptr_t)1);
	return argument;
}

int main(int argc, char **argv)
{
	long left = argc > 1 ? atol(argv[1]) : 100;

	CHECK(pthread_key_create(&key, linger_in_last_round) == 0);
	for (; left > 0; left -= AT_ONCE) {
		pthread_t threads[AT_ONCE];
		for (int i = 0; i < AT_ONCE; i++)
			CHECK(pthread_create(&threads[i], NULL, thread_main, NULL) == 0);
		for (int i = 0; i < AT_ONCE; i++)
			CHECK(pthread_join(threads[i], NULL) == 0);
	}
	return check_passed("threads_linger");
}
