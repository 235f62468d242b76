/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See late.h.
 */
#include "job/results/late.h"

#include <errno.h>
#include <stdlib.h>

/* Ranks whose waiting is this near to the least, as a share of the gap, are late as well. */
#define LATE_TOO_SHARE_OF_GAP     4
#define LEAST_EXCESS_SHARE_OF_GAP 50

uint64_t job_rank_get_waiting_ns(const struct job_rank *rank)
{
	return rank->mpi_ns[JOB_MPI_BARRIER] + rank->mpi_ns[JOB_MPI_COLLECTIVE] +
	       rank->mpi_ns[JOB_MPI_POINT_TO_POINT] + rank->mpi_ns[JOB_MPI_FINALIZE];
}

uint64_t job_rank_get_work_ns(const struct job_rank *rank)
{
	return rank->cpu_ns > rank->cpu_in_mpi_ns ? rank->cpu_ns - rank->cpu_in_mpi_ns : 0;
}

uint32_t job_count_incomplete_ranks(const struct job *job)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < job->rank_count; i++)
		count += (job->ranks[i].flags & JOB_RANK_INCOMPLETE) != 0;
	return count;
}

static int compare_values(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* The lower median of all ranks but one. */
static uint64_t get_median_of_others(const struct job *job, uint32_t rank, uint64_t *values,
				     uint64_t (*get_value)(const struct job_rank *rank))
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < job->rank_count; i++) {
		if (i != rank)
			values[count++] = get_value(&job->ranks[i]);
	}
	qsort(values, count, sizeof(*values), compare_values);
	return values[(count - 1) / 2];
}

static void find_least_waiting_rank(const struct job *job, struct job_late *late)
{
	job_wide waits = 0, walls = 0;

	late->wait_ns = UINT64_MAX;
	for (uint32_t i = 0; i < job->rank_count; i++) {
		uint64_t wait_ns = job_rank_get_waiting_ns(&job->ranks[i]);

		waits += wait_ns;
		walls += job->ranks[i].wall_ns;
		if (wait_ns < late->wait_ns) {
			late->wait_ns = wait_ns;
			late->rank = i;
		}
	}
	late->mean_wait_ns = (uint64_t)(waits / job->rank_count);
	late->mean_wall_ns = (uint64_t)(walls / job->rank_count);
}

static void find_ranks_late_as_well(const struct job *job, struct job_late *late)
{
	uint64_t most =
		late->wait_ns + (late->others_wait_ns - late->wait_ns) / LATE_TOO_SHARE_OF_GAP;

	for (uint32_t i = 0; i < job->rank_count; i++) {
		if (job_rank_get_waiting_ns(&job->ranks[i]) > most)
			continue;
		if (late->late_count < JOB_LATE_RANKS_MAX)
			late->late[late->late_count] = i;
		late->late_count++;
	}
}

/* What is little beside the gap is noise, but CPU time of a machine that has too few CPUs is little
 * beside all the waiting for them: there a path counts that has most of the excess. */
static bool path_is_worth_showing(const struct job_late *late, const struct job_row *row,
				  uint64_t lost)
{
	uint64_t gap_ns = late->others_wait_ns - late->wait_ns,
		 excess_ns = late->work_ns > late->others_work_ns
				     ? late->work_ns - late->others_work_ns
				     : 0;

	if (lost > gap_ns / JOB_LATE_GAP_SHARE)
		return true;
	return row->quantity == JOB_CPU_OUTSIDE_MPI && lost > excess_ns / 2 &&
	       excess_ns > gap_ns / LEAST_EXCESS_SHARE_OF_GAP;
}

/* Rows are sorted by content, so equal ones stay in the same order. */
static void insert_path_by_excess(const struct job *job, struct job_late *late,
				  const struct job_row *row)
{
	uint64_t lost = job_moments_get_statistics(&row->moments, job->rank_count).lost;
	uint32_t at = late->path_count;

	while (at &&
	       job_moments_get_statistics(&late->paths[at - 1]->moments, job->rank_count).lost <
		       lost)
		at--;
	if (at == JOB_LATE_PATHS_MAX || !path_is_worth_showing(late, row, lost))
		return;
	if (late->path_count < JOB_LATE_PATHS_MAX)
		late->path_count++;
	for (uint32_t i = late->path_count - 1; i > at; i--)
		late->paths[i] = late->paths[i - 1];
	late->paths[at] = row;
}

static void find_paths_of_late_rank(const struct job *job, struct job_late *late)
{
	for (uint32_t i = 0; i < job->row_count; i++) {
		const struct job_row *row = &job->rows[i];

		if (!row->is_of_path)
			continue;
		late->was_real_time_sampled |= row->quantity == JOB_BLOCKED_OUTSIDE_MPI;
		if ((row->quantity == JOB_CPU_OUTSIDE_MPI ||
		     row->quantity == JOB_BLOCKED_OUTSIDE_MPI) &&
		    row->moments.maximum_rank == job->ranks[late->rank].rank)
			insert_path_by_excess(job, late, row);
	}
}

static enum job_late_verdict judge_data(const struct job *job)
{
	uint32_t with_mpi = 0;

	for (uint32_t i = 0; i < job->rank_count; i++)
		with_mpi += (job->ranks[i].flags & JOB_RANK_HAS_MPI) != 0;
	if (!with_mpi)
		return JOB_LATE_NO_CALLS;
	if (job_count_missing_ranks(job) || !job->size || with_mpi < job->rank_count ||
	    job_count_incomplete_ranks(job))
		return JOB_LATE_INCOMPLETE;
	return job->rank_count < 2 ? JOB_LATE_ONE_RANK : JOB_LATE_FOUND;
}

static int compare_with_others(const struct job *job, struct job_late *late)
{
	uint64_t *values = calloc((size_t)job->rank_count + 1, sizeof(*values));

	if (!values)
		return -ENOMEM;
	late->others_wait_ns =
		get_median_of_others(job, late->rank, values, job_rank_get_waiting_ns);
	late->others_work_ns = get_median_of_others(job, late->rank, values, job_rank_get_work_ns);
	late->work_ns = job_rank_get_work_ns(&job->ranks[late->rank]);
	free(values);
	return 0;
}

int job_find_late_rank(const struct job *job, struct job_late *ret)
{
	int error;

	*ret = (struct job_late){.verdict = judge_data(job)};
	if (ret->verdict != JOB_LATE_FOUND || job->rank_count < 2)
		return 0;
	find_least_waiting_rank(job, ret);
	error = compare_with_others(job, ret);
	if (error)
		return error;
	if (ret->others_wait_ns - ret->wait_ns < ret->mean_wall_ns / JOB_LATE_GAP_SHARE) {
		ret->verdict = JOB_LATE_NOBODY;
		return 0;
	}
	find_ranks_late_as_well(job, ret);
	find_paths_of_late_rank(job, ret);
	return 0;
}

bool job_late_is_explained_by_work(const struct job_late *late)
{
	return late->work_ns > late->others_work_ns &&
	       late->work_ns - late->others_work_ns >= (late->others_wait_ns - late->wait_ns) / 2;
}
