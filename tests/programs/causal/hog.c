/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The hottest code of the program is on a thread that nobody waits for: speeding it up gains
 * nothing. The thread that makes progress works all the time, or sleeps most of it (--sleep).
 */
#include <pthread.h>
#include <time.h>

#include "workload.h"

WORK(hog)
WORK(useful)
WORK(useful_too)

static double length;

static void *run_hog(void *argument)
{
	while (workload_running())
		hog(length);
	return argument;
}

int main(int argc, char **argv)
{
	static struct workload_point done = {.name = "done"};
	pthread_t thread;
	workload_start(argc, argv);
	length = workload_number("length", 1000);
	struct timespec pause = {.tv_nsec = (long)(workload_number("sleep", 0) * 1000)};
	CHECK(pthread_create(&thread, NULL, run_hog, NULL) == 0);
	while (workload_running()) {
		useful(0.5 * length);
		useful_too(0.25 * length);
		if (pause.tv_nsec)
			nanosleep(&pause, NULL);
		workload_visit(&done);
	}
	CHECK(pthread_join(thread, NULL) == 0);
	return workload_finish();
}
