/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A thread's region records: written straight into a chunk of the spool, which is part of the file.
 *
 * stream_reserve_record() gives room for one record (or NULL, counted); stream_commit_record()
 * makes it part of the file. When no chunk is ready the thread waits a little for kymo's own
 * threads to make one: a region costs time then rather than being lost. It does not wait when the
 * disk is full.
 */
#ifndef KYMO_REGIONS_STREAM_H
#define KYMO_REGIONS_STREAM_H

#include "common/leb128.h"
#include "regions/state.h"

/* For a record and the usual values behind it: these must be in the same chunk. */
#define STREAM_RECORD_ROOM_BYTES 320u

/* A chunk with room for `size` bytes, begun with a span; false when there is none. */
bool stream_begin_next_chunk(struct region_thread_state *thread, uint32_t size, uint64_t ticks);
/* What is open on the thread is another now than its records tell. False: no chunk. */
bool stream_write_span(struct region_thread_state *thread, uint64_t ticks);
/* The chunk goes back, for another thread if there is room in it. */
void stream_pass_chunk_back_to_spool(struct region_thread_state *thread);
/* In a forked child: the chunk is the parent's. */
void stream_reset(struct region_thread_state *thread);

static inline uint8_t *stream_reserve_record(struct region_thread_state *thread, uint32_t size,
					     uint64_t ticks)
{
	struct region_record_stream *stream = &thread->stream;

	if (__builtin_expect((size_t)(stream->chunk_end - stream->at) < size, 0) &&
	    !stream_begin_next_chunk(thread, size, ticks))
		return NULL;
	return stream->at;
}

static inline void stream_commit_record(struct region_record_stream *stream, uint8_t *end)
{
	stream->at = end;
	stream->events++;
	/* release: a reader that sees the length sees the bytes */
	atomic_store_explicit(stream->chunk_committed_bytes, (uint32_t)(end - stream->data),
			      memory_order_release);
}

static inline uint64_t stream_advance_ticks_and_get_delta(struct region_record_stream *stream,
							  uint64_t ticks)
{
	uint64_t delta = ticks > stream->last_record_ticks ? ticks - stream->last_record_ticks : 0;

	stream->last_record_ticks += delta;
	return delta;
}

/* Numbers in a fixed three or two bytes, as LEB128 with leading zeros: one store writes a whole
 * record, which costs less than finding out how short it could be. */
#define STREAM_SHORT_TICKS_LIMIT  (1u << 21)
#define STREAM_SHORT_NUMBER_LIMIT (1u << 14)

static inline uint64_t stream_encode_three_byte_leb128(uint64_t value)
{
	return 0x8080 | (value & 0x7f) | (value & 0x3f80) << 1 | (value & 0x1fc000) << 2;
}

static inline uint64_t stream_encode_two_byte_leb128(uint64_t value)
{
	return 0x80 | (value & 0x7f) | (value & 0x3f80) << 1;
}

/* What the two that follow do where a chunk is full or numbers are long. */
bool stream_write_record_slow(struct region_thread_state *thread, enum spool_record kind,
			      uint64_t ticks, uint64_t number);
bool stream_write_end_record_slow(struct region_thread_state *thread, uint64_t ticks);

/* Is there room, and did little time pass since the last record? (None: time that went back.) */
static inline bool stream_has_room_for_short_record(const struct region_record_stream *stream,
						    uint64_t delta)
{
	return (size_t)(stream->chunk_end - stream->at) >= STREAM_RECORD_ROOM_BYTES &&
	       delta < STREAM_SHORT_TICKS_LIMIT;
}

/* Where stream_has_room_for_short_record(): kind, length, dt and one number, which is short. */
static inline void stream_put_short_record(struct region_record_stream *stream,
					   enum spool_record kind, uint64_t ticks, uint64_t delta,
					   uint64_t number)
{
	uint8_t *record = stream->at;
	uint64_t word = (uint64_t)kind | 5u << 8 | stream_encode_three_byte_leb128(delta) << 16 |
			stream_encode_two_byte_leb128(number) << 40;

	stream->last_record_ticks = ticks;
	__builtin_memcpy(record, &word, sizeof(word));
	stream_commit_record(stream, record + 7);
}

/* An end, which has no number. */
static inline void stream_put_end_record(struct region_record_stream *stream, uint64_t ticks,
					 uint64_t delta)
{
	uint8_t *record = stream->at;
	uint64_t word = (uint64_t)SPOOL_RECORD_REGION_END | 3u << 8 |
			stream_encode_three_byte_leb128(delta) << 16;

	stream->last_record_ticks = ticks;
	__builtin_memcpy(record, &word, sizeof(word));
	stream_commit_record(stream, record + 5);
}

/* kind, length, dt and one number: what begin, mark and the like are. False: no chunk. */
static inline bool stream_write_record(struct region_thread_state *thread, enum spool_record kind,
				       uint64_t ticks, uint64_t number)
{
	struct region_record_stream *stream = &thread->stream;
	uint64_t delta = ticks - stream->last_record_ticks;

	if (__builtin_expect(!stream_has_room_for_short_record(stream, delta) ||
				     number >= STREAM_SHORT_NUMBER_LIMIT,
			     0))
		return stream_write_record_slow(thread, kind, ticks, number);
	stream_put_short_record(stream, kind, ticks, delta, number);
	return true;
}

/* The same without a number. */
static inline bool stream_write_end_record(struct region_thread_state *thread, uint64_t ticks)
{
	struct region_record_stream *stream = &thread->stream;
	uint64_t delta = ticks - stream->last_record_ticks;

	if (__builtin_expect(!stream_has_room_for_short_record(stream, delta), 0))
		return stream_write_end_record_slow(thread, ticks);
	stream_put_end_record(stream, ticks, delta);
	return true;
}

#endif
