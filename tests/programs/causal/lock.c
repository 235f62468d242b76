/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads that work outside of a lock and inside of it. With two of them on two processors neither
 * part is all that counts; with more (--threads) there are always some that want to run and cannot.
 */
#include <pthread.h>

#include "workload.h"

#define MAX_THREADS 64

WORK(inside_lock)
WORK(outside_lock)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double length;

static void *run(void *argument)
{
	static struct workload_point turn = {.name = "turn"};
	while (workload_running()) {
		outside_lock(0.5 * length);
		pthread_mutex_lock(&lock);
		inside_lock(0.5 * length);
		pthread_mutex_unlock(&lock);
		workload_visit(&turn);
	}
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_THREADS];
	workload_start(argc, argv);
	length = workload_number("length", 600);
	unsigned count = (unsigned)workload_number("threads", 2);
	CHECK(count > 0 && count <= MAX_THREADS);
	for (unsigned i = 0; i < count; i++)
		CHECK(pthread_create(&threads[i], NULL, run, NULL) == 0);
	for (unsigned i = 0; i < count; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	return workload_finish();
}
