/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See over_time.h.
 */
#include "device/over_time.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AGENTS_MAX      64
#define INTERVAL_MIN_NS 10000u
#define INTERVAL_MAX_NS ((uint64_t)INT64_MAX) /* a time that is this far away is one */

struct course {
	device_handle agent; /* DEVICE_NONE: free */
	void *set;
	size_t count;
	over_time_reader *reader;
	uint64_t interval_ns, begun;
	double *first, *last, *now; /* count each; last and now are the thread's */
	pthread_t thread;
	bool has_thread;
	bool has_itself_to_clear;
	sem_t ends; /* posted once */
};

static struct course courses[AGENTS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct course *find(device_handle agent)
{
	for (unsigned i = 0; i < AGENTS_MAX; i++) {
		if (courses[i].agent == agent)
			return &courses[i];
	}
	return NULL;
}

static void clear(struct course *course)
{
	free(course->first);
	free(course->last);
	free(course->now);
	memset(course, 0, sizeof(*course));
}

static void end(struct course *course)
{
	pthread_mutex_lock(&lock);
	if (course->has_itself_to_clear)
		clear(course);
	pthread_mutex_unlock(&lock);
}

/* The interval ends; what is behind it belongs to the next. */
static void tell(struct course *course, const struct device_sink *sink, uint64_t *from)
{
	struct counting_problem problem = {""};
	uint64_t now = sink->now();
	double *values;

	if (course->reader(course->set, course->now, &problem) == COUNTING_NOT_READY)
		return;
	for (size_t i = 0; i < course->count; i++)
		course->last[i] = course->now[i] - course->last[i];
	values = course->last;
	course->last = course->now;
	course->now = values;
	sink->counting->device_sample(course->agent, values, course->count, *from, now);
	*from = now;
}

static uint64_t monotonic(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Points in time are multiples of the interval, whatever a reading takes; those that were missed
 * altogether are counted. */
static void *run(void *data)
{
	struct course *course = data;
	const struct device_sink *sink = device_sink();
	uint64_t from = course->begun, next = monotonic() + course->interval_ns;

	pthread_setname_np(pthread_self(), "kymo-counting");
	sink->own_thread();
	for (;;) {
		struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
		uint64_t now, missed;

		if (sem_clockwait(&course->ends, CLOCK_MONOTONIC, &until) == 0) {
			tell(course, sink, &from); /* what there is of the last interval */
			end(course);
			return NULL;
		}
		tell(course, sink, &from);
		next += course->interval_ns;
		now = monotonic();
		missed = now > next ? (now - next) / course->interval_ns : 0;
		if (missed != 0)
			sink->counting->device_samples_lost(course->agent, missed);
		next += missed * course->interval_ns;
	}
}

static bool start_thread(struct course *course)
{
	const struct device_sink *sink = device_sink();
	sigset_t all, before;

	sigfillset(&all);
	sink->thread_starting();
	pthread_sigmask(SIG_SETMASK, &all, &before);
	course->has_thread = pthread_create(&course->thread, NULL, run, course) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sink->thread_started();
	return course->has_thread;
}

static enum counting_status begin(struct course *course, struct counting_problem *problem)
{
	enum counting_status status;

	sem_init(&course->ends, 0, 0);
	course->first = calloc(course->count + 1, sizeof(double));
	course->last = calloc(course->count + 1, sizeof(double));
	course->now = calloc(course->count + 1, sizeof(double));
	if (course->first == NULL || course->last == NULL || course->now == NULL)
		return COUNTING_NO_MEMORY;
	status = course->reader(course->set, course->first, problem);
	if (status != COUNTING_OK && status != COUNTING_BUSY)
		return status;
	course->begun = device_sink()->now();
	memcpy(course->last, course->first, course->count * sizeof(double));
	if (course->interval_ns != 0 && !start_thread(course)) {
		snprintf(problem->text, sizeof(problem->text), "no thread for the samples");
		return COUNTING_FAILED;
	}
	return COUNTING_OK;
}

/* 0: none. */
static uint64_t interval_that_goes(uint64_t ns)
{
	if (ns > INTERVAL_MAX_NS)
		return INTERVAL_MAX_NS;
	return ns != 0 && ns < INTERVAL_MIN_NS ? INTERVAL_MIN_NS : ns;
}

enum counting_status over_time_start(device_handle agent, void *set, size_t count,
				     over_time_reader *reader, uint64_t interval_ns,
				     struct counting_problem *problem)
{
	enum counting_status status = COUNTING_BUSY;
	struct course *course;

	problem->text[0] = '\0';
	pthread_mutex_lock(&lock);
	course = find(agent);
	if (course != NULL) {
		snprintf(problem->text, sizeof(problem->text),
			 "another context counts on this agent over time");
		pthread_mutex_unlock(&lock);
		return status;
	}
	course = find(DEVICE_NONE);
	status = COUNTING_FAILED;
	if (course != NULL) {
		course->agent = agent;
		course->set = set;
		course->count = count;
		course->reader = reader;
		course->interval_ns = interval_that_goes(interval_ns);
		status = begin(course, problem);
		if (status != COUNTING_OK)
			clear(course);
	}
	pthread_mutex_unlock(&lock);
	return status;
}

enum counting_status over_time_read(device_handle agent, double *values, size_t count,
				    uint64_t *time, struct counting_problem *problem)
{
	enum counting_status status = COUNTING_FAILED;
	const struct course *course;

	problem->text[0] = '\0';
	pthread_mutex_lock(&lock);
	course = agent == DEVICE_NONE ? NULL : find(agent);
	if (course != NULL && course->count == count) {
		status = course->reader(course->set, values, problem);
		*time = device_sink()->now();
		for (size_t i = 0; i < count; i++)
			values[i] -= course->first[i];
	} else {
		snprintf(problem->text, sizeof(problem->text), "nothing is counted over time");
	}
	pthread_mutex_unlock(&lock);
	return status;
}

/* The thread may be within the sink, which may wait for whoever calls this: so it is joined without
 * the lock. It may be the thread itself, in a callback of a tool: then it clears up at its end. */
void over_time_stop(device_handle agent)
{
	struct course *course;
	bool is_itself;

	pthread_mutex_lock(&lock);
	course = agent == DEVICE_NONE ? NULL : find(agent);
	if (course == NULL) {
		pthread_mutex_unlock(&lock);
		return;
	}
	is_itself = course->has_thread && pthread_equal(course->thread, pthread_self()) != 0;
	if (is_itself)
		pthread_detach(course->thread);
	course->has_itself_to_clear = is_itself;
	sem_post(&course->ends);
	pthread_mutex_unlock(&lock);
	if (is_itself)
		return;
	if (course->has_thread)
		pthread_join(course->thread, NULL);
	pthread_mutex_lock(&lock);
	clear(course);
	pthread_mutex_unlock(&lock);
}

/* What is counted is the parent's. The child may begin anew. */
void over_time_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	for (unsigned i = 0; i < AGENTS_MAX; i++)
		clear(&courses[i]);
}
