/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One rank of a session on its way into a job: process.c says how the rank fared, profile.c adds up
 * its samples, regions.c its regions.
 */
#ifndef KYMO_JOB_RANKS_PRIVATE_H
#define KYMO_JOB_RANKS_PRIVATE_H

#include "analysis/session.h"
#include "job/job.h"

struct rank_collector {
	struct session *session;
	struct job *job;                 /* of this rank alone */
	const uint32_t *rank_of_process; /* JOB_NO_RANK: none */
	struct job_rank rank;
};

static inline bool collector_wants_process(const struct rank_collector *collector, uint32_t process)
{
	return collector->rank_of_process[process] == collector->rank.rank;
}

/* Fills rank.flags, wait_status, processes, times and losses. */
void collector_describe_processes(struct rank_collector *collector);
/* Each adds names, paths and their rows; 0 or -ENOMEM. */
int collector_add_profile(struct rank_collector *collector);
int collector_add_regions(struct rank_collector *collector);
/* Also rank.events. */
int collector_add_mpi_events(struct rank_collector *collector);
/* Whether the name of a function, or of a region, is that of a call of MPI: MPI_Send, PMPI_Send,
 * mpi_send_ of Fortran. */
bool mpi_name_is_call(const char *name);
enum job_mpi_class mpi_name_get_class(const char *name);
/* False: the function is no collective in which ranks wait for each other. */
bool mpi_name_get_collective(const char *name, enum job_event_kind *ret);

#endif
