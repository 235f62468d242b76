/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Who the others wait for. In a job whose ranks meet, the late rank waits least in MPI: the others
 * are there first. That is claimed only of jobs whose ranks are all here with all of their data,
 * and where one rank (or a few) waits much less than most others do.
 */
#ifndef KYMO_JOB_RESULTS_LATE_H
#define KYMO_JOB_RESULTS_LATE_H

#include "job/job.h"

enum job_late_verdict {
	JOB_LATE_NO_CALLS,   /* no rank has recorded calls of MPI */
	JOB_LATE_ONE_RANK,   /* there is nobody to wait for */
	JOB_LATE_INCOMPLETE, /* ranks are missing or not complete: nothing can be said */
	JOB_LATE_NOBODY,     /* no rank waits much less than the others */
	JOB_LATE_FOUND
};

/* One in 20, 5 %: a rank is late if the others wait this share of the run longer than it does; a
 * call path is shown if it has this share of the difference. */
#define JOB_LATE_GAP_SHARE 20
#define JOB_LATE_RANKS_MAX 8
#define JOB_LATE_PATHS_MAX 3

struct job_late {
	enum job_late_verdict verdict;
	uint32_t rank; /* index: who waits least */
	/* Ranks that wait about as little, `rank` with them; indexes of the first of them. */
	uint32_t late_count, late[JOB_LATE_RANKS_MAX];
	uint64_t wait_ns;        /* of `rank` */
	uint64_t others_wait_ns; /* the median of the others */
	uint64_t mean_wait_ns, mean_wall_ns;
	/* CPU time outside MPI: of `rank`, and the median of the others. */
	uint64_t work_ns, others_work_ns;
	/* Rows of paths, CPU or blocked time outside MPI, of which `rank` has the most, by what it
	 * has above the mean. */
	const struct job_row *paths[JOB_LATE_PATHS_MAX];
	uint32_t path_count;
	bool was_real_time_sampled;
};

/* Time in calls of MPI that wait for others. */
uint64_t job_rank_get_waiting_ns(const struct job_rank *rank);
uint64_t job_rank_get_work_ns(const struct job_rank *rank);
/* Ranks of which some data are missing. */
uint32_t job_count_incomplete_ranks(const struct job *job);
/* Of a sorted job. 0 or -ENOMEM. */
int job_find_late_rank(const struct job *job, struct job_late *ret);
/* Whether the rank's CPU time above that of the others explains at least half of their waiting. */
bool job_late_is_explained_by_work(const struct job_late *late);

#endif
