/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What ranks waited for in MPI, and whom: sends and receives matched across ranks, collectives put
 * together. The states have Scalasca's names.
 *
 *   late sender         a receive began to wait before its message was sent
 *   late receiver       a send waited before the receive was posted
 *   wait at barrier     until the last rank came
 *   wait at collective  the same, in collectives that need data of all ranks
 *   late broadcast      until the root came, in collectives that need data of the root
 *   early reduce        the root, until the last rank came
 *
 * A call that ends several messages waits for the last one, which has all of its waiting. What a
 * call that also receives waits for is no late receiver: the message may have been gone at once.
 *
 * Nothing is concluded of a job whose ranks are not all here and complete.
 */
#ifndef KYMO_JOB_RESULTS_WAITS_H
#define KYMO_JOB_RESULTS_WAITS_H

#include "job/job.h"

enum job_wait_state {
	JOB_WAIT_LATE_SENDER,
	JOB_WAIT_LATE_RECEIVER,
	JOB_WAIT_AT_BARRIER,
	JOB_WAIT_AT_COLLECTIVE,
	JOB_WAIT_LATE_BROADCAST,
	JOB_WAIT_EARLY_REDUCE,
	JOB_WAIT_STATE_COUNT
};

enum job_waits_verdict {
	JOB_WAITS_NO_EVENTS,
	JOB_WAITS_INCOMPLETE, /* ranks are missing, or have lost data */
	JOB_WAITS_FOUND
};

/* Waiting of one state at one site, caused by one rank at one site. */
struct job_wait_row {
	enum job_wait_state state;
	uint32_t name;                   /* site that waits */
	uint32_t cause_rank, cause_name; /* rank; site */
	uint64_t wait_ns, longest_ns, calls;
	uint32_t longest_rank; /* the lowest that waited longest */
};

struct job_waits {
	enum job_waits_verdict verdict;
	struct job_wait_row *rows; /* the most time first */
	uint32_t row_count;
	uint64_t state_ns[JOB_WAIT_STATE_COUNT], state_calls[JOB_WAIT_STATE_COUNT];
	uint64_t (*rank_ns)[JOB_WAIT_STATE_COUNT]; /* by index of the rank: that it waited */
	uint64_t *caused_ns;                       /* by index of the rank */
	uint64_t messages, collectives;            /* matched */
	uint64_t unmatched;    /* sends and receives without a partner, collectives without all */
	uint64_t cut, unknown; /* events beyond the limit, and on communicators not known */
	uint64_t below_clock_error;          /* waits that may be of the clocks alone */
	uint64_t clock_error_ns;             /* of the host whose clock is the least certain */
	uint32_t hosts, hosts_without_clock; /* the latter: not aligned with the first one */
};

/* Of a sorted job. 0 or -ENOMEM. */
int job_find_waits(const struct job *job, struct job_waits *ret);
void job_waits_deinit(struct job_waits *waits);
/* "late_sender" */
const char *job_wait_state_get_key(enum job_wait_state state);

#endif
