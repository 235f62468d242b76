/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A serial part, and a parallel one by two threads that all wait for: Amdahl's law.
 */
#include <pthread.h>

#include "workload.h"

WORK(serial_part)
WORK(parallel_part)

static pthread_barrier_t begin_parallel, end_parallel;
static double length;
static bool over; /* between the barriers */

static void *help(void *argument)
{
	for (;;) {
		pthread_barrier_wait(&begin_parallel);
		if (over)
			return argument;
		parallel_part(0.6 * length);
		pthread_barrier_wait(&end_parallel);
	}
}

int main(int argc, char **argv)
{
	static struct workload_point step = {.name = "step"};
	pthread_t helper;
	workload_start(argc, argv);
	length = workload_number("length", 1500);
	CHECK(pthread_barrier_init(&begin_parallel, NULL, 2) == 0);
	CHECK(pthread_barrier_init(&end_parallel, NULL, 2) == 0);
	CHECK(pthread_create(&helper, NULL, help, NULL) == 0);
	while (workload_running()) {
		serial_part(0.4 * length);
		pthread_barrier_wait(&begin_parallel);
		parallel_part(0.6 * length);
		pthread_barrier_wait(&end_parallel);
		workload_visit(&step);
	}
	over = true;
	pthread_barrier_wait(&begin_parallel);
	CHECK(pthread_join(helper, NULL) == 0);
	return workload_finish();
}
