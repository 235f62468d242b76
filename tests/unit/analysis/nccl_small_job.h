/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A job of up to eight ranks that runs in the tests: what they call, one after the other, and when
 * each of them comes to it. Files of its records are written by nccl_fixture.h.
 */
#ifndef KYMO_TESTS_NCCL_SMALL_JOB_H
#define KYMO_TESTS_NCCL_SMALL_JOB_H

#include <stdbool.h>

#include "common/time_units.h"
#include "unit/analysis/nccl_fixture.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)

#define SMALL_JOB_START             (INT64_C(1000) * (int64_t)SECOND_NS)
#define SMALL_JOB_RANKS_MAX         8
#define SMALL_JOB_COMMUNICATORS_MAX 8

struct small_job_communicator {
	int members[SMALL_JOB_RANKS_MAX], count;
	struct nccl_communicator_record *records[SMALL_JOB_RANKS_MAX]; /* by rank of the job */
	uint64_t sequences[SMALL_JOB_RANKS_MAX], sends[SMALL_JOB_RANKS_MAX][SMALL_JOB_RANKS_MAX],
		receives[SMALL_JOB_RANKS_MAX][SMALL_JOB_RANKS_MAX];
};

struct small_job {
	struct nccl_fixture fixtures[SMALL_JOB_RANKS_MAX];
	struct nccl_fixture *of[SMALL_JOB_RANKS_MAX]; /* the process of each rank */
	struct small_job_communicator communicators[SMALL_JOB_COMMUNICATORS_MAX];
	int64_t now[SMALL_JOB_RANKS_MAX], ahead[SMALL_JOB_RANKS_MAX];
	int size, communicator_count;
};

void small_job_begin(struct small_job *job, int size, int ranks_in_process, int ranks_on_host);
/* `members`: ranks of the job, a digit each. */
int small_job_add_communicator(struct small_job *job, const char *name, const char *members);
struct nccl_operation *small_job_enqueue(struct small_job *job,
					 const struct small_job_communicator *in, int rank,
					 const char *function, uint64_t sequence);
void small_job_run(struct small_job *job, int rank, struct nccl_operation *operation, int64_t begin,
		   int64_t end);
void small_job_call(struct small_job *job, int communicator, const char *function);
void small_job_all_reduce(struct small_job *job, int communicator);
struct nccl_operation *small_job_enqueue_transfer(struct small_job *job,
						  struct small_job_communicator *in, int rank,
						  bool sends, int peer, uint64_t sequence);
void small_job_send(struct small_job *job, int communicator, int from, int to);
void small_job_work(struct small_job *job, int rank, int64_t ns);
void small_job_work_all(struct small_job *job, int64_t ns);
/* Bit of a rank: its file is left out. */
void small_job_write(struct small_job *job, const char *directory, unsigned absent);

#endif
