/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Samples of one measure in order of time, thread by thread, for formats that keep each. Their
 * weights add up to what other outputs say: time that no sample stands for is a sample at the end
 * of its thread.
 *
 * Where there are more than `limit`, those of one thread, stack and source that lie in the same
 * span of time become one; the span doubles until the rest fits. Threads beyond the busiest
 * thousand are added up by process (thread_sums.h).
 */
#ifndef KYMO_OUTPUT_TIMED_SAMPLES_H
#define KYMO_OUTPUT_TIMED_SAMPLES_H

#include "analysis/views.h"

struct timed_sample {
	uint64_t time_ns; /* its end, since the session's start; of several, the last one's */
	uint64_t weight, count;
	uint32_t group, node;
	uint32_t source; /* enum model_source */
};

struct timed_samples {
	struct timed_sample *samples; /* by group, then time */
	size_t count;
	uint64_t span_ns; /* within which samples are added up; 0: each stands for itself */
	uint32_t *group_of_thread;
	uint32_t group_count; /* threads, then one for each process: its other threads */
};

/* 0, -ENOMEM, or what reading the samples gives; deinit is needed after either. */
int timed_samples_init(struct timed_samples *samples, struct session *session,
		       enum view_measure_kind measure, size_t limit, struct problem *problem);
void timed_samples_deinit(struct timed_samples *samples);

/* The thread that a group is of, or NULL; *ret_process is its process in either case. */
const struct model_thread *timed_samples_get_thread(const struct session *session, uint32_t group,
						    uint32_t *ret_process);
/* "thread 4711 (program)", "other threads (program)". `size` bytes at most. */
void timed_samples_format_group_name(char *buffer, size_t size, const struct session *session,
				     uint32_t group);
/* By thread: its group. malloc'ed; NULL: no memory. */
uint32_t *timed_samples_create_groups(const struct session *session);

#endif
