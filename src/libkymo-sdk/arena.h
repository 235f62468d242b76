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
#ifndef KYMO_LIBKYMO_SDK_ARENA_H
#define KYMO_LIBKYMO_SDK_ARENA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rocprofiler-sdk/fwd.h>

#define ARENA_LANES_MAX 16

enum arena_result {
	ARENA_DONE,
	ARENA_CLOSED, /* it is being emptied: another one is in use */
	ARENA_FULL,
	ARENA_NO_MEMORY
};

/* Records put together that no chunk could ever hold: memory of their own (arena_groups.c). */
struct arena_group;

struct arena_header {
	uint64_t hash;
	_Atomic(void *) payload; /* NULL: not there yet; that of arena_void: never will be */
};

struct arena_chunk {
	_Alignas(64) _Atomic uint64_t state;
	char *payload;
	struct arena_header *headers;
	uint64_t *times;
};

struct arena {
	_Atomic uint32_t next; /* the first chunk that no lane had; the highest bit: no more */
	uint32_t lanes,        /* a power of two */
		chunk_count, chunk_units, chunk_headers;
	_Alignas(64) _Atomic uint64_t left_units; /* in chunks that lanes have done with */
	struct {
		_Alignas(64) _Atomic int32_t chunk;
	} lane[ARENA_LANES_MAX];
	struct arena_chunk *chunks;
	struct arena_header *headers; /* of all chunks */
	uint64_t *times;
	rocprofiler_record_header_t **list;
	size_t mapped;
	void *mapping;
	_Atomic(struct arena_group *) groups; /* the latest first; &arena_closed: no more */
	_Atomic uint64_t group_units;
	struct arena_group *taken;            /* since the arena was closed */
	rocprofiler_record_header_t **merged; /* in place of `list`, where there are groups */
	size_t lost; /* records of groups that there was no memory to list */
};

/* size: bytes of payload, whole pages. false: no memory. */
bool arena_make(struct arena *arena, size_t size);
void arena_free(struct arena *arena);

struct arena_record {
	uint32_t category, kind;
	uint32_t size;
	const void *payload;
};

/* Puts records behind each other: all or none. used: bytes of payload in the arena now. */
enum arena_result arena_put(struct arena *arena, uint32_t lane, const struct arena_record *records,
			    uint32_t count, uint64_t time, uint64_t *used);

/* Of the one thread that empties it, with another arena in use already. Returns how many headers
 * are in *list; they are valid until arena_reset(). */
size_t arena_close(struct arena *arena, rocprofiler_record_header_t ***list);
void arena_reset(struct arena *arena);
/* Before it comes into use. Until then nothing can be put in, not even by threads that are late. */
void arena_open(struct arena *arena);
bool arena_is_empty(struct arena *arena);

/* ---- arena_groups.c ---- */

enum arena_result arena_groups_put(struct arena *arena, const struct arena_record *records,
				   uint32_t count, uint64_t units, uint64_t time, uint64_t *used);
void arena_groups_open(struct arena *arena);
/* Puts the groups among `count` headers of arena->list, by their times, each in one piece. Returns
 * how many there are then; *list is the list that has them all. */
size_t arena_groups_close(struct arena *arena, size_t count, rocprofiler_record_header_t ***list);
void arena_groups_reset(struct arena *arena);
bool arena_groups_are_empty(struct arena *arena);
uint64_t arena_time(const struct arena *arena, const rocprofiler_record_header_t *header);

#endif
