/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A reader and a writer of something that a read-write lock guards, each with work outside of it.
 * Progress is what the reader makes. The writer prepares for longer than the reader looks up, or it
 * would be left to chance who comes to the lock first.
 */
#include <pthread.h>

#include "workload.h"

WORK(look_up)
WORK(use_result)
WORK(renew)
WORK(prepare)

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static double length;

static void *run_writer(void *argument)
{
	while (workload_running()) {
		prepare(0.45 * length);
		pthread_rwlock_wrlock(&lock);
		renew(0.6 * length);
		pthread_rwlock_unlock(&lock);
	}
	return argument;
}

int main(int argc, char **argv)
{
	static struct workload_point used = {.name = "used"};
	pthread_t writer;
	workload_start(argc, argv);
	length = workload_number("length", 800);
	CHECK(pthread_create(&writer, NULL, run_writer, NULL) == 0);
	while (workload_running()) {
		pthread_rwlock_rdlock(&lock);
		look_up(0.4 * length);
		pthread_rwlock_unlock(&lock);
		use_result(0.4 * length);
		workload_visit(&used);
	}
	CHECK(pthread_join(writer, NULL) == 0);
	return workload_finish();
}
