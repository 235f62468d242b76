/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which functions are MPI's, and what they are for, by their names.
 */
#include <string.h>
#include <strings.h>

#include "common/array.h"
#include "job/ranks/private.h"

bool mpi_name_is_call(const char *name)
{
	if (*name == 'P' || *name == 'p')
		name++;
	if (!strncmp(name, "MPI_", 4))
		return name[4] >= 'A' && name[4] <= 'Z';
	return !strncmp(name, "mpi_", 4) && name[4] && name[strlen(name) - 1] == '_';
}

struct mpi_name_class {
	const char *begin; /* behind MPI_ */
	enum job_mpi_class class;
};

/* The first that fits counts. */
static const struct mpi_name_class name_classes[] = {
	{"Barrier", JOB_MPI_BARRIER},
	{"Ibarrier", JOB_MPI_OTHER}, /* those that begin something do not wait */
	{"Init", JOB_MPI_INIT},
	{"Finalize", JOB_MPI_FINALIZE},
	{"Bcast", JOB_MPI_COLLECTIVE},
	{"Reduce", JOB_MPI_COLLECTIVE},
	{"Allreduce", JOB_MPI_COLLECTIVE},
	{"Gather", JOB_MPI_COLLECTIVE},
	{"Allgather", JOB_MPI_COLLECTIVE},
	{"Scatter", JOB_MPI_COLLECTIVE},
	{"Alltoall", JOB_MPI_COLLECTIVE},
	{"Scan", JOB_MPI_COLLECTIVE},
	{"Exscan", JOB_MPI_COLLECTIVE},
	{"Neighbor_", JOB_MPI_COLLECTIVE},
	{"Comm_split", JOB_MPI_COLLECTIVE},
	{"Comm_dup", JOB_MPI_COLLECTIVE},
	{"Win_fence", JOB_MPI_COLLECTIVE},
	{"Win_", JOB_MPI_POINT_TO_POINT},
	{"Send_init", JOB_MPI_OTHER},
	{"Recv_init", JOB_MPI_OTHER},
	{"Send", JOB_MPI_POINT_TO_POINT}, /* and Sendrecv */
	{"Ssend", JOB_MPI_POINT_TO_POINT},
	{"Bsend", JOB_MPI_POINT_TO_POINT},
	{"Rsend", JOB_MPI_POINT_TO_POINT},
	{"Recv", JOB_MPI_POINT_TO_POINT},
	{"Mrecv", JOB_MPI_POINT_TO_POINT},
	{"Wait", JOB_MPI_POINT_TO_POINT},
	{"Probe", JOB_MPI_POINT_TO_POINT},
	{"Mprobe", JOB_MPI_POINT_TO_POINT},
};

enum job_mpi_class mpi_name_get_class(const char *name)
{
	const char *rest = strchr(name, '_');

	for (size_t i = 0; rest && i < ARRAY_SIZE(name_classes); i++) {
		if (!strncasecmp(rest + 1, name_classes[i].begin, strlen(name_classes[i].begin)))
			return name_classes[i].class;
	}
	return JOB_MPI_OTHER;
}

struct mpi_collective {
	const char *name; /* behind MPI_ */
	enum job_event_kind kind;
};

/* Blocking ones. */
static const struct mpi_collective collectives[] = {
	{"Barrier", JOB_EVENT_BARRIER},
	{"Allreduce", JOB_EVENT_ALL},
	{"Allgather", JOB_EVENT_ALL},
	{"Allgatherv", JOB_EVENT_ALL},
	{"Alltoall", JOB_EVENT_ALL},
	{"Alltoallv", JOB_EVENT_ALL},
	{"Alltoallw", JOB_EVENT_ALL},
	{"Reduce_scatter", JOB_EVENT_ALL},
	{"Reduce_scatter_block", JOB_EVENT_ALL},
	{"Comm_split", JOB_EVENT_ALL},
	{"Comm_dup", JOB_EVENT_ALL},
	{"Bcast", JOB_EVENT_ONE_TO_ALL},
	{"Scatter", JOB_EVENT_ONE_TO_ALL},
	{"Scatterv", JOB_EVENT_ONE_TO_ALL},
	{"Reduce", JOB_EVENT_ALL_TO_ONE},
	{"Gather", JOB_EVENT_ALL_TO_ONE},
	{"Gatherv", JOB_EVENT_ALL_TO_ONE},
};

bool mpi_name_get_collective(const char *name, enum job_event_kind *ret)
{
	const char *rest = strchr(name, '_');

	for (size_t i = 0; rest && i < ARRAY_SIZE(collectives); i++) {
		if (!strcmp(rest + 1, collectives[i].name)) {
			*ret = collectives[i].kind;
			return true;
		}
	}
	return false;
}
