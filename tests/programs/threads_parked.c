/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Many threads at once, each of which works a little and then waits until all are there.
 *
 * usage: threads_parked [THREADS]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "check.h"

static atomic_int arrived;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t everyone = PTHREAD_COND_INITIALIZER;
static int released;

static void *thread_main(void *argument)
{
	for (volatile int spin = 0; spin < 10000; spin++)
		;
	atomic_fetch_add(&arrived, 1);
	pthread_mutex_lock(&mutex);
	while (!released)
		pthread_cond_wait(&everyone, &mutex);
	pthread_mutex_unlock(&mutex);
	return argument;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 10000;
	pthread_t *handles = calloc((size_t)threads, sizeof(*handles));
	pthread_attr_t attributes;

	CHECK(handles && pthread_attr_init(&attributes) == 0);
	CHECK(pthread_attr_setstacksize(&attributes, 64 << 10) == 0);
	for (int i = 0; i < threads; i++)
		CHECK(pthread_create(&handles[i], &attributes, thread_main, &arrived) == 0);
	while (atomic_load(&arrived) < threads)
		usleep(1000);
	pthread_mutex_lock(&mutex);
	released = 1;
	pthread_cond_broadcast(&everyone);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < threads; i++) {
		void *result;

		CHECK(pthread_join(handles[i], &result) == 0 && result == &arrived);
	}
	free(handles);
	return check_passed("threads_parked");
}
