/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "loop.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define THREADS_MAX 64

struct work {
	unsigned long count;
	double ns;
};

/* More threads than CPUs wait for each other: then it is CPU time that counts. */
static clockid_t measure_clock = CLOCK_MONOTONIC;

static double now_ns(void)
{
	struct timespec time;

	clock_gettime(measure_clock, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void *run(void *argument)
{
	struct work *work = argument;
	double start;

	loop_pairs(work->count / 100);
	start = now_ns();
	loop_pairs(work->count);
	work->ns = (now_ns() - start) / (double)work->count;
	return NULL;
}

int main(int count, char **arguments)
{
	unsigned long pairs = count > 1 ? strtoul(arguments[1], NULL, 10) : 1000000;
	unsigned long threads = count > 2 ? strtoul(arguments[2], NULL, 10) : 1;
	pthread_t ids[THREADS_MAX];
	struct work works[THREADS_MAX];
	double sum = 0;

	if (!threads || threads > THREADS_MAX)
		return 2;
	measure_clock = threads > 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
	for (unsigned long i = 0; i < threads; i++) {
		works[i] = (struct work){pairs / threads, 0};
		pthread_create(&ids[i], NULL, run, &works[i]);
	}
	for (unsigned long i = 0; i < threads; i++) {
		pthread_join(ids[i], NULL);
		sum += works[i].ns;
	}
	printf("%.1f\n", sum / (double)threads);
	return 0;
}
