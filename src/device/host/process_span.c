/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See process_span.h.
 */
#include "device/host/process_span.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "device/host/process_events.h"

struct process_span {
	const struct process_set *set;
	size_t count;
	int *row;       /* descriptors of perf events, -1: none */
	double *values; /* at the beginning, then the differences */
};

/* false: a counter had to share the hardware, and has not seen everything. */
static bool read_all(const struct process_span *span, double *values, const char **shared)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	for (size_t i = 0; i < span->count; i++) {
		enum process_source source = process_set_source(span->set, i, shared);

		values[i] = 0;
		if (source < PROCESS_PERF)
			values[i] = process_account(source, CLOCK_THREAD_CPUTIME_ID, &usage);
		else if (!process_row_read(span->row[i], &values[i]))
			return false;
	}
	return true;
}

enum counting_status process_span_begin(const struct process_set *set, struct process_span **made,
					struct counting_problem *problem)
{
	struct process_span *span = calloc(1, sizeof(*span));
	const char *shared;

	problem->text[0] = '\0';
	if (span == NULL)
		return COUNTING_NO_MEMORY;
	span->set = set;
	span->count = process_set_values(set); /* one an event, without those of CPUs */
	span->row = malloc((span->count + 1) * sizeof(*span->row));
	span->values = calloc(2 * span->count + 1, sizeof(*span->values));
	if (span->row == NULL || span->values == NULL) {
		free(span->row);
		free(span->values);
		free(span);
		return COUNTING_NO_MEMORY;
	}
	if (process_row_open(set, span->row, problem) != COUNTING_OK) {
		span->count = 0;
		process_span_free(span);
		return COUNTING_FAILED;
	}
	*made = span;
	read_all(span, span->values, &shared);
	return COUNTING_OK;
}

enum counting_status process_span_end(struct process_span *span, double **values, size_t *count,
				      struct counting_problem *problem)
{
	double *now = span->values + span->count;
	const char *shared = "";

	if (!read_all(span, now, &shared)) {
		process_set_shared(shared, problem);
		return COUNTING_BUSY;
	}
	for (size_t i = 0; i < span->count; i++)
		now[i] -= span->values[i];
	*values = now;
	*count = span->count;
	return COUNTING_OK;
}

void process_span_free(struct process_span *span)
{
	process_row_close(span->row, span->count);
	free(span->row);
	free(span->values);
	free(span);
}
