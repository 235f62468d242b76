/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See arena.h.
 */
#include "libkymo-sdk/base/arena.h"
#include "common/hot.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A chunk's word: payload taken in units of 8 bytes, records, and what it is in. */
#define CHUNK_STATE_GET_USED_UNITS(state)   ((uint32_t)(state))
#define CHUNK_STATE_GET_RECORD_COUNT(state) ((uint32_t)((state) >> 32) & 0x3fffffff)
#define CHUNK_STATE_RECORD_INCREMENT        ((uint64_t)1 << 32)
#define CHUNK_STATE_CLOSED_BIT              ((uint64_t)1 << 63)
#define CHUNK_STATE_FRESH_BIT                                                                      \
	((uint64_t)1 << 62) /* no lane has had it since the arena was emptied */

#define RECORD_BUFFER_PAYLOAD_UNIT_BYTES    8u
#define RECORD_BUFFER_NEXT_CHUNK_CLOSED_BIT 0x80000000u
#define RECORD_BUFFER_PAYLOAD_BYTES_PER_HEADER                                                     \
	16u /* a header for so many bytes of payload: records are larger */
/* Below this an arena is one chunk. */
#define RECORD_BUFFER_WITH_LANES_BYTES_MIN ((size_t)256 << 10)
#define RECORD_BUFFER_CHUNK_BYTES_MIN      ((size_t)4 << 10)
#define RECORD_BUFFER_CHUNK_BYTES_MAX      ((size_t)64 << 10)

static char void_payload_marker; /* its address in a header: reserved past the end */

static void record_buffer_divide_into_lanes(struct arena *arena, size_t size)
{
	size_t chunk = size;

	arena->lane_count = 1;
	if (size >= RECORD_BUFFER_WITH_LANES_BYTES_MIN) {
		arena->lane_count = RECORD_BUFFER_LANES_MAX;
		chunk = size / (4u * RECORD_BUFFER_LANES_MAX) &
			~(RECORD_BUFFER_CHUNK_BYTES_MIN - 1);
		if (chunk > RECORD_BUFFER_CHUNK_BYTES_MAX)
			chunk = RECORD_BUFFER_CHUNK_BYTES_MAX;
	}
	arena->chunk_count = (uint32_t)(size / chunk);
	arena->units_per_chunk = (uint32_t)(chunk / RECORD_BUFFER_PAYLOAD_UNIT_BYTES);
	arena->headers_per_chunk = (uint32_t)(chunk / RECORD_BUFFER_PAYLOAD_BYTES_PER_HEADER);
}

bool record_buffer_create(struct arena *arena, size_t size)
{
	size_t headers;

	memset(arena, 0, sizeof(*arena));
	record_buffer_divide_into_lanes(arena, size);
	headers = (size_t)arena->chunk_count * arena->headers_per_chunk;
	arena->mapped = size +
			headers * (sizeof(struct record_buffer_record_header) + sizeof(uint64_t) +
				   sizeof(void *)) +
			arena->chunk_count * sizeof(struct record_buffer_chunk) + 64;
	arena->mapping = mmap(NULL, arena->mapped, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena->mapping == MAP_FAILED)
		return false;
	arena->chunks = (struct record_buffer_chunk *)(void *)((char *)arena->mapping + size);
	arena->headers =
		(struct record_buffer_record_header *)(void *)(arena->chunks + arena->chunk_count);
	arena->times = (uint64_t *)(void *)(arena->headers + headers);
	arena->list = (rocprofiler_record_header_t **)(void *)(arena->times + headers);
	for (uint32_t i = 0; i < arena->chunk_count; i++) {
		struct record_buffer_chunk *chunk = &arena->chunks[i];
		size_t first = (size_t)i * arena->headers_per_chunk;

		atomic_init(&chunk->state, CHUNK_STATE_CLOSED_BIT | CHUNK_STATE_FRESH_BIT);
		chunk->payload = (char *)arena->mapping + (size_t)i * arena->units_per_chunk *
								  RECORD_BUFFER_PAYLOAD_UNIT_BYTES;
		chunk->headers = &arena->headers[first];
		chunk->times = &arena->times[first];
	}
	for (uint32_t i = 0; i < RECORD_BUFFER_LANES_MAX; i++)
		atomic_init(&arena->lane_current_chunks[i].chunk, -1);
	atomic_init(&arena->next, RECORD_BUFFER_NEXT_CHUNK_CLOSED_BIT);
	record_buffer_free_record_groups(arena);
	return true;
}

void record_buffer_free(struct arena *arena)
{
	record_buffer_free_record_groups(arena);
	if (arena->mapping && arena->mapping != MAP_FAILED)
		munmap(arena->mapping, arena->mapped);
	arena->mapping = NULL;
}

/* ---- putting ---- */

static void chunk_reopen_if_fresh_and_closed(struct record_buffer_chunk *chunk)
{
	uint64_t state = atomic_load_explicit(&chunk->state, memory_order_relaxed);

	/* Threads held up since before it was emptied may have added to a closed word. */
	while ((state & CHUNK_STATE_CLOSED_BIT) && (state & CHUNK_STATE_FRESH_BIT)) {
		if (atomic_compare_exchange_weak_explicit(
			    &chunk->state, &state, 0, memory_order_acq_rel, memory_order_relaxed))
			return;
	}
}

/* Gives the lane a chunk in place of `old`, or finds that it has another one by now. */
static enum record_buffer_append_result lane_switch_to_next_chunk(struct arena *arena,
								  uint32_t lane, int32_t old)
{
	uint32_t next = atomic_load_explicit(&arena->next, memory_order_acquire);
	uint64_t units;

	if (next & RECORD_BUFFER_NEXT_CHUNK_CLOSED_BIT)
		return RECORD_BUFFER_CLOSED;
	if (next >= arena->chunk_count)
		return RECORD_BUFFER_FULL;
	next = atomic_fetch_add_explicit(&arena->next, 1, memory_order_acq_rel);
	if (next & RECORD_BUFFER_NEXT_CHUNK_CLOSED_BIT)
		return RECORD_BUFFER_CLOSED;
	if (next >= arena->chunk_count)
		return RECORD_BUFFER_FULL;
	chunk_reopen_if_fresh_and_closed(&arena->chunks[next]);
	if (!atomic_compare_exchange_strong_explicit(&arena->lane_current_chunks[lane].chunk, &old,
						     (int32_t)next, memory_order_acq_rel,
						     memory_order_acquire) ||
	    old < 0)
		return RECORD_BUFFER_APPENDED;
	units = CHUNK_STATE_GET_USED_UNITS(
		atomic_load_explicit(&arena->chunks[old].state, memory_order_relaxed));
	if (units > arena->units_per_chunk)
		units = arena->units_per_chunk;
	atomic_fetch_add_explicit(&arena->left_units, units, memory_order_relaxed);
	return RECORD_BUFFER_APPENDED;
}

/* Records have just been made of 8-byte stores: they are copied by loads of the same size. Larger
 * ones that are not all words are somebody else's, made long before. */
static void copy_record_payload(char *to, const void *from, uint32_t size)
{
	const uint64_t *words = from;
	uint64_t *copies = (uint64_t *)(void *)to;

	if (size % RECORD_BUFFER_PAYLOAD_UNIT_BYTES || size > 512) {
		memcpy(to, from, size);
		return;
	}
	for (uint32_t i = 0; i < size / RECORD_BUFFER_PAYLOAD_UNIT_BYTES; i++)
		copies[i] = words[i];
}

KYMO_HOT static void chunk_write_records(const struct record_buffer_chunk *chunk, uint64_t state,
					 const struct arena_record *records, uint32_t count,
					 uint64_t time)
{
	uint32_t at = CHUNK_STATE_GET_RECORD_COUNT(state);
	char *payload = chunk->payload + (size_t)CHUNK_STATE_GET_USED_UNITS(state) *
						 RECORD_BUFFER_PAYLOAD_UNIT_BYTES;

	for (uint32_t i = 0; i < count; i++, at++) {
		copy_record_payload(payload, records[i].payload, records[i].size);
		chunk->times[at] = time;
		chunk->headers[at].hash = records[i].category | (uint64_t)records[i].kind << 32;
		atomic_store_explicit(&chunk->headers[at].payload, payload, memory_order_release);
		payload += (records[i].size + RECORD_BUFFER_PAYLOAD_UNIT_BYTES - 1) &
			   ~(size_t)(RECORD_BUFFER_PAYLOAD_UNIT_BYTES - 1);
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
static void chunk_mark_reserved_headers_void(const struct arena *arena,
					     const struct record_buffer_chunk *chunk,
					     uint64_t state, uint32_t count)
{
	for (uint32_t i = CHUNK_STATE_GET_RECORD_COUNT(state);
	     count && i < arena->headers_per_chunk; i++, count--)
		atomic_store_explicit(&chunk->headers[i].payload, &void_payload_marker,
				      memory_order_release);
}

static bool chunk_has_room(const struct arena *arena, uint64_t state, uint64_t units,
			   uint32_t count)
{
	return CHUNK_STATE_GET_USED_UNITS(state) + units <= arena->units_per_chunk &&
	       CHUNK_STATE_GET_RECORD_COUNT(state) + count <= arena->headers_per_chunk;
}

static uint64_t count_payload_units_of_records(const struct arena_record *records, uint32_t count)
{
	uint64_t units = 0;

	for (uint32_t i = 0; i < count; i++)
		units += (records[i].size + RECORD_BUFFER_PAYLOAD_UNIT_BYTES - 1) /
			 RECORD_BUFFER_PAYLOAD_UNIT_BYTES;
	return units;
}

KYMO_HOT enum record_buffer_append_result
record_buffer_append_records(struct arena *arena, uint32_t lane, const struct arena_record *records,
			     uint32_t count, uint64_t time, uint64_t *used)
{
	uint64_t units = count_payload_units_of_records(records, count), state;

	if (__builtin_expect(units > arena->units_per_chunk || count > arena->headers_per_chunk, 0))
		return record_buffer_append_record_group(arena, records, count, units, time, used);
	lane &= arena->lane_count - 1;
	for (;;) {
		int32_t number = atomic_load_explicit(&arena->lane_current_chunks[lane].chunk,
						      memory_order_acquire);
		enum record_buffer_append_result result;

		if (number >= 0) {
			struct record_buffer_chunk *chunk = &arena->chunks[number];

			state = atomic_load_explicit(&chunk->state, memory_order_relaxed);
			if (state & CHUNK_STATE_CLOSED_BIT)
				return RECORD_BUFFER_CLOSED;
			if (chunk_has_room(arena, state, units, count)) {
				state = atomic_fetch_add_explicit(
					&chunk->state, count * CHUNK_STATE_RECORD_INCREMENT + units,
					memory_order_acquire);
				if (state & CHUNK_STATE_CLOSED_BIT)
					return RECORD_BUFFER_CLOSED;
				if (chunk_has_room(arena, state, units, count)) {
					chunk_write_records(chunk, state, records, count, time);
					*used = (atomic_load_explicit(&arena->left_units,
								      memory_order_relaxed) +
						 CHUNK_STATE_GET_USED_UNITS(state) + units) *
						RECORD_BUFFER_PAYLOAD_UNIT_BYTES;
					return RECORD_BUFFER_APPENDED;
				}
				chunk_mark_reserved_headers_void(arena, chunk, state, count);
			}
		}
		result = lane_switch_to_next_chunk(arena, lane, number);
		if (result != RECORD_BUFFER_APPENDED)
			return result;
	}
}

/* ---- taking out ---- */

/* Returns the chunk's last word, or 0 where nobody had it. */
static uint64_t chunk_close(struct record_buffer_chunk *chunk)
{
	uint64_t state = atomic_load_explicit(&chunk->state, memory_order_relaxed);

	while (state & CHUNK_STATE_FRESH_BIT) {
		if (atomic_compare_exchange_weak_explicit(
			    &chunk->state, &state, CHUNK_STATE_CLOSED_BIT, memory_order_acq_rel,
			    memory_order_relaxed))
			return 0;
	}
	return atomic_fetch_or_explicit(&chunk->state, CHUNK_STATE_CLOSED_BIT,
					memory_order_acq_rel) &
	       ~CHUNK_STATE_CLOSED_BIT;
}

/* A writer may be between its addition and its last store: some ten instructions, if it is not held
 * up by the scheduler. */
static void *wait_for_header_payload(struct record_buffer_record_header *header)
{
	void *payload;

	while (!(payload = atomic_load_explicit(&header->payload, memory_order_acquire)))
		sched_yield();
	return payload;
}

static size_t chunk_close_and_list_headers(struct arena *arena, uint32_t number, size_t count)
{
	uint64_t state = chunk_close(&arena->chunks[number]);
	uint32_t records = CHUNK_STATE_GET_RECORD_COUNT(state);

	if (records > arena->headers_per_chunk)
		records = arena->headers_per_chunk;
	for (uint32_t i = 0; i < records; i++) {
		struct record_buffer_record_header *header = &arena->chunks[number].headers[i];

		if (wait_for_header_payload(header) != &void_payload_marker)
			arena->list[count++] = (rocprofiler_record_header_t *)(void *)header;
	}
	return count;
}

uint64_t record_buffer_get_record_time(const struct arena *arena,
				       const rocprofiler_record_header_t *header)
{
	return arena->times[(const struct record_buffer_record_header *)(const void *)header -
			    arena->headers];
}

/* By time; records put together have the same one and lie behind each other. */
static int compare_headers_by_time(const void *a, const void *b, void *context)
{
	const rocprofiler_record_header_t *one = *(rocprofiler_record_header_t *const *)a;
	const rocprofiler_record_header_t *other = *(rocprofiler_record_header_t *const *)b;
	uint64_t time = record_buffer_get_record_time(context, one),
		 other_time = record_buffer_get_record_time(context, other);

	if (time != other_time)
		return time < other_time ? -1 : 1;
	return one < other ? -1 : one > other;
}

size_t record_buffer_close_and_list_headers(struct arena *arena,
					    rocprofiler_record_header_t ***list)
{
	uint32_t chunks =
		atomic_fetch_or_explicit(&arena->next, RECORD_BUFFER_NEXT_CHUNK_CLOSED_BIT,
					 memory_order_acq_rel) &
		~RECORD_BUFFER_NEXT_CHUNK_CLOSED_BIT;
	size_t count = 0;
	bool ordered = true;

	if (chunks > arena->chunk_count)
		chunks = arena->chunk_count;
	for (uint32_t i = 0; i < chunks; i++)
		count = chunk_close_and_list_headers(arena, i, count);
	for (size_t i = 1; arena->lane_count > 1 && ordered && i < count; i++)
		ordered = compare_headers_by_time(&arena->list[i - 1], &arena->list[i], arena) <= 0;
	if (!ordered)
		qsort_r(arena->list, count, sizeof(void *), compare_headers_by_time, arena);
	return record_buffer_close_and_merge_record_groups(arena, count, list);
}

void record_buffer_reset(struct arena *arena)
{
	uint32_t chunks = atomic_load_explicit(&arena->next, memory_order_relaxed) &
			  ~RECORD_BUFFER_NEXT_CHUNK_CLOSED_BIT;

	record_buffer_free_record_groups(arena);
	if (chunks > arena->chunk_count)
		chunks = arena->chunk_count;
	for (uint32_t i = 0; i < chunks; i++) {
		uint64_t state =
			atomic_load_explicit(&arena->chunks[i].state, memory_order_relaxed);
		uint32_t records = CHUNK_STATE_GET_RECORD_COUNT(state);

		if (records > arena->headers_per_chunk)
			records = arena->headers_per_chunk;
		for (uint32_t j = 0; j < records; j++)
			atomic_store_explicit(&arena->chunks[i].headers[j].payload, NULL,
					      memory_order_relaxed);
	}
	for (uint32_t i = 0; i < RECORD_BUFFER_LANES_MAX; i++)
		atomic_store_explicit(&arena->lane_current_chunks[i].chunk, -1,
				      memory_order_relaxed);
	for (uint32_t i = 0; i < chunks; i++)
		atomic_store_explicit(&arena->chunks[i].state,
				      CHUNK_STATE_CLOSED_BIT | CHUNK_STATE_FRESH_BIT,
				      memory_order_release);
	atomic_store_explicit(&arena->left_units, 0, memory_order_relaxed);
	atomic_store_explicit(&arena->next, RECORD_BUFFER_NEXT_CHUNK_CLOSED_BIT,
			      memory_order_release);
}

/* The only chunk is the only lane's from the start: there is never a moment at which it is taken
 * and the lane does not have it yet, which would look like an arena that is full. */
void record_buffer_open(struct arena *arena)
{
	record_buffer_reopen_record_groups(arena);
	if (arena->chunk_count == 1) {
		chunk_reopen_if_fresh_and_closed(&arena->chunks[0]);
		atomic_store_explicit(&arena->lane_current_chunks[0].chunk, 0,
				      memory_order_release);
	}
	atomic_store_explicit(&arena->next, arena->chunk_count == 1, memory_order_release);
}

bool record_buffer_is_empty(struct arena *arena)
{
	uint32_t chunks = atomic_load_explicit(&arena->next, memory_order_acquire) &
			  ~RECORD_BUFFER_NEXT_CHUNK_CLOSED_BIT;

	for (uint32_t i = 0; i < chunks && i < arena->chunk_count; i++) {
		uint64_t state =
			atomic_load_explicit(&arena->chunks[i].state, memory_order_acquire);

		if (!(state & CHUNK_STATE_FRESH_BIT) && CHUNK_STATE_GET_RECORD_COUNT(state))
			return false;
	}
	return record_buffer_has_no_record_groups(arena);
}
