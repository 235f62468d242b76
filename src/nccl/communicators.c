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

enum { LEARNING = 1, LEARNT };

struct communicator *communicators_table;
_Atomic uint32_t communicators_made;
static _Atomic uint64_t chunk;
/* Context of communicators that there is no room for. */
static char unrecorded;

static void *reserve(uint64_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

int communicators_begin(void)
{
	communicators_table = reserve(COMMUNICATORS_MAX * sizeof(*communicators_table));
	return communicators_table ? 0 : -ENOMEM;
}

/* The number of ranks is told by no API before 4. */
static void infer_ranks(struct nccl_communicator *record, int32_t at_least)
{
	if (at_least <= GET(record->ranks))
		return;
	SET(record->ranks, at_least);
	SET(record->flags, GET(record->flags) | NCCL_COMMUNICATOR_RANKS_INFERRED);
}

static void describe(struct nccl_communicator *record, const struct communicator_identity *identity)
{
	const char *world = getenv("WORLD_SIZE");

	record->hash = identity->hash;
	record->start_ticks = clock_ticks();
	record->rank = identity->rank;
	record->ranks = identity->ranks;
	record->nodes = identity->nodes;
	record->api = identity->api;
	record->mask = identity->mask;
	/* The string is the user's, and may be gone soon. */
	if (identity->name)
		strncpy(record->name, identity->name, sizeof(record->name) - 1);
	if (!identity->ranks && world)
		infer_ranks(record, atoi(world));
}

void *communicators_add(const struct communicator_identity *identity)
{
	uint32_t number = atomic_load_explicit(&communicators_made, memory_order_relaxed);
	struct nccl_communicator *record;
	struct store_place place = {0, NULL, 0};

	if (number < COMMUNICATORS_MAX)
		place = store_take(&chunk, NCCL_CHUNK_COMMUNICATORS, 0);
	if (!place.id) {
		store_count(NCCL_LOSS_COMMUNICATORS);
		return &unrecorded;
	}
	record = place.record;
	record->creation = number + 1;
	describe(record, identity);
	communicators_table[number].record = record;
	communicators_table[number].mask = identity->nccl_mask;
	communicators_table[number].peers =
		identity->ranks > 0 ? identity->ranks : COMMUNICATOR_PEERS;
	atomic_store_explicit(&communicators_table[number].learnt, identity->api >= 4 ? LEARNT : 0,
			      memory_order_relaxed);
	__atomic_store_n(&record->id, place.id, __ATOMIC_RELEASE);
	atomic_store_explicit(&communicators_made, number + 1, memory_order_release);
	SET(store.header->communicators, number + 1);
	return (void *)(uintptr_t)place.id;
}

struct communicator *communicators_find(void *context)
{
	unsigned kind;
	void *record;

	if (store_find(context, &kind, &record) == STORE_FOUND && kind == NCCL_CHUNK_COMMUNICATORS)
		return &communicators_table[((struct nccl_communicator *)record)->creation - 1];
	store_count(context == &unrecorded ? NCCL_LOSS_EVENTS : NCCL_LOSS_FOREIGN_CONTEXT);
	return NULL;
}

void communicators_learn(struct communicator *communicator, const struct event *event)
{
	struct nccl_communicator *record = communicator->record;
	uint32_t learnt = atomic_load_explicit(&communicator->learnt, memory_order_acquire);
	int highest = event->rank > event->root ? event->rank : event->root;

	if (record->api >= 4)
		return;
	if (highest < INT_MAX)
		infer_ranks(record, highest + 1);
	if (learnt || !atomic_compare_exchange_strong(&communicator->learnt, &learnt, LEARNING))
		return;
	SET(record->rank, event->rank);
	SET(record->hash, event->communicator_hash);
	if (event->communicator_name)
		strncpy(record->name, event->communicator_name, sizeof(record->name) - 1);
	atomic_store_explicit(&communicator->learnt, LEARNT, memory_order_release);
}

const char *communicators_name(const struct communicator *communicator)
{
	return atomic_load_explicit(&communicator->learnt, memory_order_acquire) == LEARNT
		       ? communicator->record->name
		       : "";
}

bool communicators_p2p_sequence(struct communicator *communicator, int peer, bool send,
				uint64_t *ret)
{
	uint32_t *sequences = atomic_load_explicit(&communicator->sequences, memory_order_acquire);

	*ret = 0;
	if (peer < 0 || peer >= communicator->peers)
		return false;
	if (!sequences) {
		uint64_t size = (uint64_t)communicator->peers * 2 * sizeof(*sequences);
		uint32_t *fresh = reserve(size);

		if (!fresh)
			return false;
		if (atomic_compare_exchange_strong(&communicator->sequences, &sequences, fresh))
			sequences = fresh;
		else
			munmap(fresh, size);
	}
	*ret = ADD(sequences[2 * peer + send], 1);
	return true;
}
