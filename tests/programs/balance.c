/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regions around and across switches of the thread and of the process. Each lock inside "outer" is
 * at depth 1 whatever was off before: a profiler that counts the depth of what it left out drifts.
 */
#include <pthread.h>

#include "check.h"
#include "kymo/user.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void locked(int times)
{
	for (int i = 0; i < times; i++) {
		CHECK(pthread_mutex_lock(&lock) == 0);
		CHECK(pthread_mutex_unlock(&lock) == 0);
	}
}

static void *thread_main(void *argument)
{
	for (int round = 0; round < 10; round++) {
		kymo_push_region("outer");
		locked(1);
		kymo_stop_thread_trace();
		locked(1);
		kymo_push_region("inner");
		kymo_start_thread_trace();
		locked(1);
		kymo_pop_region("inner");
		locked(1);
		kymo_stop_thread_trace();
		kymo_pop_region("outer");
		kymo_start_thread_trace();
	}
	return argument;
}

int main(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, thread_main, NULL) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	return check_passed("balance");
}
