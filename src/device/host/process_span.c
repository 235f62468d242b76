/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See process_span.h.
 */
#include "device/host/process_span.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "device/host/process_events.h"

struct thread_counting_span {
	const struct process_counter_set *set;
	size_t count;
	int *row;       /* descriptors of perf events, -1: none */
	double *values; /* at the beginning, then the differences */
};

/* false: a counter had to share the hardware, and has not seen everything. */
static bool read_counters_of_thread_counting_span(const struct thread_counting_span *span,
						  double *values, const char **shared)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	for (size_t i = 0; i < span->count; i++) {
		enum process_counter_source source =
			process_counter_set_get_counter_source(span->set, i, shared);

		values[i] = 0;
		if (source < PROCESS_COUNTER_PERF_OF_THREADS)
			values[i] = process_get_clock_or_rusage_value(
				source, CLOCK_THREAD_CPUTIME_ID, &usage);
		else if (!process_read_and_add_perf_value(span->row[i], &values[i]))
			return false;
	}
	return true;
}

enum counting_status thread_counting_span_begin(const struct process_counter_set *set,
						struct thread_counting_span **made,
						struct counting_problem *problem)
{
	struct thread_counting_span *span = calloc(1, sizeof(*span));
	const char *shared;

	problem->text[0] = '\0';
	if (span == NULL)
		return COUNTING_NO_MEMORY;
	span->set = set;
	span->count =
		process_counter_set_get_value_count(set); /* one an event, without those of CPUs */
	span->row = malloc((span->count + 1) * sizeof(*span->row));
	span->values = calloc(2 * span->count + 1, sizeof(*span->values));
	if (span->row == NULL || span->values == NULL) {
		free(span->row);
		free(span->values);
		free(span);
		return COUNTING_NO_MEMORY;
	}
	if (process_open_perf_fd_row_of_this_thread(set, span->row, problem) != COUNTING_OK) {
		span->count = 0;
		thread_counting_span_free(span);
		return COUNTING_FAILED;
	}
	*made = span;
	read_counters_of_thread_counting_span(span, span->values, &shared);
	return COUNTING_OK;
}

enum counting_status thread_counting_span_end(struct thread_counting_span *span, double **values,
					      size_t *count, struct counting_problem *problem)
{
	double *now = span->values + span->count;
	const char *shared = "";

	if (!read_counters_of_thread_counting_span(span, now, &shared)) {
		process_set_multiplexed_counter_problem(shared, problem);
		return COUNTING_BUSY;
	}
	for (size_t i = 0; i < span->count; i++)
		now[i] -= span->values[i];
	*values = now;
	*count = span->count;
	return COUNTING_OK;
}

void thread_counting_span_free(struct thread_counting_span *span)
{
	process_close_perf_fd_row(span->row, span->count);
	free(span->row);
	free(span->values);
	free(span);
}
