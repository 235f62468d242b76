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
/* When none is ready: kymo's own threads are told to make one, and waited for. NULL: none came. */
struct spool_chunk *stream_wait_for_chunk(enum spool_chunk_class chunk_class);
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

/* kind, length, dt and one number: what begin, mark and the like are. False: no chunk. */
static inline bool stream_write(struct region_thread *thread, enum spool_record kind,
				uint64_t ticks, uint64_t number)
{
	uint8_t *record = stream_record(thread, STREAM_ROOM, ticks), *at;

	if (!record)
		return false;
	record[0] = (uint8_t)kind;
	at = leb128_put(record + 2, stream_delta(&thread->stream, ticks));
	at = leb128_put(at, number);
	record[1] = (uint8_t)(at - record - 2);
	stream_commit(&thread->stream, at);
	return true;
}

#endif
