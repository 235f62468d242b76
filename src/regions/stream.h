/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A thread's region records: written straight into a chunk of the spool, which is part of the file.
 *
 * stream_record() gives room for one record (or NULL, counted); stream_commit() makes it part of
 * the file. When no chunk is ready the thread waits a little for kymo's own threads to make one: a
 * region costs time then rather than being lost. It does not wait when the disk is full.
 */
#ifndef KYMO_REGIONS_STREAM_H
#define KYMO_REGIONS_STREAM_H

#include "common/leb128.h"
#include "regions/state.h"

/* For a record and the usual values behind it: these must be in the same chunk. */
#define STREAM_ROOM 320u

/* A chunk with room for `size` bytes, begun with a span; false when there is none. */
bool stream_next_chunk(struct region_thread *thread, uint32_t size, uint64_t ticks);
/* The chunk goes back, for another thread if there is room in it. */
void stream_close(struct region_thread *thread);
/* In a forked child: the chunk is the parent's. */
void stream_forget(struct region_thread *thread);

static inline uint8_t *stream_record(struct region_thread *thread, uint32_t size, uint64_t ticks)
{
	struct region_stream *stream = &thread->stream;

	if (__builtin_expect((size_t)(stream->limit - stream->at) < size, 0) &&
	    !stream_next_chunk(thread, size, ticks))
		return NULL;
	return stream->at;
}

static inline void stream_commit(struct region_stream *stream, uint8_t *end)
{
	stream->at = end;
	stream->events++;
	/* release: a reader that sees the length sees the bytes */
	atomic_store_explicit(stream->committed, (uint32_t)(end - stream->data),
			      memory_order_release);
}

static inline uint64_t stream_delta(struct region_stream *stream, uint64_t ticks)
{
	uint64_t delta = ticks > stream->last_ticks ? ticks - stream->last_ticks : 0;

	stream->last_ticks += delta;
	return delta;
}

/* Numbers in a fixed three or two bytes, as LEB128 with leading zeros: one store writes a whole
 * record, which costs less than finding out how short it could be. */
#define STREAM_SHORT_TICKS  (1u << 21)
#define STREAM_SHORT_NUMBER (1u << 14)

static inline uint64_t stream_three_bytes(uint64_t value)
{
	return 0x8080 | (value & 0x7f) | (value & 0x3f80) << 1 | (value & 0x1fc000) << 2;
}

static inline uint64_t stream_two_bytes(uint64_t value)
{
	return 0x80 | (value & 0x7f) | (value & 0x3f80) << 1;
}

/* What the two that follow do where a chunk is full or numbers are long. */
bool stream_write_any(struct region_thread *thread, enum spool_record kind, uint64_t ticks,
		      uint64_t number);
bool stream_write_any_end(struct region_thread *thread, uint64_t ticks);

/* Is there room, and did little time pass since the last record? (None: time that went back.) */
static inline bool stream_is_quick(const struct region_stream *stream, uint64_t delta)
{
	return (size_t)(stream->limit - stream->at) >= STREAM_ROOM && delta < STREAM_SHORT_TICKS;
}

/* Where stream_is_quick(): kind, length, dt and one number, which is short. */
static inline void stream_put(struct region_stream *stream, enum spool_record kind, uint64_t ticks,
			      uint64_t delta, uint64_t number)
{
	uint8_t *record = stream->at;
	uint64_t word = (uint64_t)kind | 5u << 8 | stream_three_bytes(delta) << 16 |
			stream_two_bytes(number) << 40;

	stream->last_ticks = ticks;
	__builtin_memcpy(record, &word, sizeof(word));
	stream_commit(stream, record + 7);
}

/* An end, which has no number. */
static inline void stream_put_end(struct region_stream *stream, uint64_t ticks, uint64_t delta)
{
	uint8_t *record = stream->at;
	uint64_t word =
		(uint64_t)SPOOL_RECORD_REGION_END | 3u << 8 | stream_three_bytes(delta) << 16;

	stream->last_ticks = ticks;
	__builtin_memcpy(record, &word, sizeof(word));
	stream_commit(stream, record + 5);
}

/* kind, length, dt and one number: what begin, mark and the like are. False: no chunk. */
static inline bool stream_write(struct region_thread *thread, enum spool_record kind,
				uint64_t ticks, uint64_t number)
{
	struct region_stream *stream = &thread->stream;
	uint64_t delta = ticks - stream->last_ticks;

	if (__builtin_expect(!stream_is_quick(stream, delta) || number >= STREAM_SHORT_NUMBER, 0))
		return stream_write_any(thread, kind, ticks, number);
	stream_put(stream, kind, ticks, delta, number);
	return true;
}

/* The same without a number. */
static inline bool stream_write_end(struct region_thread *thread, uint64_t ticks)
{
	struct region_stream *stream = &thread->stream;
	uint64_t delta = ticks - stream->last_ticks;

	if (__builtin_expect(!stream_is_quick(stream, delta), 0))
		return stream_write_any_end(thread, ticks);
	stream_put_end(stream, ticks, delta);
	return true;
}

#endif
