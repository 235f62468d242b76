/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Memory that many threads put records into at once and one thread takes them out of as a whole.
 *
 * A chunk is a part of it with one word: how much of its payload is taken, and by how many records.
 * One atomic addition reserves both, the payload and its place in the chunk's list of headers; the
 * address in the header, stored last, says that the record is there. Threads have *lanes*, each
 * with a chunk of its own, so that in a large arena they do not even share a cache line; a small
 * arena is one chunk, and its order is exactly that in which the records were put. Where there are
 * lanes, records carry a tick each, and are put in order when they are taken out.
 *
 * A chunk that is not in use is closed. A thread that was held up between looking and adding finds
 * it so, whatever has happened to the arena meanwhile, and looks again.
 */
#ifndef KYMO_LIBKYMO_SDK_BASE_ARENA_H
#define KYMO_LIBKYMO_SDK_BASE_ARENA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rocprofiler-sdk/fwd.h>

#define RECORD_BUFFER_LANES_MAX 16

enum record_buffer_append_result {
	RECORD_BUFFER_APPENDED,
	RECORD_BUFFER_CLOSED, /* it is being emptied: another one is in use */
	RECORD_BUFFER_FULL,
	RECORD_BUFFER_NO_MEMORY
};

/* Records put together that no chunk could ever hold: memory of their own (arena_groups.c). */
struct record_buffer_record_group;

struct record_buffer_record_header {
	uint64_t hash;
	_Atomic(void *)
		payload; /* NULL: not there yet; that of void_payload_marker: never will be */
};

struct record_buffer_chunk {
	_Alignas(64) _Atomic uint64_t state;
	char *payload;
	struct record_buffer_record_header *headers;
	uint64_t *times;
};

struct arena {
	_Atomic uint32_t next; /* the first chunk that no lane had; the highest bit: no more */
	uint32_t lane_count,   /* a power of two */
		chunk_count, units_per_chunk, headers_per_chunk;
	_Alignas(64) _Atomic uint64_t left_units; /* in chunks that lanes have done with */
	struct {
		_Alignas(64) _Atomic int32_t chunk;
	} lane_current_chunks[RECORD_BUFFER_LANES_MAX];
	struct record_buffer_chunk *chunks;
	struct record_buffer_record_header *headers; /* of all chunks */
	uint64_t *times;
	rocprofiler_record_header_t **list;
	size_t mapped;
	void *mapping;
	_Atomic(struct record_buffer_record_group *)
		groups; /* the latest first; &arena_closed_groups_marker: no more */
	_Atomic uint64_t group_units_used;
	struct record_buffer_record_group *taken;  /* since the arena was closed */
	rocprofiler_record_header_t **merged_list; /* in place of `list`, where there are groups */
	size_t lost; /* records of groups that there was no memory to list */
};

/* size: bytes of payload, whole pages. false: no memory. */
bool record_buffer_create(struct arena *arena, size_t size);
void record_buffer_free(struct arena *arena);

struct arena_record {
	uint32_t category, kind;
	uint32_t size;
	const void *payload;
};

/* Puts records behind each other: all or none. used: bytes of payload in the arena now. */
enum record_buffer_append_result record_buffer_append_records(struct arena *arena, uint32_t lane,
							      const struct arena_record *records,
							      uint32_t count, uint64_t time,
							      uint64_t *used);

/* For the one thread that empties it, with another arena in use already. Returns how many headers
 * are in *list; they are valid until record_buffer_reset(). */
size_t record_buffer_close_and_list_headers(struct arena *arena,
					    rocprofiler_record_header_t ***list);
void record_buffer_reset(struct arena *arena);
/* Before it comes into use. Until then nothing can be put in, not even by threads that are late. */
void record_buffer_open(struct arena *arena);
bool record_buffer_is_empty(struct arena *arena);

/* ---- arena_groups.c ---- */

enum record_buffer_append_result
record_buffer_append_record_group(struct arena *arena, const struct arena_record *records,
				  uint32_t count, uint64_t units, uint64_t time, uint64_t *used);
void record_buffer_reopen_record_groups(struct arena *arena);
/* Puts the groups among `count` headers of arena->list, by their times, each in one piece. Returns
 * how many there are then; *list is the list that has them all. */
size_t record_buffer_close_and_merge_record_groups(struct arena *arena, size_t count,
						   rocprofiler_record_header_t ***list);
void record_buffer_free_record_groups(struct arena *arena);
bool record_buffer_has_no_record_groups(struct arena *arena);
uint64_t record_buffer_get_record_time(const struct arena *arena,
				       const rocprofiler_record_header_t *header);

#endif
