/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What becomes of requests: which operations a call of MPI_Wait, MPI_Test and their kin has ended,
 * and with what source, tag and bytes.
 *
 * Handles are gone when such a call returns, so they are read before it. Where the program ignores
 * statuses the call gets places for them of kymo's own; it does the same as it would without.
 */
#ifndef KYMO_WRAPPERS_MPI_OUTCOMES_H
#define KYMO_WRAPPERS_MPI_OUTCOMES_H

#include "wrappers/mpi/private.h"
#include "wrappers/mpi/requests.h"
#include "wrappers/mpi/values.h"

/* On the stack; what more requests than this need comes from mmap(2). */
#define MPI_OUTCOMES_ON_STACK 16

struct mpi_outcomes {
	uint32_t count; /* requests that the call is about; 0: nothing is to be said */
	struct mpi_request *requests;
	struct mpi_communicator communicator; /* of the last one, whose name values point to */
	void *memory;                         /* mapped; NULL: none */
	size_t memory_bytes;
	struct mpi_request requests_on_stack[MPI_OUTCOMES_ON_STACK];
	uint64_t statuses_on_stack[MPI_OUTCOMES_ON_STACK * MPI_STATUS_BYTES_MAX / 8];
};

/* Before a call of the kind MPI_COMPLETE, MPI_START or MPI_REQUEST_END. May replace an argument. */
void mpi_outcomes_begin(struct mpi_outcomes *outcomes, struct mpi_call_frame *frame);
/* After one that succeeded, before its region ends: writes marks. Where the call can end a single
 * operation, its outcome goes into `values` instead, for the end of the region. Adds to
 * `totals`. */
void mpi_outcomes_end(struct mpi_outcomes *outcomes, const struct mpi_call_frame *frame,
		      struct mpi_call_value_list *values, struct mpi_call_byte_counts *totals);
/* In any case; values are written by then. */
void mpi_outcomes_deinit(struct mpi_outcomes *outcomes);

/* The context of a communicator whose name does not say which one it is. */
void mpi_add_context_value(struct mpi_call_value_list *values,
			   const struct mpi_communicator *communicator);
/* A call that makes a request, or finds a message to be received, succeeded: remembers it. Returns
 * the number of the operation; 0: none is remembered. */
uint64_t mpi_remember_request(const struct mpi_call_frame *frame,
			      const struct mpi_communicator *communicator, uint64_t sent_bytes);
/* Before a call that receives a message which was probed: fills frame->message_... */
void mpi_take_probed_message(struct mpi_call_frame *frame);

#endif
