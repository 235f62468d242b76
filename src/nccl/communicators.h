/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Communicators of this process. NCCL's context of one is the id of its record; what is needed to
 * record its events lies in a table that is never freed, so that events can come after finalize,
 * as they do (NCCL shares its proxy thread between communicators that were split).
 *
 * A finalized communicator gives its chunks back: the current ones are retired (completion.c), and
 * once a ring has overwritten all of its operations and needs room, its record goes as well. Its
 * context is an id of nothing then.
 */
#ifndef KYMO_NCCL_COMMUNICATORS_H
#define KYMO_NCCL_COMMUNICATORS_H

#include <stdbool.h>
#include <stddef.h>

#include "nccl/event.h"
#include "nccl/store.h"

#define COMMUNICATORS_MAX                  65536u
#define COMMUNICATOR_PROXY_STEP_SLOT_COUNT 256u
#define COMMUNICATOR_DEFAULT_PEER_COUNT    1024 /* where the number of ranks is not known */
#define COMMUNICATOR_CHANNELS_MAX          64u
#define CHANNEL_TIMES_RING_LENGTH          64u /* NCCL's MAX_PROFILER_EVENTS_PER_CHANNEL */

/* Last operation that a channel ran. */
struct channel_last_operation {
	uint64_t start, stop, operation;
};

struct communicator_recording_state {
	struct nccl_communicator_record *record;
	int *nccl_event_mask;                /* NCCL's, of all communicators; NULL: not told */
	_Atomic uint64_t operations, events; /* current chunks */
	uint64_t last_launch_ticks;          /* ticks of the last KERNEL_LAUNCH, and its thread */
	uint32_t last_launch_thread;
	uint64_t last_ran_ordinal_plus_one; /* ordinal + 1 of the last operation seen to run */
	_Atomic uint32_t identity_state;    /* v1-v3: rank, hash and name come with an operation */
	uint32_t *_Atomic p2p_sequences;    /* of p2p: a pair a peer, send and receive */
	int32_t peers;
	void *channel_thread_pointer; /* that tells of channels: its thread pointer; NULL: none yet
				       */
	struct channel_last_operation last_operation_by_channel[COMMUNICATOR_CHANNELS_MAX];
	uint64_t proxy_step_ids[COMMUNICATOR_PROXY_STEP_SLOT_COUNT]; /* ids of proxy steps, by
								      * operation and number
								      */
	/* Own thread: */
	_Atomic bool is_given_back; /* its record, and all of its operations, are overwritten */
	bool has_chunks;            /* that hold something of it, as of the last round */
	uint64_t oldest_in_flight_id,
		oldest_in_flight_ordinal; /* id of its first operation in flight; 0 none */
	uint64_t finished_count, finished_collective_count, finished_p2p_count;
	uint64_t last_ran_launch_ticks,
		last_ran_launch_gpu_stop; /* of the last launch seen: host ticks, end by the GPU */
	uint64_t earlier_launches_gpu_stop; /* end of those before it */
	uint64_t last_ran_launch_stop_ordinal,
		earlier_launches_stop_ordinal; /* of the operation that ended so */
	uint64_t stall_reported_operation_id;  /* id of the operation that was reported */
	uint64_t stall_since_ticks;
};

struct communicator_identity {
	const char *name;
	uint64_t hash;
	int node_count, rank_count, rank;
	unsigned api;
	uint32_t event_mask;
	int *nccl_event_mask;
};

/* The tables; 0 or negative errno. */
int communicators_allocate_table(void);
/* A new one; its context, never NULL. Under the lock of init. */
void *communicators_add(const struct communicator_identity *identity);
/* The communicator of a context that NCCL gave, or NULL, counted. */
struct communicator_recording_state *communicators_find_by_context(void *context);
extern struct communicator_recording_state *communicators_table;
extern _Atomic uint32_t communicators_made_count;

static inline uint32_t communicators_get_count(void)
{
	return atomic_load_explicit(&communicators_made_count, memory_order_acquire);
}

/* By creation, from 1. NULL: there is none, or it is given back. */
static inline struct communicator_recording_state *
communicators_get_by_creation_number(uint32_t creation)
{
	return creation && creation <= communicators_get_count() &&
			       !atomic_load_explicit(
				       &communicators_table[creation - 1].is_given_back,
				       memory_order_relaxed)
		       ? &communicators_table[creation - 1]
		       : NULL;
}

/* None is started yet that could have taken its place in the device's ring of times. */
static inline bool
communicators_ordinal_is_in_times_ring(const struct communicator_recording_state *communicator,
				       uint64_t ordinal)
{
	return ordinal + CHANNEL_TIMES_RING_LENGTH >=
	       RELAXED_LOAD(communicator->record->operations);
}

/* v1-v3: what the first operation tells. */
void communicators_infer_identity(struct communicator_recording_state *communicator,
				  const struct plugin_event_start_arguments *event);
/* Never NULL; empty while it is being learnt. */
const char *communicators_get_name(const struct communicator_recording_state *communicator);
/* The next number of a send or receive; false: too many peers. */
bool communicators_take_p2p_sequence_number(struct communicator_recording_state *communicator,
					    int peer, bool send, uint64_t *ret);

#endif
