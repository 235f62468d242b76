/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See collect.h. Each rank becomes a job of its own, and these are merged: what is right for two
 * parts of a job is right for two ranks.
 */
#include "job/ranks/collect.h"

#include <errno.h>
#include <stdlib.h>

#include "job/ranks/private.h"

/* In a directory that a rank made (mpirun kymo sample program) all processes are that rank's. In
 * one of `kymo sample mpirun program` those are that have a rank. */
static void assign_ranks_to_processes(const struct session *session, uint32_t *rank_of_process)
{
	uint32_t rank_of_root = JOB_NO_RANK;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];

		rank_of_process[i] = process->rank_source ? process->rank : JOB_NO_RANK;
		if (process->rank_source && process->pid == session->launch.pid)
			rank_of_root = process->rank;
	}
	for (uint32_t i = 0; rank_of_root != JOB_NO_RANK && i < session->process_count; i++) {
		if (rank_of_process[i] == JOB_NO_RANK)
			rank_of_process[i] = rank_of_root;
	}
}

/* One rank's processes, from a session with any number of ranks. */
static int collect_one_rank(struct job *job, struct session *session,
			    const uint32_t *rank_of_process, const struct job_rank *rank,
			    struct problem *problem)
{
	struct job one;
	struct rank_collector collector = {
		.session = session, .job = &one, .rank_of_process = rank_of_process, .rank = *rank};
	int error;

	job_init(&one);
	collector_describe_processes(&collector);
	error = collector_add_profile(&collector);
	if (!error)
		error = collector_add_regions(&collector);
	if (!error)
		error = collector_add_mpi_events(&collector);
	error = error ? problem_set(problem, error, "out of memory")
		      : job_add_rank(&one, &collector.rank, problem);
	if (!error)
		error = job_merge(job, &one, problem);
	job_deinit(&one);
	return error;
}

/* Each rank when its first process comes. */
static int collect_all_ranks(struct job *job, struct session *session,
			     const uint32_t *rank_of_process, const char *directory,
			     uint32_t *ret_ranks, struct problem *problem)
{
	int error = 0;

	for (uint32_t i = 0; !error && i < session->process_count; i++) {
		struct job_rank rank = {.rank = rank_of_process[i], .directory = directory};
		bool is_known = rank.rank == JOB_NO_RANK;

		for (uint32_t k = 0; k < i && !is_known; k++)
			is_known = rank_of_process[k] == rank.rank;
		if (is_known)
			continue;
		error = collect_one_rank(job, session, rank_of_process, &rank, problem);
		++*ret_ranks;
	}
	return error;
}

int job_collect_session(struct job *job, struct session *session, const char *directory,
			uint32_t *ret_ranks, struct problem *problem)
{
	uint32_t *rank_of_process =
		calloc((size_t)session->process_count + 1, sizeof(*rank_of_process));
	int error;

	*ret_ranks = 0;
	if (!rank_of_process)
		return problem_set(problem, -ENOMEM, "out of memory");
	assign_ranks_to_processes(session, rank_of_process);
	error = collect_all_ranks(job, session, rank_of_process, directory, ret_ranks, problem);
	free(rank_of_process);
	return error;
}
