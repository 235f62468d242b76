/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Requests of messages that are under way, and messages that were probed and not yet received: what
 * the call that ends them does not say.
 *
 * A bounded table by handle; what finds no place is counted as lost (SPOOL_LOSS_MPI_REQUESTS).
 * Implementations use a handle again as soon as it is freed, so an entry is told from the next one
 * of the same handle by its number. Some return one handle for all operations that were complete at
 * once (MPICH's sends, receives from MPI_PROC_NULL): the last one has the entry, and the others
 * have no end of their own.
 */
#ifndef KYMO_WRAPPERS_MPI_REQUESTS_H
#define KYMO_WRAPPERS_MPI_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

struct mpi_request {
	uintptr_t handle; /* 0: none */
	uint64_t number;  /* of this operation, in the process; a persistent one has a new one each
			     time that it starts */
	uint64_t bytes;   /* of a send */
	uintptr_t communicator;
	uint32_t communicator_serial;
	int peer, tag;  /* as the program passed them */
	int world_peer; /* negative: not known */
	bool is_send, is_persistent, is_active;
};

uint64_t mpi_request_make_number(void);
/* In the place of the one with its handle, if there is any. */
void mpi_request_add(const struct mpi_request *request);
/* False, and *ret has no handle: kymo does not know it. */
bool mpi_request_find(uintptr_t handle, struct mpi_request *ret);
/* The operation is over: a persistent request rests, others are gone. */
void mpi_request_end(const struct mpi_request *request);
void mpi_request_forget(uintptr_t handle);

#endif
