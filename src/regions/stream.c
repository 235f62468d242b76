/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See stream.h.
 */
#include "regions/stream.h"

#include "common/syscalls.h"
#include "core/chunk_wait.h"
#include "core/ticks.h"
#include "regions/names.h"

#define SPAN_OPEN_MAX  512u /* open regions listed in a span: the innermost ones */
#define SPAN_ENTRY_MAX (5 + LEB128_MAX)
#define RETRY_FRACTION 20 /* of a second, after which a chunk is asked for again */

static struct spool_chunk *with_room(struct spool_writer *spool, struct spool_chunk *chunk,
				     uint32_t wanted)
{
	if (!chunk || spool_chunk_capacity(chunk) - chunk->header->committed >= wanted)
		return chunk;
	spool_chunk_give_back(spool, chunk);
	return NULL;
}

static struct spool_chunk *take_chunk(struct spool_writer *spool, bool large, uint32_t wanted)
{
	struct spool_chunk *chunk = NULL;

	if (!large && wanted <= SPOOL_PARTIAL_WORTH)
		chunk = spool_chunk_take_partial(spool);
	if (!chunk)
		chunk = spool_chunk_take(
			spool, large || wanted > SPOOL_CHUNK_SMALL / 2 ? SPOOL_LARGE : SPOOL_SMALL);
	return with_room(spool, chunk, wanted);
}

static uint32_t traced_frames(const struct region_thread *thread)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < thread->depth; i++)
		count += (thread->frames[i].flags & FRAME_TRACED) != 0;
	return count;
}

/* The payload of a span: who, when, and what is open. Deep stacks are listed from the inside; an
 * entry of region 0 in front says how many are left out. */
static uint8_t *put_span(const struct region_thread *thread, uint8_t *at, uint64_t ticks)
{
	uint32_t open = traced_frames(thread), left_out = 0, index = 0;

	if (open > SPAN_OPEN_MAX)
		left_out = open - SPAN_OPEN_MAX;
	at = leb128_put(at, thread->thread->internal_id);
	at = leb128_put(at, thread->thread->tid);
	at = leb128_put_fixed(at, ticks);
	at = leb128_put(at, left_out ? SPAN_OPEN_MAX + 1 : open);
	if (left_out) {
		at = leb128_put(at, 0);
		at = leb128_put(at, left_out);
	}
	for (uint32_t i = 0; i < thread->depth; i++) {
		const struct region_frame *frame = &thread->frames[i];

		if (!(frame->flags & FRAME_TRACED) || index++ < left_out)
			continue;
		at = leb128_put(at, frame->region & REGION_NUMBER);
		at = leb128_put(at, ticks > frame->begin_ticks ? ticks - frame->begin_ticks : 0);
	}
	return at;
}

static uint32_t span_size(const struct region_thread *thread)
{
	uint32_t listed = thread->depth < SPAN_OPEN_MAX ? thread->depth : SPAN_OPEN_MAX;

	return 32 + (listed + 1) * SPAN_ENTRY_MAX;
}

/* The length of a span is written in three bytes, whatever it is, because it is known last. */
static void begin_span(struct region_thread *thread, uint64_t ticks)
{
	struct region_stream *stream = &thread->stream;
	uint8_t *record = stream->at, *end = put_span(thread, record + 4, ticks);
	uint32_t length = (uint32_t)(end - record - 4);

	record[0] = SPOOL_RECORD_REGION_SPAN;
	record[1] = (uint8_t)(length | 0x80);
	record[2] = (uint8_t)(length >> 7 | 0x80);
	record[3] = (uint8_t)(length >> 14);
	stream->last_ticks = ticks;
	stream_commit(stream, end);
	stream->events--; /* not an event */
}

static void retire(struct region_thread *thread)
{
	struct region_stream *stream = &thread->stream;
	struct spool_writer *spool = &kymo_runtime.spool;

	if (!stream->chunk)
		return;
	atomic_fetch_add_explicit((_Atomic uint64_t *)&spool->header->region_events, stream->events,
				  memory_order_relaxed);
	stream->events = 0;
	spool_chunk_retire(spool, stream->chunk);
	stream->chunk = NULL;
	stream->at = stream->limit = NULL;
}

static void use_chunk(struct region_stream *stream, struct spool_chunk *chunk, uint64_t ticks)
{
	stream->chunk = chunk;
	stream->data = spool_chunk_data(chunk);
	stream->committed = (_Atomic uint32_t *)&chunk->header->committed;
	stream->at = stream->data + atomic_load_explicit(stream->committed, memory_order_relaxed);
	stream->limit = stream->data + spool_chunk_capacity(chunk);
	stream->chunk_ticks = ticks;
}

bool stream_next_chunk(struct region_thread *thread, uint32_t size, uint64_t ticks)
{
	struct spool_writer *spool = &kymo_runtime.spool;
	struct region_stream *stream = &thread->stream;
	uint32_t wanted = size + span_size(thread);
	struct spool_chunk *chunk;

	if (stream->chunk && ticks - stream->chunk_ticks < kymo_runtime.sampling.growth_ticks)
		stream->large = true;
	retire(thread);
	if (stream->retry_ticks > ticks || wanted > SPOOL_CHUNK_LARGE / 2)
		return false;
	chunk = take_chunk(spool, stream->large, wanted);
	if (!chunk)
		chunk = with_room(spool, chunk_wait(SPOOL_LARGE, CHUNK_IN_CALL), wanted);
	else if (atomic_load_explicit(&spool->wanted, memory_order_relaxed))
		background_wake(&kymo_runtime.background);
	if (!chunk) {
		stream->retry_ticks = ticks + kymo_runtime.sampling.tick_hz / RETRY_FRACTION;
		return false;
	}
	use_chunk(stream, chunk, ticks);
	begin_span(thread, ticks);
	return true;
}

void stream_close(struct region_thread *thread)
{
	struct region_stream *stream = &thread->stream;

	if (!stream->chunk)
		return;
	atomic_fetch_add_explicit((_Atomic uint64_t *)&kymo_runtime.spool.header->region_events,
				  stream->events, memory_order_relaxed);
	spool_chunk_give_back(&kymo_runtime.spool, stream->chunk);
	stream_forget(thread);
}

void stream_forget(struct region_thread *thread)
{
	thread->stream = (struct region_stream){0};
}

/* ---- records that are not of the usual kind ---- */

bool stream_write_any(struct region_thread *thread, enum spool_record kind, uint64_t ticks,
		      uint64_t number)
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

bool stream_write_any_end(struct region_thread *thread, uint64_t ticks)
{
	uint8_t *record = stream_record(thread, STREAM_ROOM, ticks), *at;

	if (!record)
		return false;
	record[0] = SPOOL_RECORD_REGION_END;
	at = leb128_put(record + 2, stream_delta(&thread->stream, ticks));
	record[1] = (uint8_t)(at - record - 2);
	stream_commit(&thread->stream, at);
	return true;
}
