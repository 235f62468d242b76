/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See rank.h.
 */
#include "core/rank.h"

#include <stdatomic.h>

#include "common/rank.h"
#include "core/runtime.h"

/* rank + 1 in the upper half, size in the lower; 0: MPI has not said. A forked child keeps it: it
 * works for the same rank. */
static _Atomic uint64_t mpi_rank_and_size_word;
static uint64_t last_written_rank_and_size;           /* background thread only */
static _Atomic(struct background_state *) background; /* who writes it */

static void write_rank_record(struct runtime *runtime, const struct process_rank *rank)
{
	process_record_begin(&runtime->records, SPOOL_RECORD_RANK);
	process_record_append_unsigned(&runtime->records, rank->rank);
	process_record_append_unsigned(&runtime->records, rank->size);
	process_record_append_string(&runtime->records, rank->source);
	process_record_end_and_commit(&runtime->records);
}

void rank_set_from_mpi(uint32_t rank, uint32_t size)
{
	struct background_state *waker;

	atomic_store(&mpi_rank_and_size_word, ((uint64_t)rank + 1) << 32 | size);
	waker = atomic_load(&background);
	if (waker) /* else it looks when it begins */
		background_wake(waker);
}

void rank_write_from_environment(struct runtime *runtime)
{
	struct process_rank rank;

	last_written_rank_and_size = 0;
	atomic_store(&background, &runtime->background);
	if (rank_read_from_environment(runtime->environment, &rank))
		write_rank_record(runtime, &rank);
	rank_write_if_changed(runtime);
}

void rank_write_if_changed(struct runtime *runtime)
{
	uint64_t now = atomic_load(&mpi_rank_and_size_word);
	struct process_rank rank = {(uint32_t)(now >> 32) - 1, (uint32_t)now, "MPI_COMM_WORLD"};

	if (now == last_written_rank_and_size)
		return;
	last_written_rank_and_size = now;
	write_rank_record(runtime, &rank);
}
