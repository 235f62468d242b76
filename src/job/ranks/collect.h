/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The ranks of a session, for a job (job/job.h).
 */
#ifndef KYMO_JOB_RANKS_COLLECT_H
#define KYMO_JOB_RANKS_COLLECT_H

#include "analysis/session.h"
#include "job/job.h"

/* Adds every rank of the session, which has its symbols; `directory` is its name in the job.
 * *ret_ranks: how many there were. 0 or a negative errno, as job_merge(). */
int job_collect_session(struct job *job, struct session *session, const char *directory,
			uint32_t *ret_ranks, struct problem *problem);

#endif
