/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Clocks of the hosts of a job. Ranks of one host share one clock. What happened before something
 * on another host bounds the difference of their clocks from one side: a message that was received
 * was sent before, and a collective that needs all ranks ended after each had entered it. Both
 * sides together give the difference and how wrong it can be.
 *
 * Life: job_clocks_init(), then bounds, then job_clocks_solve(), then questions.
 */
#ifndef KYMO_JOB_RESULTS_CLOCKS_H
#define KYMO_JOB_RESULTS_CLOCKS_H

#include "job/job.h"

#define JOB_CLOCK_UNKNOWN INT64_MAX

struct job_clock {
	int64_t offset_ns; /* ahead of the first host's clock */
	int64_t error_ns;  /* JOB_CLOCK_UNKNOWN: it cannot be told */
};

struct job_clocks {
	const struct job *job;
	uint32_t host_count;
	uint32_t *host_of_rank; /* by index of the rank */
	int64_t *highest;       /* [a * host_count + b]: b is ahead of a by no more than this */
	struct job_clock *clocks;
};

/* 0 or -ENOMEM. */
int job_clocks_init(struct job_clocks *clocks, const struct job *job);
void job_clocks_deinit(struct job_clocks *clocks);
/* Something at a time of the first rank's host was before something of the second one's. Ranks are
 * indexes. */
void job_clocks_add_order(struct job_clocks *clocks, uint32_t before_rank, uint64_t before_ns,
			  uint32_t after_rank, uint64_t after_ns);
int job_clocks_solve(struct job_clocks *clocks);
/* The time on the first host's clock. */
int64_t job_clocks_align(const struct job_clocks *clocks, uint32_t rank, uint64_t time_ns);
/* How wrong a difference of times of these ranks can be. */
int64_t job_clocks_get_error(const struct job_clocks *clocks, uint32_t rank, uint32_t other);

#endif
