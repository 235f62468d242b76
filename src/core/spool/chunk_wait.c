/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See chunk_wait.h.
 */
#include "core/spool/chunk_wait.h"

#include <time.h>

#include "common/syscalls.h"

#define SHORT_WAIT_ROUNDS_COUNT 40u
#define LONG_WAIT_ROUNDS_COUNT  240u
#define REFILL_ROUNDS_MAX       200u
#define FIRST_ROUNDS_SLEEP_NS   250000
#define LATER_ROUNDS_SLEEP_NS   10000000
#define REFILL_YIELDS_MAX       20u

static void sleep_ns(long ns)
{
	struct timespec pause = {0, ns};

	sys_call4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&pause, 0);
}

struct spool_chunk *spool_wait_for_chunk(struct spool_writer *spool,
					 enum spool_chunk_class chunk_class,
					 enum chunk_wait_patience patience)
{
	static _Atomic bool failed[CHUNK_WAIT_IN_CALL + 1];
	struct spool_chunk *chunk = NULL;
	unsigned rounds =
		patience == CHUNK_WAIT_IN_CALL ? LONG_WAIT_ROUNDS_COUNT : SHORT_WAIT_ROUNDS_COUNT;

	if (failed[patience])
		rounds = patience == CHUNK_WAIT_IN_CALL ? SHORT_WAIT_ROUNDS_COUNT : 1;
	for (unsigned i = 0; !chunk && i < rounds; i++) {
		if (atomic_load_explicit(&spool->growth_errno, memory_order_relaxed))
			return NULL;
		spool_wake_chunk_makers(spool);
		sleep_ns(i < SHORT_WAIT_ROUNDS_COUNT ? FIRST_ROUNDS_SLEEP_NS
						     : LATER_ROUNDS_SLEEP_NS);
		chunk = spool_chunk_take(spool, chunk_class);
	}
	failed[patience] = !chunk;
	return chunk;
}

struct spool_chunk *chunk_refill_and_take(struct spool_writer *spool)
{
	struct spool_chunk *chunk = NULL;

	for (unsigned i = 0; !chunk && !spool->growth_errno && i < REFILL_ROUNDS_MAX; i++) {
		bool made = spool_refill_ready_chunks(spool, spool->fd);

		chunk = spool_chunk_take(spool, SPOOL_CHUNK_CLASS_SMALL);
		if (chunk || made)
			continue;
		if (i < REFILL_YIELDS_MAX)
			sys_call0(SYS_sched_yield);
		else
			sleep_ns(FIRST_ROUNDS_SLEEP_NS);
	}
	return chunk;
}
