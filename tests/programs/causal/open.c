/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Open loop: requests come by a timetable of their own, every millisecond or at random about it,
 * and wait in a queue for a thread that handles them. A faster program gets no more of them, it
 * only answers sooner. --spacing 2: half as many.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "workload.h"

#define QUEUE_SIZE 65536 /* power of two */

WORK(handle)
WORK(render)

static struct workload_point request = {.name = "request"};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static uint64_t arrivals[QUEUE_SIZE];
static unsigned head, tail;
static bool over;
static double length, spacing;

static void *run_handler(void *argument)
{
	for (;;) {
		pthread_mutex_lock(&lock);
		while (head == tail && !over)
			pthread_cond_wait(&not_empty, &lock);
		bool none = head == tail;
		uint64_t arrival = arrivals[tail % QUEUE_SIZE];
		tail += !none;
		pthread_mutex_unlock(&lock);
		if (none)
			return argument;
		handle(0.4 * length);
		render(0.2 * length);
		workload_end(&request, arrival);
	}
}

static void sleep_until(uint64_t time)
{
	struct timespec at = {(time_t)(time / 1000000000u), (long)(time % 1000000000u)};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* Nanoseconds to the next request: always the same ones in the same order. */
static uint64_t next_interval(bool random)
{
	static uint64_t state = 1;
	if (!random)
		return (uint64_t)(spacing * 1000);
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint64_t)(spacing * 1000 * (0.2 + 1.6 * (double)(state >> 40) / (double)(1 << 24)));
}

static void arrive(void)
{
	uint64_t arrival = workload_begin(&request);
	pthread_mutex_lock(&lock);
	CHECK(head - tail < QUEUE_SIZE);
	arrivals[head++ % QUEUE_SIZE] = arrival;
	pthread_cond_signal(&not_empty);
	pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = {"random", "regular", NULL};
	pthread_t handler;
	workload_start(argc, argv);
	length = workload_number("length", 1000);
	spacing = workload_number("spacing", 1) * length;
	bool random = workload_choice("kind", kinds) == 0;
	CHECK(pthread_create(&handler, NULL, run_handler, NULL) == 0);
	uint64_t next = workload_now();
	while (workload_running()) {
		next += next_interval(random);
		sleep_until(next);
		arrive();
	}
	pthread_mutex_lock(&lock);
	over = true;
	pthread_cond_signal(&not_empty);
	pthread_mutex_unlock(&lock);
	CHECK(pthread_join(handler, NULL) == 0);
	return workload_finish();
}
