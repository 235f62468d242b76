/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A thread that takes a lock which is always free, millions of times a second, as libraries do that
 * guard everything. Nobody waits: the lock is only to cost next to nothing. With --threads 2
 * another thread has been: from then on locks are taken by atomic operations.
 */
#include <pthread.h>

#include "workload.h"

#define TIMES 1000

WORK(guarded)
WORK(between)

static void *end_at_once(void *argument)
{
	return argument;
}

int main(int argc, char **argv)
{
	static struct workload_point done = {.name = "done"};
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	workload_start(argc, argv);
	double length = workload_number("length", 0.5);
	if (workload_number("threads", 1) > 1) {
		pthread_t other;
		CHECK(pthread_create(&other, NULL, end_at_once, NULL) == 0);
		CHECK(pthread_join(other, NULL) == 0);
	}
	while (workload_running()) {
		for (int i = 0; i < TIMES; i++) {
			pthread_mutex_lock(&lock);
			guarded(0.6 * length);
			pthread_mutex_unlock(&lock);
			between(0.4 * length);
		}
		workload_visit(&done);
	}
	return workload_finish();
}
