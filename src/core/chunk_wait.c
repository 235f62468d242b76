/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See chunk_wait.h.
 */
#include "core/chunk_wait.h"

#include <time.h>

#include "common/syscalls.h"
#include "core/runtime.h"

#define ROUNDS_SHORT 40u
#define ROUNDS_LONG  240u
#define ROUNDS_MAKE  200u
#define FIRST_NS     250000
#define THEN_NS      10000000
#define YIELDS       20u

static void pause_for(long ns)
{
	struct timespec pause = {0, ns};

	sys_call4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&pause, 0);
}

struct spool_chunk *chunk_wait(enum spool_chunk_class chunk_class, enum chunk_patience patience)
{
	static _Atomic bool failed[CHUNK_IN_CALL + 1];
	struct spool_writer *spool = &kymo_runtime.spool;
	struct spool_chunk *chunk = NULL;
	unsigned rounds = patience == CHUNK_IN_CALL ? ROUNDS_LONG : ROUNDS_SHORT;

	if (failed[patience])
		rounds = patience == CHUNK_IN_CALL ? ROUNDS_SHORT : 1;
	for (unsigned i = 0; !chunk && i < rounds; i++) {
		if (atomic_load_explicit(&spool->disk_error, memory_order_relaxed))
			return NULL;
		background_wake(&kymo_runtime.background);
		allocators_wake(&kymo_runtime.allocators);
		pause_for(i < ROUNDS_SHORT ? FIRST_NS : THEN_NS);
		chunk = spool_chunk_take(spool, chunk_class);
	}
	failed[patience] = !chunk;
	return chunk;
}

struct spool_chunk *chunk_make(struct spool_writer *spool)
{
	struct spool_chunk *chunk = NULL;

	for (unsigned i = 0; !chunk && !spool->disk_error && i < ROUNDS_MAKE; i++) {
		bool made = spool_refill(spool, spool->fd);

		chunk = spool_chunk_take(spool, SPOOL_SMALL);
		if (chunk || made)
			continue;
		if (i < YIELDS)
			sys_call0(SYS_sched_yield);
		else
			pause_for(FIRST_NS);
	}
	return chunk;
}
