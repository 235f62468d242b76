/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * MPI in the session model: calls, time and messages by function, communicator and peer, the
 * communicators, and the places of the program that call MPI.
 *
 * All of it is from the trace: a process that recorded a profile alone has none.
 *
 * Life: as analysis/regions/regions.h. Times are ns.
 */
#ifndef KYMO_ANALYSIS_MPI_MPI_H
#define KYMO_ANALYSIS_MPI_MPI_H

#include "analysis/mpi/visit.h"

struct model_mpi_row {
	uint32_t process;
	const char *function, *communicator; /* communicator "": of several, or none */
	uint64_t context;
	int64_t peer; /* rank in the world; MPI_NO_RANK: none, several, or not known */
	uint64_t calls, open, time_ns;
	uint64_t sent_messages, sent_bytes, received_messages, received_bytes;
};

struct model_mpi_communicator {
	uint32_t process;
	const char *name, *world_ranks; /* "" where they are not known */
	uint64_t context, size;
};

struct model_mpi_site {
	uint32_t process;
	uint64_t address, first_ns;
	const char *function, *file; /* NULL: not known */
	uint32_t line;
};

struct model_mpi {
	struct model_mpi_row *rows; /* by process, then the most time and bytes first */
	struct model_mpi_communicator *communicators;
	struct model_mpi_site *sites;
	uint32_t row_count, communicator_count, site_count;
	bool were_rows_cut; /* peers and communicators beyond a limit share a row a function */
};

#define MPI_DATA_KIND_NAME "mpi"

extern const struct session_data_kind_operations mpi_data_kind_operations;

static inline struct model_mpi *session_get_mpi(const struct session *session)
{
	return session_find_kind_data(session, MPI_DATA_KIND_NAME);
}

/* NULL: it is not known. */
const struct model_mpi_site *mpi_find_site(const struct session *session, uint32_t process,
					   uint64_t address);

#endif
