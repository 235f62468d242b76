/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads that are made for a piece of work and end with it: a thousand a second.
 */
#include <pthread.h>

#include "workload.h"

WORK(left_part)
WORK(right_part)
WORK(put_together)

static double length;

static void *run_left(void *argument)
{
	left_part(0.8 * length);
	return argument;
}

static void *run_right(void *argument)
{
	right_part(0.5 * length);
	return argument;
}

int main(int argc, char **argv)
{
	static struct workload_point done = {.name = "done"};
	workload_start(argc, argv);
	length = workload_number("length", 2000);
	while (workload_running()) {
		pthread_t left, right;
		CHECK(pthread_create(&left, NULL, run_left, NULL) == 0);
		CHECK(pthread_create(&right, NULL, run_right, NULL) == 0);
		CHECK(pthread_join(left, NULL) == 0);
		CHECK(pthread_join(right, NULL) == 0);
		put_together(0.2 * length);
		workload_visit(&done);
	}
	return workload_finish();
}
