/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The program that the samples look at: threads with marks and nested ranges, one range that begins
 * on one thread and ends on another. It knows nothing of tools; without one the calls do nothing.
 *
 *   workload [THREADS [STEPS]]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <rocprofiler-sdk-roctx/roctx.h>

static int steps = 10;

static void *work(void *argument)
{
	const char *name = argument;

	roctxNameOsThread(name);
	for (int step = 0; step < steps; step++) {
		roctxRangePush("step");
		roctxRangePush("inner");
		roctxMark("here");
		roctxRangePop();
		roctxRangePop();
	}
	return NULL;
}

static void *finish(void *argument)
{
	roctxRangeStop(*(const roctx_range_id_t *)argument);
	return NULL;
}

int main(int count, char **arguments)
{
	int threads = count > 1 ? atoi(arguments[1]) : 2;
	pthread_t thread[64];
	char names[64][16];
	roctx_range_id_t whole;

	steps = count > 2 ? atoi(arguments[2]) : steps;
	if (threads < 1 || threads > 64 || steps < 0) {
		fprintf(stderr, "usage: workload [THREADS (1 to 64) [STEPS]]\n");
		return 2;
	}
	whole = roctxRangeStart("whole");
	for (int i = 0; i < threads; i++) {
		snprintf(names[i], sizeof(names[i]), "worker %d", i);
		if (pthread_create(&thread[i], NULL, work, names[i]))
			return 1;
	}
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	if (pthread_create(&thread[0], NULL, finish, &whole))
		return 1;
	pthread_join(thread[0], NULL);
	printf("workload: %d threads, %d steps\n", threads, steps);
	return 0;
}
