/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See stream.h.
 */
#include "regions/stream.h"

#include "common/syscalls.h"
#include "core/base/ticks.h"
#include "core/spool/chunk_wait.h"
#include "core/threads.h"
#include "regions/names.h"

#define SPAN_LISTED_REGIONS_MAX            512u /* open regions listed in a span: the innermost ones */
#define SPAN_LISTED_REGION_ENTRY_BYTES_MAX (5 + LEB128_BYTES_MAX)
#define CHUNK_RETRIES_PER_SECOND           20 /* of a second, after which a chunk is asked for again */

static struct spool_chunk *return_chunk_if_without_room(struct spool_writer *spool,
							struct spool_chunk *chunk, uint32_t wanted)
{
	if (!chunk || spool_chunk_get_capacity(chunk) - chunk->header->committed >= wanted)
		return chunk;
	spool_chunk_pass_on_or_retire(spool, chunk);
	return NULL;
}

static struct spool_chunk *take_stream_chunk(struct spool_writer *spool, bool large,
					     uint32_t wanted)
{
	struct spool_chunk *chunk = NULL;

	if (!large && wanted <= SPOOL_PARTIAL_CHUNK_ROOM_LEAST)
		chunk = spool_chunk_take_partial(spool);
	if (!chunk)
		chunk = spool_chunk_take(spool, large || wanted > SPOOL_CHUNK_SMALL_SIZE / 2
							? SPOOL_CHUNK_CLASS_LARGE
							: SPOOL_CHUNK_CLASS_SMALL);
	return return_chunk_if_without_room(spool, chunk, wanted);
}

static uint32_t count_traced_frames(const struct region_thread_state *thread)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < thread->depth; i++)
		count += (thread->frames[i].flags & REGION_FRAME_TRACED) != 0;
	return count;
}

/* The payload of a span: who, when, and what is open. Deep stacks are listed from the inside; an
 * entry of region 0 in front says how many are left out. */
static uint8_t *encode_span_of_open_regions(const struct region_thread_state *thread, uint8_t *at,
					    uint64_t ticks)
{
	uint32_t open = count_traced_frames(thread), left_out = 0, index = 0;

	if (open > SPAN_LISTED_REGIONS_MAX)
		left_out = open - SPAN_LISTED_REGIONS_MAX;
	at = leb128_write(at, thread->thread->internal_id);
	at = leb128_write(at, thread->thread->tid);
	at = write_fixed64_little_endian(at, ticks);
	at = leb128_write(at, left_out ? SPAN_LISTED_REGIONS_MAX + 1 : open);
	if (left_out) {
		at = leb128_write(at, 0);
		at = leb128_write(at, left_out);
	}
	for (uint32_t i = 0; i < thread->depth; i++) {
		const struct region_frame *frame = &thread->frames[i];

		if (!(frame->flags & REGION_FRAME_TRACED) || index++ < left_out)
			continue;
		at = leb128_write(at, frame->region & REGION_NUMBER_MASK);
		at = leb128_write(at, ticks > frame->begin_ticks ? ticks - frame->begin_ticks : 0);
	}
	return at;
}

static uint32_t compute_span_size_max(const struct region_thread_state *thread)
{
	uint32_t listed =
		thread->depth < SPAN_LISTED_REGIONS_MAX ? thread->depth : SPAN_LISTED_REGIONS_MAX;

	return 32 + (listed + 1) * SPAN_LISTED_REGION_ENTRY_BYTES_MAX;
}

/* The length of a span is written in three bytes, whatever it is, because it is known last. */
static void write_span_of_open_regions(struct region_thread_state *thread, uint64_t ticks)
{
	struct region_record_stream *stream = &thread->stream;
	uint8_t *record = stream->at, *end = encode_span_of_open_regions(thread, record + 4, ticks);
	uint32_t length = (uint32_t)(end - record - 4);

	record[0] = SPOOL_RECORD_REGION_SPAN;
	record[1] = (uint8_t)(length | 0x80);
	record[2] = (uint8_t)(length >> 7 | 0x80);
	record[3] = (uint8_t)(length >> 14);
	stream->last_record_ticks = ticks;
	stream_commit_record(stream, end);
	stream->events--; /* not an event */
}

static void retire_stream_chunk(struct region_thread_state *thread)
{
	struct region_record_stream *stream = &thread->stream;
	struct spool_writer *spool = kymo_regions.spool;

	if (!stream->chunk)
		return;
	atomic_fetch_add_explicit((_Atomic uint64_t *)&spool->header->region_events, stream->events,
				  memory_order_relaxed);
	stream->events = 0;
	spool_chunk_retire(spool, stream->chunk);
	stream->chunk = NULL;
	stream->at = stream->chunk_end = NULL;
}

static void set_current_stream_chunk(struct region_record_stream *stream, struct spool_chunk *chunk,
				     uint64_t ticks)
{
	stream->chunk = chunk;
	stream->data = spool_chunk_get_data(chunk);
	stream->chunk_committed_bytes = (_Atomic uint32_t *)&chunk->header->committed;
	stream->at = stream->data +
		     atomic_load_explicit(stream->chunk_committed_bytes, memory_order_relaxed);
	stream->chunk_end = stream->data + spool_chunk_get_capacity(chunk);
	stream->chunk_taken_ticks = ticks;
}

bool stream_begin_next_chunk(struct region_thread_state *thread, uint32_t size, uint64_t ticks)
{
	struct spool_writer *spool = kymo_regions.spool;
	struct region_record_stream *stream = &thread->stream;
	uint32_t wanted = size + compute_span_size_max(thread);
	struct spool_chunk *chunk;

	if (stream->chunk &&
	    ticks - stream->chunk_taken_ticks < kymo_regions.sampler->large_chunk_fill_ticks)
		stream->uses_large_chunks = true;
	retire_stream_chunk(thread);
	if (stream->chunk_retry_ticks > ticks || wanted > SPOOL_CHUNK_LARGE_SIZE / 2 ||
	    is_calling_thread_in_own_filter())
		return false;
	chunk = take_stream_chunk(spool, stream->uses_large_chunks, wanted);
	if (!chunk)
		chunk = return_chunk_if_without_room(
			spool,
			spool_wait_for_chunk(spool, SPOOL_CHUNK_CLASS_LARGE, CHUNK_WAIT_IN_CALL),
			wanted);
	else if (atomic_load_explicit(&spool->wanted, memory_order_relaxed))
		background_wake(kymo_regions.background);
	if (!chunk) {
		stream->chunk_retry_ticks =
			ticks + kymo_regions.sampler->tick_hz / CHUNK_RETRIES_PER_SECOND;
		return false;
	}
	set_current_stream_chunk(stream, chunk, ticks);
	write_span_of_open_regions(thread, ticks);
	return true;
}

bool stream_write_span(struct region_thread_state *thread, uint64_t ticks)
{
	struct region_record_stream *stream = &thread->stream;

	thread->may_attach_values = false;
	if ((size_t)(stream->chunk_end - stream->at) <
	    compute_span_size_max(thread) + STREAM_RECORD_ROOM_BYTES)
		return stream_begin_next_chunk(thread, STREAM_RECORD_ROOM_BYTES, ticks);
	write_span_of_open_regions(
		thread, ticks > stream->last_record_ticks ? ticks : stream->last_record_ticks);
	return true;
}

void stream_pass_chunk_back_to_spool(struct region_thread_state *thread)
{
	struct region_record_stream *stream = &thread->stream;

	if (!stream->chunk)
		return;
	atomic_fetch_add_explicit((_Atomic uint64_t *)&kymo_regions.spool->header->region_events,
				  stream->events, memory_order_relaxed);
	spool_chunk_pass_on_or_retire(kymo_regions.spool, stream->chunk);
	stream_reset(thread);
}

void stream_reset(struct region_thread_state *thread)
{
	thread->stream = (struct region_record_stream){0};
}

/* ---- records that are not of the usual kind ---- */

bool stream_write_record_slow(struct region_thread_state *thread, enum spool_record kind,
			      uint64_t ticks, uint64_t number)
{
	uint8_t *record = stream_reserve_record(thread, STREAM_RECORD_ROOM_BYTES, ticks), *at;

	if (!record)
		return false;
	record[0] = (uint8_t)kind;
	at = leb128_write(record + 2, stream_advance_ticks_and_get_delta(&thread->stream, ticks));
	at = leb128_write(at, number);
	record[1] = (uint8_t)(at - record - 2);
	stream_commit_record(&thread->stream, at);
	return true;
}

bool stream_write_end_record_slow(struct region_thread_state *thread, uint64_t ticks)
{
	uint8_t *record = stream_reserve_record(thread, STREAM_RECORD_ROOM_BYTES, ticks), *at;

	if (!record)
		return false;
	record[0] = SPOOL_RECORD_REGION_END;
	at = leb128_write(record + 2, stream_advance_ticks_and_get_delta(&thread->stream, ticks));
	record[1] = (uint8_t)(at - record - 2);
	stream_commit_record(&thread->stream, at);
	return true;
}
