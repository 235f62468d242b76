/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See communicators.h.
 */
#include "nccl/communicators.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "nccl/clock.h"
#include "nccl/device.h"

enum { COMMUNICATOR_IDENTITY_BEING_SET = 1, COMMUNICATOR_IDENTITY_KNOWN };

struct communicator_recording_state *communicators_table;
_Atomic uint32_t communicators_made_count;
static _Atomic uint64_t current_communicator_chunk_word;
/* Context of communicators that there is no room for. */
static char unrecorded_context_placeholder;

static void *reserve_memory(uint64_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

int communicators_allocate_table(void)
{
	communicators_table = reserve_memory(COMMUNICATORS_MAX * sizeof(*communicators_table));
	return communicators_table ? 0 : -ENOMEM;
}

/* No API before 4 passes the number of ranks. */
static void raise_inferred_rank_count(struct nccl_communicator_record *record, int32_t at_least)
{
	if (at_least <= RELAXED_LOAD(record->ranks))
		return;
	RELAXED_STORE(record->ranks, at_least);
	RELAXED_STORE(record->flags,
		      RELAXED_LOAD(record->flags) | NCCL_COMMUNICATOR_RANKS_INFERRED);
}

static void fill_communicator_record(struct nccl_communicator_record *record,
				     const struct communicator_identity *identity)
{
	const char *world = secure_getenv("WORLD_SIZE");

	record->hash = identity->hash;
	record->start_ticks = nccl_clock_read_ticks();
	record->rank = identity->rank;
	record->ranks = identity->rank_count;
	record->nodes = identity->node_count;
	record->api = identity->api;
	record->mask = identity->event_mask;
	/* The string is the user's, and may be gone soon. */
	if (identity->name)
		strncpy(record->name, identity->name, sizeof(record->name) - 1);
	device_write_current_to_record(record);
	if (!identity->rank_count && world)
		raise_inferred_rank_count(record, atoi(world));
}

void *communicators_add(const struct communicator_identity *identity)
{
	uint32_t number = atomic_load_explicit(&communicators_made_count, memory_order_relaxed);
	struct nccl_communicator_record *record;
	struct store_record_slot place = {0, NULL, 0};

	if (number < COMMUNICATORS_MAX)
		place = store_take_record_slot(&current_communicator_chunk_word,
					       NCCL_CHUNK_COMMUNICATORS, 0);
	if (!place.id) {
		store_count_loss(NCCL_LOSS_COMMUNICATORS);
		return &unrecorded_context_placeholder;
	}
	record = place.record;
	record->creation = number + 1;
	fill_communicator_record(record, identity);
	communicators_table[number].record = record;
	communicators_table[number].nccl_event_mask = identity->nccl_event_mask;
	communicators_table[number].peers =
		identity->rank_count > 0 ? identity->rank_count : COMMUNICATOR_DEFAULT_PEER_COUNT;
	atomic_store_explicit(&communicators_table[number].identity_state,
			      identity->api >= 4 ? COMMUNICATOR_IDENTITY_KNOWN : 0,
			      memory_order_relaxed);
	__atomic_store_n(&record->id, place.id, __ATOMIC_RELEASE);
	atomic_store_explicit(&communicators_made_count, number + 1, memory_order_release);
	RELAXED_STORE(store.header->communicators, number + 1);
	return (void *)(uintptr_t)place.id;
}

struct communicator_recording_state *communicators_find_by_context(void *context)
{
	unsigned kind;
	void *record;

	if (store_resolve_id(context, &kind, &record) == STORE_ID_FOUND &&
	    kind == NCCL_CHUNK_COMMUNICATORS)
		return communicators_get_by_creation_number((uint32_t)RELAXED_LOAD(
			((struct nccl_communicator_record *)record)->creation));
	store_count_loss(context == &unrecorded_context_placeholder ? NCCL_LOSS_EVENTS
								    : NCCL_LOSS_FOREIGN_CONTEXT);
	return NULL;
}

void communicators_infer_identity(struct communicator_recording_state *communicator,
				  const struct plugin_event_start_arguments *event)
{
	struct nccl_communicator_record *record = communicator->record;
	uint32_t learnt = atomic_load_explicit(&communicator->identity_state, memory_order_acquire);
	int highest = event->rank > event->root ? event->rank : event->root;

	if (record->api >= 4)
		return;
	if (highest < INT_MAX)
		raise_inferred_rank_count(record, highest + 1);
	if (learnt || !atomic_compare_exchange_strong(&communicator->identity_state, &learnt,
						      COMMUNICATOR_IDENTITY_BEING_SET))
		return;
	RELAXED_STORE(record->rank, event->rank);
	RELAXED_STORE(record->hash, event->communicator_hash);
	if (event->communicator_name)
		strncpy(record->name, event->communicator_name, sizeof(record->name) - 1);
	atomic_store_explicit(&communicator->identity_state, COMMUNICATOR_IDENTITY_KNOWN,
			      memory_order_release);
}

const char *communicators_get_name(const struct communicator_recording_state *communicator)
{
	return atomic_load_explicit(&communicator->identity_state, memory_order_acquire) ==
			       COMMUNICATOR_IDENTITY_KNOWN
		       ? communicator->record->name
		       : "";
}

bool communicators_take_p2p_sequence_number(struct communicator_recording_state *communicator,
					    int peer, bool send, uint64_t *ret)
{
	uint32_t *sequences =
		atomic_load_explicit(&communicator->p2p_sequences, memory_order_acquire);

	*ret = 0;
	if (peer < 0 || peer >= communicator->peers)
		return false;
	if (!sequences) {
		uint64_t size = (uint64_t)communicator->peers * 2 * sizeof(*sequences);
		uint32_t *fresh = reserve_memory(size);

		if (!fresh)
			return false;
		if (atomic_compare_exchange_strong(&communicator->p2p_sequences, &sequences, fresh))
			sequences = fresh;
		else
			munmap(fresh, size);
	}
	*ret = RELAXED_ADD(sequences[2 * peer + send], 1);
	return true;
}
