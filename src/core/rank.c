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
static _Atomic uint64_t found;
static uint64_t written; /* background thread only */

static void write_record(struct runtime *runtime, const struct rank *rank)
{
	track_begin(&runtime->track, SPOOL_RECORD_RANK);
	track_unsigned(&runtime->track, rank->rank);
	track_unsigned(&runtime->track, rank->size);
	track_string(&runtime->track, rank->source);
	track_end(&runtime->track);
}

void rank_found(uint32_t rank, uint32_t size)
{
	atomic_store_explicit(&found, ((uint64_t)rank + 1) << 32 | size, memory_order_release);
	background_wake(&kymo_runtime.background);
}

void rank_begin(struct runtime *runtime)
{
	struct rank rank;

	written = 0;
	if (rank_from_environment(runtime->environment, &rank))
		write_record(runtime, &rank);
	rank_follow(runtime);
}

void rank_follow(struct runtime *runtime)
{
	uint64_t now = atomic_load_explicit(&found, memory_order_acquire);
	struct rank rank = {(uint32_t)(now >> 32) - 1, (uint32_t)now, "MPI_COMM_WORLD"};

	if (now == written)
		return;
	written = now;
	write_record(runtime, &rank);
}
