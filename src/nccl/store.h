/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The records of this process: chunks of memory that communicators fill and the plugin's own thread
 * keeps ready, and the ids that lead back to records. The file is not mapped: who shortens it, or a
 * disk that fails, would end the program by SIGBUS. What is new is written to it (write_out.h).
 *
 * Life of a chunk: the own thread grows file and memory by some chunks, reserves the blocks of the
 * one and touches the other, and puts them on the ready stack. A callback that finds its
 * communicator's chunk full takes one and retires the old one. In ring mode the own thread clears
 * the chunks that were retired first and makes them ready again, once nothing in them is in flight.
 *
 * store_take_record_slot() and store_resolve_id() are for callbacks: nothing is waited for, and
 * there is no system call but one wake of the own thread when few chunks are left; where none are,
 * the callback grows the file itself, unless somebody else does. The rest is for the own thread and
 * for init, under its lock. Nothing is ever unmapped: NCCL may come with an id at any time.
 */
#ifndef KYMO_NCCL_STORE_H
#define KYMO_NCCL_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/own_file.h"
#include "kymo/nccl_records.h"

/* Fields of records change while others read them. */
#define RELAXED_LOAD(field)         __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define RELAXED_STORE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)
#define RELAXED_ADD(field, value)   __atomic_fetch_add(&(field), (value), __ATOMIC_RELAXED)

#define STORE_CHUNK_INDEX_NONE UINT32_MAX

/* The file's limit: room to grow twice (behind its head, which is not counted here), and what 28
 * bits of 64 bytes lead to. */
#define STORE_FILE_LIMIT_BYTES_LEAST (4ull << 20)
#define STORE_FILE_LIMIT_BYTES_MAX   (16ull << 30)

enum store_chunk_state {
	STORE_CHUNK_UNUSED,
	STORE_CHUNK_READY,
	STORE_CHUNK_CURRENT, /* records are taken from it */
	STORE_CHUNK_RETIRED, /* full; may hold operations in flight */
	STORE_CHUNK_FINISHED /* and nothing in it changes any more */
};

/* What the own thread knows of a chunk; not in the file. */
struct store_chunk_tracking {
	_Atomic uint32_t next; /* index + 1 in a stack */
	_Atomic uint8_t state; /* store_chunk_state */
	uint8_t kind;
	uint16_t settled_record_count; /* records that need no further look: the first so many */
	uint32_t open;                 /* records in it that may change, as last seen */
	uint64_t counted;              /* records counted in the header's `recorded` */
	_Atomic uint64_t quiet_taken;  /* its word (below) when nothing in it was open */
	/* Of its place in the file; by who writes. */
	uint64_t written_checksum, written_taken;
	uint32_t written_bytes;
	uint8_t written_state, quiet_rounds;
	_Atomic bool was_cleared; /* it is used again: zeros have to be written, too */
};

/* Lock-free LIFO (Treiber); the upper half of head counts pops, against ABA. */
struct store_chunk_stack {
	_Atomic uint64_t head;
	_Atomic uint32_t count;
};

struct nccl_record_store {
	uint8_t *base; /* of the memory; address space for the whole limit is reserved */
	struct nccl_file_header *header;
	struct store_chunk_tracking *chunk_tracking;
	uint64_t id_nonce_bits;       /* of the ids, in place */
	_Atomic uint64_t mapped;      /* bytes */
	_Atomic uint32_t chunk_count; /* in the file */
	uint32_t chunk_count_limit;
	struct store_chunk_stack ready, retired;
	_Atomic uint64_t sequence;
	_Atomic uint32_t was_starved_of_chunks; /* a callback found no chunk since the last look */
	uint32_t ready_chunk_target_count;
	uint32_t number; /* of the file */
	uint32_t *retired_order, retired_order_head,
		retired_order_count; /* retired chunks, oldest first */
	bool is_ring, cannot_grow;
	bool is_disk_full;            /* the last time that something was written */
	uint32_t written_file_chunks; /* of the file: all of them were written */
	uint64_t written_header_checksum, written_chunk_count;
	struct own_file file;
};

extern struct nccl_record_store store;

/* Creates `directory`/nccl-<pid>-<n>.nccl. 0 or negative errno. */
int store_create(const char *directory, uint64_t limit, bool ring);
/* Own thread: keeps chunks ready; oldest ones are cleared in ring mode. */
void store_refill_ready_chunks(void);
/* Own thread: it can neither grow nor reuse enough. */
bool store_is_short_of_chunks(void);
/* A forked child: nothing of it may reach the parent's file. */
void store_detach_from_file(void);
/* Own thread: a chunk that is not going to be used any further by a finalized communicator. */
void store_retire_chunk(uint32_t chunk);

static inline void store_count_loss(enum nccl_loss loss)
{
	if (store.header)
		RELAXED_ADD(store.header->losses[loss], 1);
}

static inline struct nccl_chunk_header *store_get_chunk_header(uint32_t index)
{
	return (struct nccl_chunk_header *)(store.base + NCCL_CHUNKS_OFFSET +
					    (uint64_t)index * NCCL_CHUNK_SIZE);
}

/* All are powers of two: a division would be a third of what a callback costs. */
static inline uint32_t store_get_record_size(unsigned kind)
{
	switch (kind) {
	case NCCL_CHUNK_COMMUNICATORS:
		return sizeof(struct nccl_communicator_record);
	case NCCL_CHUNK_OPERATIONS:
		return sizeof(struct nccl_operation);
	case NCCL_CHUNK_TOTALS:
		return sizeof(struct nccl_total);
	default:
		return sizeof(struct nccl_event);
	}
}

static inline uint32_t store_get_chunk_capacity(unsigned kind)
{
	return (NCCL_CHUNK_SIZE - NCCL_CHUNK_HEADER_SIZE) / store_get_record_size(kind);
}

static inline void *store_get_record_address(uint32_t chunk, unsigned kind, uint32_t index)
{
	return (uint8_t *)store_get_chunk_header(chunk) + NCCL_CHUNK_HEADER_SIZE +
	       index * store_get_record_size(kind);
}

static inline uint32_t store_id_to_chunk_index(uint64_t id)
{
	return (uint32_t)NCCL_ID_CHUNK(id);
}

/* Records of a chunk that may have an id. */
static inline uint32_t store_get_used_record_count_of_chunk(uint32_t chunk, unsigned kind)
{
	uint32_t taken = RELAXED_LOAD(store_get_chunk_header(chunk)->taken),
		 capacity = store_get_chunk_capacity(kind);

	return taken < capacity ? taken : capacity;
}

static inline uint64_t store_record_to_id(const uint8_t *record, uint32_t generation)
{
	uint64_t unit = (uint64_t)(record - store.base) / NCCL_RECORD_UNIT;

	return store.id_nonce_bits | (uint64_t)(generation & NCCL_ID_GENERATIONS) << 28 | unit;
}

/* The word of a chunk that callbacks add to: generation below, taken above. */
static inline uint64_t *store_get_chunk_taken_count_word(uint32_t chunk)
{
	return (uint64_t *)(void *)&store_get_chunk_header(chunk)->generation;
}

/* A place for a record: all zero but for `id`, which is stored last. */
struct store_record_slot {
	uint64_t id; /* 0: nothing is ready */
	void *record;
	uint64_t record_ordinal; /* records taken before behind the same `current` */
};

/* Another chunk behind *current, which is full or 0, and a record of it. */
struct store_record_slot store_take_record_slot_in_next_chunk(_Atomic uint64_t *current,
							      unsigned kind, uint32_t communicator);

/* Records to come were never in this processor's cache: the lines of the one that is taken in a
 * moment are asked for now. */
static inline void store_prefetch_next_record(const uint8_t *record, uint32_t size)
{
	const uint8_t *next = record + (size < 256 ? 4 * size : 2 * size);

	for (uint32_t at = 0; at < size; at += 64)
		__builtin_prefetch(next + at, 1);
}

/* Room for a record of `kind` behind *current (chunk and its generation, see store.c; 0: none yet).
 * Inline: `kind` is a constant. */
static inline __attribute__((always_inline)) struct store_record_slot
store_take_record_slot(_Atomic uint64_t *current, unsigned kind, uint32_t communicator)
{
	uint64_t word = atomic_load_explicit(current, memory_order_acquire), index;
	uint32_t chunk = (uint32_t)(word >> 32) - 1, generation = (uint32_t)word;
	struct store_record_slot place;

	if (__builtin_expect(!word, 0))
		return store_take_record_slot_in_next_chunk(current, kind, communicator);
	index = __atomic_fetch_add(store_get_chunk_taken_count_word(chunk), 1ull << 32,
				   __ATOMIC_ACQUIRE);
	if (__builtin_expect((uint32_t)index != generation ||
				     index >> 32 >= store_get_chunk_capacity(kind),
			     0))
		return store_take_record_slot_in_next_chunk(current, kind, communicator);
	index >>= 32;
	place.record = store_get_record_address(chunk, kind, (uint32_t)index);
	store_prefetch_next_record(place.record, store_get_record_size(kind));
	place.id = store_record_to_id(place.record, generation);
	place.record_ordinal = RELAXED_LOAD(store_get_chunk_header(chunk)->first) + index;
	return place;
}

/* What an id that NCCL gave us is. */
enum store_id_resolution_kind { STORE_ID_NULL, STORE_ID_FOREIGN, STORE_ID_STALE, STORE_ID_FOUND };

/* Not a kind that has records: never asked for. */
static inline bool store_is_record_offset(uint64_t inside, unsigned kind)
{
	return kind != NCCL_CHUNK_FREE && inside >= NCCL_CHUNK_HEADER_SIZE &&
	       !((inside - NCCL_CHUNK_HEADER_SIZE) & (store_get_record_size(kind) - 1));
}

static inline __attribute__((always_inline)) enum store_id_resolution_kind
store_resolve_id(const void *handle, unsigned *ret_kind, void **ret)
{
	uint64_t id = (uint64_t)(uintptr_t)handle, offset = NCCL_ID_OFFSET(id);
	uint64_t behind = offset - NCCL_CHUNKS_OFFSET, inside = behind % NCCL_CHUNK_SIZE;
	struct nccl_chunk_header *chunk;

	if (__builtin_expect((id & 0xffffull << 48) != store.id_nonce_bits, 0))
		return id ? STORE_ID_FOREIGN : STORE_ID_NULL;
	if (__builtin_expect(
		    offset < NCCL_CHUNKS_OFFSET + NCCL_CHUNK_HEADER_SIZE ||
			    offset >= atomic_load_explicit(&store.mapped, memory_order_acquire),
		    0))
		return STORE_ID_FOREIGN;
	chunk = (struct nccl_chunk_header *)(store.base + (offset - inside));
	*ret_kind = RELAXED_LOAD(chunk->kind);
	if (__builtin_expect(!store_is_record_offset(inside, *ret_kind), 0))
		return STORE_ID_STALE;
	*ret = store.base + offset;
	/* id is the first word of every record */
	if (__builtin_expect(__atomic_load_n((uint64_t *)*ret, __ATOMIC_ACQUIRE) != id, 0))
		return STORE_ID_STALE;
	if (__builtin_expect(RELAXED_LOAD(chunk->is_quiet), 0))
		RELAXED_STORE(chunk->changed, 2); /* rounds that look at it again */
	return STORE_ID_FOUND;
}

#endif
