/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * MPI's calls in causal profiling: all ranks are of the session, so whatever a call waits for, one
 * of them ends it; files alone are outside. Calls that do not wait lose nothing by being taken for
 * ones that do. Where all ranks meet (barriers and reductions to all, on the world), rank 0 counts
 * an iteration.
 */
#include <string.h>

#include "wrappers/causal_paced.h"
#include "wrappers/mpi_record.h"

static bool is_iteration(const struct mpi_frame *frame)
{
	struct mpi_communicator communicator;

	if (strcmp(frame->call->name, "MPI_Barrier") != 0 &&
	    strcmp(frame->call->name, "MPI_Allreduce") != 0)
		return false;
	if (!mpi_values_known() || mpi_communicator_handle(frame) != mpi_library.world)
		return false;
	mpi_communicator_get(mpi_library.world, &communicator);
	return communicator.handle && !communicator.rank;
}

void causal_mpi_ends(const struct causal_wait *wait, const struct mpi_frame *frame)
{
	static _Atomic uint32_t known; /* index of the point + 1 */
	uint32_t point;

	causal_after_wait(wait, paced_waker(frame->call->kind != MPI_FILE));
	if (!is_iteration(frame))
		return;
	point = atomic_load_explicit(&known, memory_order_relaxed);
	if (!point) {
		point = causal_point("mpi iterations", CAUSAL_POINT_PROGRESS,
				     CAUSAL_ORIGIN_AUTOMATIC) +
			1;
		atomic_store_explicit(&known, point, memory_order_relaxed);
	}
	if (point)
		causal_visit(point - 1);
}
