/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See arena.h.
 */
#include "libkymo-sdk/arena.h"
#include "common/hot.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A chunk's word: payload taken in units of 8 bytes, records, and what it is in. */
#define CHUNK_UNITS(state)   ((uint32_t)(state))
#define CHUNK_RECORDS(state) ((uint32_t)((state) >> 32) & 0x3fffffff)
#define CHUNK_ONE_RECORD     ((uint64_t)1 << 32)
#define CHUNK_CLOSED         ((uint64_t)1 << 63)
#define CHUNK_FRESH          ((uint64_t)1 << 62) /* no lane has had it since the arena was emptied */

#define ARENA_UNIT       8u
#define ARENA_NO_MORE    0x80000000u
#define ARENA_HEADER_PER 16u /* a header for so many bytes of payload: records are larger */
/* Below this an arena is one chunk. */
#define ARENA_LANES_FROM  ((size_t)256 << 10)
#define ARENA_CHUNK_LEAST ((size_t)4 << 10)
#define ARENA_CHUNK_MOST  ((size_t)64 << 10)

static char arena_void; /* its address in a header: reserved past the end */

static void arena_divide(struct arena *arena, size_t size)
{
	size_t chunk = size;

	arena->lanes = 1;
	if (size >= ARENA_LANES_FROM) {
		arena->lanes = ARENA_LANES_MAX;
		chunk = size / (4u * ARENA_LANES_MAX) & ~(ARENA_CHUNK_LEAST - 1);
		if (chunk > ARENA_CHUNK_MOST)
			chunk = ARENA_CHUNK_MOST;
	}
	arena->chunk_count = (uint32_t)(size / chunk);
	arena->chunk_units = (uint32_t)(chunk / ARENA_UNIT);
	arena->chunk_headers = (uint32_t)(chunk / ARENA_HEADER_PER);
}

bool arena_make(struct arena *arena, size_t size)
{
	size_t headers;

	memset(arena, 0, sizeof(*arena));
	arena_divide(arena, size);
	headers = (size_t)arena->chunk_count * arena->chunk_headers;
	arena->mapped =
		size + headers * (sizeof(struct arena_header) + sizeof(uint64_t) + sizeof(void *)) +
		arena->chunk_count * sizeof(struct arena_chunk) + 64;
	arena->mapping = mmap(NULL, arena->mapped, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena->mapping == MAP_FAILED)
		return false;
	arena->chunks = (struct arena_chunk *)(void *)((char *)arena->mapping + size);
	arena->headers = (struct arena_header *)(void *)(arena->chunks + arena->chunk_count);
	arena->times = (uint64_t *)(void *)(arena->headers + headers);
	arena->list = (rocprofiler_record_header_t **)(void *)(arena->times + headers);
	for (uint32_t i = 0; i < arena->chunk_count; i++) {
		struct arena_chunk *chunk = &arena->chunks[i];
		size_t first = (size_t)i * arena->chunk_headers;

		atomic_init(&chunk->state, CHUNK_CLOSED | CHUNK_FRESH);
		chunk->payload =
			(char *)arena->mapping + (size_t)i * arena->chunk_units * ARENA_UNIT;
		chunk->headers = &arena->headers[first];
		chunk->times = &arena->times[first];
	}
	for (uint32_t i = 0; i < ARENA_LANES_MAX; i++)
		atomic_init(&arena->lane[i].chunk, -1);
	atomic_init(&arena->next, ARENA_NO_MORE);
	arena_groups_reset(arena);
	return true;
}

void arena_free(struct arena *arena)
{
	arena_groups_reset(arena);
	if (arena->mapping && arena->mapping != MAP_FAILED)
		munmap(arena->mapping, arena->mapped);
	arena->mapping = NULL;
}

/* ---- putting ---- */

static void chunk_open(struct arena_chunk *chunk)
{
	uint64_t state = atomic_load_explicit(&chunk->state, memory_order_relaxed);

	/* Threads held up since before it was emptied may have added to a closed word. */
	while ((state & CHUNK_CLOSED) && (state & CHUNK_FRESH)) {
		if (atomic_compare_exchange_weak_explicit(
			    &chunk->state, &state, 0, memory_order_acq_rel, memory_order_relaxed))
			return;
	}
}

/* Gives the lane a chunk in place of `old`, or finds that it has another one by now. */
static enum arena_result lane_advance(struct arena *arena, uint32_t lane, int32_t old)
{
	uint32_t next = atomic_load_explicit(&arena->next, memory_order_acquire);
	uint64_t units;

	if (next & ARENA_NO_MORE)
		return ARENA_CLOSED;
	if (next >= arena->chunk_count)
		return ARENA_FULL;
	next = atomic_fetch_add_explicit(&arena->next, 1, memory_order_acq_rel);
	if (next & ARENA_NO_MORE)
		return ARENA_CLOSED;
	if (next >= arena->chunk_count)
		return ARENA_FULL;
	chunk_open(&arena->chunks[next]);
	if (!atomic_compare_exchange_strong_explicit(&arena->lane[lane].chunk, &old, (int32_t)next,
						     memory_order_acq_rel, memory_order_acquire) ||
	    old < 0)
		return ARENA_DONE;
	units = CHUNK_UNITS(atomic_load_explicit(&arena->chunks[old].state, memory_order_relaxed));
	if (units > arena->chunk_units)
		units = arena->chunk_units;
	atomic_fetch_add_explicit(&arena->left_units, units, memory_order_relaxed);
	return ARENA_DONE;
}

/* Records have just been made of 8-byte stores: they are copied by loads of the same size. Larger
 * ones that are not all words are somebody else's, made long before. */
static void record_copy(char *to, const void *from, uint32_t size)
{
	const uint64_t *words = from;
	uint64_t *copies = (uint64_t *)(void *)to;

	if (size % ARENA_UNIT || size > 512) {
		memcpy(to, from, size);
		return;
	}
	for (uint32_t i = 0; i < size / ARENA_UNIT; i++)
		copies[i] = words[i];
}

KYMO_HOT static void chunk_fill(const struct arena_chunk *chunk, uint64_t state,
				const struct arena_record *records, uint32_t count, uint64_t time)
{
	uint32_t at = CHUNK_RECORDS(state);
	char *payload = chunk->payload + (size_t)CHUNK_UNITS(state) * ARENA_UNIT;

	for (uint32_t i = 0; i < count; i++, at++) {
		record_copy(payload, records[i].payload, records[i].size);
		chunk->times[at] = time;
		chunk->headers[at].hash = records[i].category | (uint64_t)records[i].kind << 32;
		atomic_store_explicit(&chunk->headers[at].payload, payload, memory_order_release);
		payload += (records[i].size + ARENA_UNIT - 1) & ~(size_t)(ARENA_UNIT - 1);
	}
	/* Where the next one goes, which the thread that takes records out had: it is fetched while
	 * the program goes on. */
	__builtin_prefetch(payload, 1);
	__builtin_prefetch(payload + 64, 1);
	__builtin_prefetch(payload + 128, 1);
	__builtin_prefetch(&chunk->headers[at], 1);
	__builtin_prefetch(&chunk->times[at], 1);
}

/* The places reserved by an addition that went past the end. */
static void chunk_void(const struct arena *arena, const struct arena_chunk *chunk, uint64_t state,
		       uint32_t count)
{
	for (uint32_t i = CHUNK_RECORDS(state); count && i < arena->chunk_headers; i++, count--)
		atomic_store_explicit(&chunk->headers[i].payload, &arena_void,
				      memory_order_release);
}

static bool chunk_has_room(const struct arena *arena, uint64_t state, uint64_t units,
			   uint32_t count)
{
	return CHUNK_UNITS(state) + units <= arena->chunk_units &&
	       CHUNK_RECORDS(state) + count <= arena->chunk_headers;
}

static uint64_t records_units(const struct arena_record *records, uint32_t count)
{
	uint64_t units = 0;

	for (uint32_t i = 0; i < count; i++)
		units += (records[i].size + ARENA_UNIT - 1) / ARENA_UNIT;
	return units;
}

KYMO_HOT enum arena_result arena_put(struct arena *arena, uint32_t lane,
				     const struct arena_record *records, uint32_t count,
				     uint64_t time, uint64_t *used)
{
	uint64_t units = records_units(records, count), state;

	if (__builtin_expect(units > arena->chunk_units || count > arena->chunk_headers, 0))
		return arena_groups_put(arena, records, count, units, time, used);
	lane &= arena->lanes - 1;
	for (;;) {
		int32_t number =
			atomic_load_explicit(&arena->lane[lane].chunk, memory_order_acquire);
		enum arena_result result;

		if (number >= 0) {
			struct arena_chunk *chunk = &arena->chunks[number];

			state = atomic_load_explicit(&chunk->state, memory_order_relaxed);
			if (state & CHUNK_CLOSED)
				return ARENA_CLOSED;
			if (chunk_has_room(arena, state, units, count)) {
				state = atomic_fetch_add_explicit(&chunk->state,
								  count * CHUNK_ONE_RECORD + units,
								  memory_order_acquire);
				if (state & CHUNK_CLOSED)
					return ARENA_CLOSED;
				if (chunk_has_room(arena, state, units, count)) {
					chunk_fill(chunk, state, records, count, time);
					*used = (atomic_load_explicit(&arena->left_units,
								      memory_order_relaxed) +
						 CHUNK_UNITS(state) + units) *
						ARENA_UNIT;
					return ARENA_DONE;
				}
				chunk_void(arena, chunk, state, count);
			}
		}
		result = lane_advance(arena, lane, number);
		if (result != ARENA_DONE)
			return result;
	}
}

/* ---- taking out ---- */

/* Returns the chunk's last word, or 0 where nobody had it. */
static uint64_t chunk_close(struct arena_chunk *chunk)
{
	uint64_t state = atomic_load_explicit(&chunk->state, memory_order_relaxed);

	while (state & CHUNK_FRESH) {
		if (atomic_compare_exchange_weak_explicit(&chunk->state, &state, CHUNK_CLOSED,
							  memory_order_acq_rel,
							  memory_order_relaxed))
			return 0;
	}
	return atomic_fetch_or_explicit(&chunk->state, CHUNK_CLOSED, memory_order_acq_rel) &
	       ~CHUNK_CLOSED;
}

/* A writer may be between its addition and its last store: some ten instructions, if it is not held
 * up by the scheduler. */
static void *header_wait(struct arena_header *header)
{
	void *payload;

	while (!(payload = atomic_load_explicit(&header->payload, memory_order_acquire)))
		sched_yield();
	return payload;
}

static size_t chunk_list(struct arena *arena, uint32_t number, size_t count)
{
	uint64_t state = chunk_close(&arena->chunks[number]);
	uint32_t records = CHUNK_RECORDS(state);

	if (records > arena->chunk_headers)
		records = arena->chunk_headers;
	for (uint32_t i = 0; i < records; i++) {
		struct arena_header *header = &arena->chunks[number].headers[i];

		if (header_wait(header) != &arena_void)
			arena->list[count++] = (rocprofiler_record_header_t *)(void *)header;
	}
	return count;
}

uint64_t arena_time(const struct arena *arena, const rocprofiler_record_header_t *header)
{
	return arena->times[(const struct arena_header *)(const void *)header - arena->headers];
}

/* By time; records put together have the same one and lie behind each other. */
static int header_compare(const void *a, const void *b, void *context)
{
	const rocprofiler_record_header_t *one = *(rocprofiler_record_header_t *const *)a;
	const rocprofiler_record_header_t *other = *(rocprofiler_record_header_t *const *)b;
	uint64_t time = arena_time(context, one), other_time = arena_time(context, other);

	if (time != other_time)
		return time < other_time ? -1 : 1;
	return one < other ? -1 : one > other;
}

size_t arena_close(struct arena *arena, rocprofiler_record_header_t ***list)
{
	uint32_t chunks =
		atomic_fetch_or_explicit(&arena->next, ARENA_NO_MORE, memory_order_acq_rel) &
		~ARENA_NO_MORE;
	size_t count = 0;
	bool ordered = true;

	if (chunks > arena->chunk_count)
		chunks = arena->chunk_count;
	for (uint32_t i = 0; i < chunks; i++)
		count = chunk_list(arena, i, count);
	for (size_t i = 1; arena->lanes > 1 && ordered && i < count; i++)
		ordered = header_compare(&arena->list[i - 1], &arena->list[i], arena) <= 0;
	if (!ordered)
		qsort_r(arena->list, count, sizeof(void *), header_compare, arena);
	return arena_groups_close(arena, count, list);
}

void arena_reset(struct arena *arena)
{
	uint32_t chunks = atomic_load_explicit(&arena->next, memory_order_relaxed) & ~ARENA_NO_MORE;

	arena_groups_reset(arena);
	if (chunks > arena->chunk_count)
		chunks = arena->chunk_count;
	for (uint32_t i = 0; i < chunks; i++) {
		uint64_t state =
			atomic_load_explicit(&arena->chunks[i].state, memory_order_relaxed);
		uint32_t records = CHUNK_RECORDS(state);

		if (records > arena->chunk_headers)
			records = arena->chunk_headers;
		for (uint32_t j = 0; j < records; j++)
			atomic_store_explicit(&arena->chunks[i].headers[j].payload, NULL,
					      memory_order_relaxed);
	}
	for (uint32_t i = 0; i < ARENA_LANES_MAX; i++)
		atomic_store_explicit(&arena->lane[i].chunk, -1, memory_order_relaxed);
	for (uint32_t i = 0; i < chunks; i++)
		atomic_store_explicit(&arena->chunks[i].state, CHUNK_CLOSED | CHUNK_FRESH,
				      memory_order_release);
	atomic_store_explicit(&arena->left_units, 0, memory_order_relaxed);
	atomic_store_explicit(&arena->next, ARENA_NO_MORE, memory_order_release);
}

/* The only chunk is the only lane's from the start: there is never a moment at which it is taken
 * and the lane does not have it yet, which would look like an arena that is full. */
void arena_open(struct arena *arena)
{
	arena_groups_open(arena);
	if (arena->chunk_count == 1) {
		chunk_open(&arena->chunks[0]);
		atomic_store_explicit(&arena->lane[0].chunk, 0, memory_order_release);
	}
	atomic_store_explicit(&arena->next, arena->chunk_count == 1, memory_order_release);
}

bool arena_is_empty(struct arena *arena)
{
	uint32_t chunks = atomic_load_explicit(&arena->next, memory_order_acquire) & ~ARENA_NO_MORE;

	for (uint32_t i = 0; i < chunks && i < arena->chunk_count; i++) {
		uint64_t state =
			atomic_load_explicit(&arena->chunks[i].state, memory_order_acquire);

		if (!(state & CHUNK_FRESH) && CHUNK_RECORDS(state))
			return false;
	}
	return arena_groups_are_empty(arena);
}
