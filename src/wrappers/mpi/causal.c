/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * MPI's calls in causal profiling: all ranks are of the session, so whatever a call waits for, one
 * of them ends it; files alone are outside. Calls that do not wait lose nothing by being taken for
 * ones that do. Where all ranks meet (barriers and reductions to all, on the world), rank 0 counts
 * an iteration.
 */
#include <string.h>

#include "wrappers/mpi/record.h"

static bool call_marks_iteration(const struct mpi_call_frame *frame)
{
	struct mpi_communicator communicator;

	if (strcmp(frame->call->name, "MPI_Barrier") != 0 &&
	    strcmp(frame->call->name, "MPI_Allreduce") != 0)
		return false;
	if (!mpi_can_read_call_arguments() ||
	    mpi_get_communicator_argument(frame) != mpi_library.world_communicator)
		return false;
	mpi_communicator_look_up(mpi_library.world_communicator, &communicator);
	return communicator.handle && !communicator.rank;
}

void mpi_causal_end_wait_and_count_visit(const struct causal_wait_state *wait,
					 const struct mpi_call_frame *frame)
{
	static _Atomic uint32_t known; /* index of the point + 1 */
	uint32_t point;

	causal_end_wait_and_apply_delay(wait, frame->call->kind == MPI_FILE ? CAUSAL_WAKER_OUTSIDE
									    : CAUSAL_WAKER_SESSION);
	if (!call_marks_iteration(frame))
		return;
	point = atomic_load_explicit(&known, memory_order_relaxed);
	if (!point) {
		point = causal_find_or_add_point("mpi iterations", CAUSAL_POINT_PROGRESS,
						 CAUSAL_ORIGIN_AUTOMATIC) +
			1;
		atomic_store_explicit(&known, point, memory_order_relaxed);
	}
	if (point)
		causal_record_visit(point - 1);
}
