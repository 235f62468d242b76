/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Communicators of this process. NCCL's context of one is the id of its record; what is needed to
 * record its events lies in a table that is never freed, so that events can come after finalize,
 * as they do (NCCL shares its proxy thread between communicators that were split).
 */
#ifndef KYMO_NCCL_COMMUNICATORS_H
#define KYMO_NCCL_COMMUNICATORS_H

#include <stddef.h>

#include "nccl/event.h"
#include "nccl/store.h"

#define COMMUNICATORS_MAX     65536u
#define COMMUNICATOR_STEPS    256u
#define COMMUNICATOR_PEERS    1024 /* where the number of ranks is not known */
#define COMMUNICATOR_CHANNELS 64u
#define COMMUNICATOR_RING     64u /* NCCL's MAX_PROFILER_EVENTS_PER_CHANNEL */

/* Last operation that a channel ran. */
struct channel_memory {
	uint64_t start, stop, operation;
};

struct communicator {
	struct nccl_communicator *record;
	int *mask;                           /* NCCL's, of all communicators; NULL: not told */
	_Atomic uint64_t operations, events; /* current chunks */
	uint64_t launch;                     /* ticks of the last KERNEL_LAUNCH, and its thread */
	uint32_t launch_thread;
	uint64_t ran;                /* ordinal + 1 of the last operation seen to run */
	_Atomic uint32_t learnt;     /* v1-v3: rank, hash and name come with an operation */
	uint32_t *_Atomic sequences; /* of p2p: a pair a peer, send and receive */
	int32_t peers;
	void *channel_thread; /* that tells of channels: its thread pointer; NULL: none yet */
	struct channel_memory channels[COMMUNICATOR_CHANNELS];
	uint64_t steps[COMMUNICATOR_STEPS]; /* ids of proxy steps, by operation and number */
	/* Own thread: */
	uint64_t oldest, oldest_ordinal; /* id of its first operation in flight; 0 none */
	uint64_t finished, collectives, p2ps;
	uint64_t ran_launch, ran_stop; /* of the last launch seen: host ticks, end by the GPU */
	uint64_t ran_before;           /* end of those before it */
	uint64_t ran_stop_ordinal, ran_before_ordinal; /* of the operation that ended so */
	uint64_t told_stall;                           /* id of the operation that was reported */
	uint64_t stall_since;
};

struct communicator_identity {
	const char *name;
	uint64_t hash;
	int nodes, ranks, rank;
	unsigned api;
	uint32_t mask;
	int *nccl_mask;
};

/* The tables; 0 or negative errno. */
int communicators_begin(void);
/* A new one; its context, never NULL. Under the lock of init. */
void *communicators_add(const struct communicator_identity *identity);
/* The communicator of a context that NCCL gave, or NULL, counted. */
struct communicator *communicators_find(void *context);
extern struct communicator *communicators_table;
extern _Atomic uint32_t communicators_made;

static inline uint32_t communicators_count(void)
{
	return atomic_load_explicit(&communicators_made, memory_order_acquire);
}

/* By creation, from 1. */
static inline struct communicator *communicators_get(uint32_t creation)
{
	return creation && creation <= communicators_count() ? &communicators_table[creation - 1]
							     : NULL;
}

/* None is started yet that could have taken its place in the device's ring of times. */
static inline bool communicators_is_fresh(const struct communicator *communicator, uint64_t ordinal)
{
	return ordinal + COMMUNICATOR_RING >= GET(communicator->record->operations);
}

/* v1-v3: what the first operation tells. */
void communicators_learn(struct communicator *communicator, const struct event *event);
/* Never NULL; empty while it is being learnt. */
const char *communicators_name(const struct communicator *communicator);
/* The next number of a send or receive; false: too many peers. */
bool communicators_p2p_sequence(struct communicator *communicator, int peer, bool send,
				uint64_t *ret);

#endif
