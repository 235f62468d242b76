/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A view of a result that grows: what its functions and threads did since the last look, or since
 * the start. Sums are those of the data that are there; an interval has the difference of two
 * looks. 100 % is one CPU, or one thread's real time, for all of the time.
 */
#ifndef KYMO_OUTPUT_LIVE_LIVE_H
#define KYMO_OUTPUT_LIVE_LIVE_H

#include <stdio.h>

#include "analysis/views.h"
#include "output/incomplete/incomplete.h"

enum { LIVE_CPU, LIVE_RUNNABLE, LIVE_BLOCKED, LIVE_THREAD_VALUES };

struct live_function {
	uint64_t key;         /* of its name and module */
	uint64_t self, total; /* of the measure, since the start */
	uint64_t self_before, total_before;
	char *name;
};

struct live_thread {
	uint64_t key; /* of its process and numbers */
	uint64_t values[LIVE_THREAD_VALUES], before[LIVE_THREAD_VALUES];
	char *name;
};

struct live_view {
	enum view_measure_kind measure;
	struct live_function *functions; /* by key */
	struct live_thread *threads;     /* by key */
	size_t function_count, thread_count;
	uint64_t start_ns, time_ns, time_before_ns; /* CLOCK_BOOTTIME */
	uint32_t running; /* processes that have not ended, as far as their files say */
	char title[256];
	struct incomplete_text incomplete;
};

struct live_options {
	size_t columns, lines; /* of the terminal; lines 0: no limit */
	size_t rows_max;       /* of functions and of threads, where there is no limit */
	bool is_since_start, is_by_total;
	const char *note; /* the last line; NULL: none */
};

/* Takes a look: `session` has its symbols, `time_ns` is now. 0 or -ENOMEM. */
int live_update(struct live_view *view, const struct session *session, uint64_t time_ns);
/* 0 or -ENOMEM. */
int live_write(const struct live_view *view, const struct live_options *options, FILE *stream);
void live_deinit(struct live_view *view);

#endif
