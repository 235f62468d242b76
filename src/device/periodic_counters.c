/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See periodic_counters.h.
 */
#include "device/periodic_counters.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/monotonic.h"

#define AGENTS_MAX              64
#define READING_INTERVAL_MIN_NS 10000u
#define READING_INTERVAL_MAX_NS ((uint64_t)INT64_MAX) /* a time that is this far away is one */

struct periodic_reading_state {
	device_handle agent; /* DEVICE_HANDLE_NONE: free */
	void *set;
	size_t count;
	periodic_counters_read_callback *reader;
	uint64_t interval_ns, begin_ns;
	double *first, *last, *current_values; /* count each; last and now are the thread's */
	pthread_t thread;
	bool has_thread;
	bool must_clear_itself;
	sem_t ends; /* posted once */
};

static struct periodic_reading_state periodic_reading_states[AGENTS_MAX];
static pthread_mutex_t periodic_readings_lock = PTHREAD_MUTEX_INITIALIZER;

static struct periodic_reading_state *find_periodic_reading(device_handle agent)
{
	for (unsigned i = 0; i < AGENTS_MAX; i++) {
		if (periodic_reading_states[i].agent == agent)
			return &periodic_reading_states[i];
	}
	return NULL;
}

static void free_periodic_reading(struct periodic_reading_state *course)
{
	free(course->first);
	free(course->last);
	free(course->current_values);
	memset(course, 0, sizeof(*course));
}

static void clear_reading_if_self_stopped(struct periodic_reading_state *course)
{
	pthread_mutex_lock(&periodic_readings_lock);
	if (course->must_clear_itself)
		free_periodic_reading(course);
	pthread_mutex_unlock(&periodic_readings_lock);
}

/* The interval ends; what is behind it belongs to the next. */
static void emit_interval_values(struct periodic_reading_state *course,
				 const struct device_sink *sink, uint64_t *from)
{
	struct counting_problem problem = {""};
	uint64_t now = sink->now();
	double *values;

	if (course->reader(course->set, course->current_values, &problem) == COUNTING_NOT_READY)
		return;
	for (size_t i = 0; i < course->count; i++)
		course->last[i] = course->current_values[i] - course->last[i];
	values = course->last;
	course->last = course->current_values;
	course->current_values = values;
	sink->counting->device_sample_taken(course->agent, values, course->count, *from, now);
	*from = now;
}

/* Points in time are multiples of the interval, whatever a reading takes; those that were missed
 * altogether are counted. */
static void *run_reading_thread(void *data)
{
	struct periodic_reading_state *course = data;
	const struct device_sink *sink = device_get_sink();
	uint64_t from = course->begin_ns, next = monotonic_ns() + course->interval_ns;

	pthread_setname_np(pthread_self(), "kymo-counting");
	sink->exclude_calling_thread();
	for (;;) {
		struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
		uint64_t now, missed;

		if (sem_clockwait(&course->ends, CLOCK_MONOTONIC, &until) == 0) {
			emit_interval_values(course, sink,
					     &from); /* what there is of the last interval */
			clear_reading_if_self_stopped(course);
			return NULL;
		}
		emit_interval_values(course, sink, &from);
		next += course->interval_ns;
		now = monotonic_ns();
		missed = now > next ? (now - next) / course->interval_ns : 0;
		if (missed != 0)
			sink->counting->device_samples_lost(course->agent, missed);
		next += missed * course->interval_ns;
	}
}

static bool start_reading_thread(struct periodic_reading_state *course)
{
	const struct device_sink *sink = device_get_sink();
	sigset_t all, before;

	sigfillset(&all);
	sink->tool_thread_starting();
	pthread_sigmask(SIG_SETMASK, &all, &before);
	course->has_thread = pthread_create(&course->thread, NULL, run_reading_thread, course) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sink->tool_thread_started();
	return course->has_thread;
}

static enum counting_status begin_periodic_reading(struct periodic_reading_state *course,
						   struct counting_problem *problem)
{
	enum counting_status status;

	sem_init(&course->ends, 0, 0);
	course->first = calloc(course->count + 1, sizeof(double));
	course->last = calloc(course->count + 1, sizeof(double));
	course->current_values = calloc(course->count + 1, sizeof(double));
	if (course->first == NULL || course->last == NULL || course->current_values == NULL)
		return COUNTING_NO_MEMORY;
	status = course->reader(course->set, course->first, problem);
	if (status != COUNTING_OK && status != COUNTING_BUSY)
		return status;
	course->begin_ns = device_get_sink()->now();
	memcpy(course->last, course->first, course->count * sizeof(double));
	if (course->interval_ns != 0 && !start_reading_thread(course)) {
		snprintf(problem->text, sizeof(problem->text),
			 "cannot start a thread for the samples");
		return COUNTING_FAILED;
	}
	return COUNTING_OK;
}

/* 0: none. */
static uint64_t clamp_reading_interval_ns(uint64_t ns)
{
	if (ns > READING_INTERVAL_MAX_NS)
		return READING_INTERVAL_MAX_NS;
	return ns != 0 && ns < READING_INTERVAL_MIN_NS ? READING_INTERVAL_MIN_NS : ns;
}

enum counting_status periodic_counters_start_of_agent(device_handle agent, void *set, size_t count,
						      periodic_counters_read_callback *reader,
						      uint64_t interval_ns,
						      struct counting_problem *problem)
{
	enum counting_status status = COUNTING_BUSY;
	struct periodic_reading_state *course;

	problem->text[0] = '\0';
	pthread_mutex_lock(&periodic_readings_lock);
	course = find_periodic_reading(agent);
	if (course != NULL) {
		snprintf(problem->text, sizeof(problem->text),
			 "another context counts on this agent over time");
		pthread_mutex_unlock(&periodic_readings_lock);
		return status;
	}
	course = find_periodic_reading(DEVICE_HANDLE_NONE);
	status = COUNTING_FAILED;
	if (course != NULL) {
		course->agent = agent;
		course->set = set;
		course->count = count;
		course->reader = reader;
		course->interval_ns = clamp_reading_interval_ns(interval_ns);
		status = begin_periodic_reading(course, problem);
		if (status != COUNTING_OK)
			free_periodic_reading(course);
	}
	pthread_mutex_unlock(&periodic_readings_lock);
	return status;
}

enum counting_status periodic_counters_read_of_agent(device_handle agent, double *values,
						     size_t count, uint64_t *time,
						     struct counting_problem *problem)
{
	enum counting_status status = COUNTING_FAILED;
	const struct periodic_reading_state *course;

	problem->text[0] = '\0';
	pthread_mutex_lock(&periodic_readings_lock);
	course = agent == DEVICE_HANDLE_NONE ? NULL : find_periodic_reading(agent);
	if (course != NULL && course->count == count) {
		status = course->reader(course->set, values, problem);
		*time = device_get_sink()->now();
		for (size_t i = 0; i < count; i++)
			values[i] -= course->first[i];
	} else {
		snprintf(problem->text, sizeof(problem->text), "nothing is counted over time");
	}
	pthread_mutex_unlock(&periodic_readings_lock);
	return status;
}

/* The thread may be within the sink, which may wait for whoever calls this: so it is joined without
 * the lock. It may be the thread itself, in a callback of a tool: then it clears up at its end. */
void periodic_counters_stop_of_agent(device_handle agent)
{
	struct periodic_reading_state *course;
	bool is_itself;

	pthread_mutex_lock(&periodic_readings_lock);
	course = agent == DEVICE_HANDLE_NONE ? NULL : find_periodic_reading(agent);
	if (course == NULL) {
		pthread_mutex_unlock(&periodic_readings_lock);
		return;
	}
	is_itself = course->has_thread && pthread_equal(course->thread, pthread_self()) != 0;
	if (is_itself)
		pthread_detach(course->thread);
	course->must_clear_itself = is_itself;
	sem_post(&course->ends);
	pthread_mutex_unlock(&periodic_readings_lock);
	if (is_itself)
		return;
	if (course->has_thread)
		pthread_join(course->thread, NULL);
	pthread_mutex_lock(&periodic_readings_lock);
	free_periodic_reading(course);
	pthread_mutex_unlock(&periodic_readings_lock);
}

/* What is counted is the parent's. The child may begin again. */
void periodic_counters_reset_forked(void)
{
	pthread_mutex_init(&periodic_readings_lock, NULL);
	for (unsigned i = 0; i < AGENTS_MAX; i++)
		free_periodic_reading(&periodic_reading_states[i]);
}
