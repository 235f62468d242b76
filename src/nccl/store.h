/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The file of records of this process: chunks that communicators fill and the plugin's own thread
 * keeps ready, and the ids that lead back to records.
 *
 * Life of a chunk: the own thread grows the file by some chunks, reserves and touches their blocks,
 * and puts them on the ready stack. A callback that finds its communicator's chunk full takes one
 * and retires the old one. In ring mode the own thread clears the chunks that were retired first
 * and makes them ready again, once nothing in them is in flight.
 *
 * store_take() and store_find() are for callbacks: nothing is waited for, and there is no system
 * call but one wake of the own thread when few chunks are left; where none are, the callback grows
 * the file itself, unless somebody else does. The rest is for the own thread and for init, under
 * its lock. Nothing is ever unmapped: NCCL may come with an id at any time.
 */
#ifndef KYMO_NCCL_STORE_H
#define KYMO_NCCL_STORE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "kymo/nccl_records.h"

/* Fields of records change while others read them. */
#define GET(field)        __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define SET(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)
#define ADD(field, value) __atomic_fetch_add(&(field), (value), __ATOMIC_RELAXED)

#define STORE_NONE UINT32_MAX

enum store_chunk_state {
	STORE_UNUSED,
	STORE_READY,
	STORE_CURRENT, /* records are taken from it */
	STORE_RETIRED, /* full; may hold operations in flight */
	STORE_FINISHED /* and nothing in it changes any more */
};

/* What the own thread knows of a chunk; not in the file. */
struct store_chunk {
	_Atomic uint32_t next; /* index + 1 in a stack */
	_Atomic uint8_t state; /* store_chunk_state */
	uint8_t kind;
	uint16_t looked_at; /* records that need no further look: the first so many */
	uint32_t open;      /* records in it that may change, as last seen */
	uint64_t counted;   /* records counted in the header's `recorded` */
};

/* Lock-free LIFO (Treiber); the upper half of head counts pops, against ABA. */
struct store_stack {
	_Atomic uint64_t head;
	_Atomic uint32_t count;
};

struct store {
	uint8_t *base; /* of the mapping; address space for the whole limit is reserved */
	struct nccl_file_header *header;
	struct store_chunk *chunks;
	uint64_t nonce;               /* of the ids, in place */
	_Atomic uint64_t mapped;      /* bytes */
	_Atomic uint32_t chunk_count; /* in the file */
	uint32_t chunk_limit;
	struct store_stack ready, retired;
	_Atomic uint64_t sequence;
	_Atomic uint32_t starved; /* a callback found no chunk since the last look */
	uint32_t ready_target;
	uint32_t number;                          /* of the file */
	uint32_t *order, order_head, order_count; /* retired chunks, oldest first */
	bool ring, cannot_grow;
	char path[PATH_MAX];
};

extern struct store store;

/* Creates `directory`/nccl-<pid>-<n>.nccl. 0 or negative errno. */
int store_open(const char *directory, uint64_t limit, bool ring);
/* Own thread: keeps chunks ready; oldest ones are cleared in ring mode. */
void store_refill(void);
/* A forked child: nothing of it may reach the parent's file. */
void store_leave(void);
/* Own thread: a chunk that is not going to be used any further by a finalized communicator. */
void store_retire(uint32_t chunk);

static inline void store_count(enum nccl_loss loss)
{
	if (store.header)
		ADD(store.header->losses[loss], 1);
}

static inline struct nccl_chunk_header *store_chunk(uint32_t index)
{
	return (struct nccl_chunk_header *)(store.base + NCCL_CHUNKS_OFFSET +
					    (uint64_t)index * NCCL_CHUNK_SIZE);
}

/* All are powers of two: a division would be a third of what a callback costs. */
static inline uint32_t store_record_size(unsigned kind)
{
	switch (kind) {
	case NCCL_CHUNK_COMMUNICATORS:
		return sizeof(struct nccl_communicator);
	case NCCL_CHUNK_OPERATIONS:
		return sizeof(struct nccl_operation);
	case NCCL_CHUNK_TOTALS:
		return sizeof(struct nccl_total);
	default:
		return sizeof(struct nccl_event);
	}
}

static inline uint32_t store_capacity(unsigned kind)
{
	return (NCCL_CHUNK_SIZE - NCCL_CHUNK_HEADER_SIZE) / store_record_size(kind);
}

static inline void *store_record(uint32_t chunk, unsigned kind, uint32_t index)
{
	return (uint8_t *)store_chunk(chunk) + NCCL_CHUNK_HEADER_SIZE +
	       index * store_record_size(kind);
}

static inline uint32_t store_chunk_of(uint64_t id)
{
	return (uint32_t)NCCL_ID_CHUNK(id);
}

/* Records of a chunk that may have an id. */
static inline uint32_t store_taken(uint32_t chunk, unsigned kind)
{
	uint32_t taken = GET(store_chunk(chunk)->taken), capacity = store_capacity(kind);

	return taken < capacity ? taken : capacity;
}

/* The word of a chunk that callbacks add to: generation below, taken above. */
static inline uint64_t *store_word(uint32_t chunk)
{
	return (uint64_t *)(void *)&store_chunk(chunk)->generation;
}

/* Room for a record of `kind` behind *current (chunk and its generation, see store.c; 0: none yet);
 * its id, and the record in *ret, all zero. 0: nothing is ready. */
uint64_t store_take(_Atomic uint64_t *current, unsigned kind, uint32_t communicator, void **ret);

/* What an id that NCCL gave us is. */
enum store_found { STORE_NULL, STORE_FOREIGN, STORE_STALE, STORE_FOUND };

static inline enum store_found store_find(const void *handle, unsigned *ret_kind, void **ret)
{
	uint64_t id = (uint64_t)(uintptr_t)handle, offset = NCCL_ID_OFFSET(id), inside;
	const struct nccl_chunk_header *chunk;

	if (!id)
		return STORE_NULL;
	if ((id & 0xffffull << 48) != store.nonce)
		return STORE_FOREIGN;
	if (offset < NCCL_CHUNKS_OFFSET + NCCL_CHUNK_HEADER_SIZE ||
	    offset >= atomic_load_explicit(&store.mapped, memory_order_acquire))
		return STORE_FOREIGN;
	chunk = store_chunk(store_chunk_of(id));
	inside = (offset - NCCL_CHUNKS_OFFSET) % NCCL_CHUNK_SIZE;
	*ret_kind = GET(chunk->kind);
	if (inside < NCCL_CHUNK_HEADER_SIZE || *ret_kind == NCCL_CHUNK_FREE ||
	    (inside - NCCL_CHUNK_HEADER_SIZE) & (store_record_size(*ret_kind) - 1))
		return STORE_STALE;
	*ret = store.base + offset;
	/* id is the first word of every record */
	if (__atomic_load_n((uint64_t *)*ret, __ATOMIC_ACQUIRE) != id)
		return STORE_STALE;
	return STORE_FOUND;
}

#endif
