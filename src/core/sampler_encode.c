/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See sampler_encode.h and sampler_write_sample() in sampler.h.
 */
#include "core/sampler_encode.h"

#include <string.h>

#include "common/leb128.h"
#include "core/base/ticks.h"
#include "core/runtime.h"
#include "core/sampler.h"
#include "core/spool/chunk_wait.h"
#include "core/spool/sample_record.h"

static void write_thread_span_record(struct thread *stream, uint64_t ticks)
{
	uint8_t *start = spool_chunk_get_data(stream->chunk) + stream->used, *at = start + 2;

	at = leb128_write(at, stream->internal_id);
	at = leb128_write(at, stream->tid);
	at = write_fixed64_little_endian(at, ticks);
	start[0] = SPOOL_RECORD_SPAN;
	start[1] = (uint8_t)(at - start - 2);
	stream->used = (uint32_t)(at - spool_chunk_get_data(stream->chunk));
	stream->chunk_ticks = ticks;
	stream->last_sample_time = ticks >> SPOOL_SAMPLE_TIME_SHIFT;
	stream->last_sample_weight = 0;
	stream->previous_frame_count = 0;
	memset(stream->metrics, 0, sizeof(stream->metrics));
}

#define SPAN_RECORD_SIZE_MAX 32

/* Makes room for `size` bytes besides a span header; false when no chunk is ready. */
static bool begin_next_stream_chunk(struct thread *stream, uint64_t ticks, size_t size)
{
	struct spool_writer *spool = stream->sampler->spool;
	struct spool_chunk *chunk = NULL;
	bool large = size + SPAN_RECORD_SIZE_MAX > SPOOL_CHUNK_SMALL_SIZE - SPOOL_CHUNK_HEADER_SIZE;

	if (stream->chunk) {
		large |= stream->wants_large_chunks |=
			ticks - stream->chunk_ticks < stream->sampler->large_chunk_fill_ticks;
		spool_chunk_retire(spool, stream->chunk);
		stream->chunk = NULL;
	} else if (!large && (chunk = spool_chunk_take_partial(spool)) &&
		   spool_chunk_get_capacity(chunk) - chunk->header->committed <
			   size + SPAN_RECORD_SIZE_MAX) {
		spool_chunk_retire(spool, chunk);
		chunk = NULL;
	}
	if (!chunk)
		chunk = spool_chunk_take(spool,
					 large ? SPOOL_CHUNK_CLASS_LARGE : SPOOL_CHUNK_CLASS_SMALL);
	if (atomic_load_explicit(&spool->wanted, memory_order_relaxed) || !chunk)
		spool_wake_chunk_makers(spool);
	if (!chunk)
		chunk = spool_wait_for_chunk(
			spool, large ? SPOOL_CHUNK_CLASS_LARGE : SPOOL_CHUNK_CLASS_SMALL,
			CHUNK_WAIT_IN_HANDLER);
	if (!chunk) {
		spool_count_missing_chunk_loss(spool);
		return false;
	}
	stream->chunk = chunk;
	stream->used = chunk->header->committed;
	write_thread_span_record(stream, ticks);
	return true;
}

static size_t get_stream_free_bytes(const struct thread *stream)
{
	return stream->chunk ? spool_chunk_get_capacity(stream->chunk) - stream->used : 0;
}

bool sampler_write_sample(struct thread *stream, const struct sampled_stack *stack,
			  enum spool_sample_source source, uint64_t ticks, uint64_t weight,
			  bool stale, const uint64_t *metrics)
{
	struct sample_encoder_input sample = {.frames = stack->frames,
					      .count = stack->count,
					      .end = stack->end,
					      .source = source,
					      .time = ticks >> SPOOL_SAMPLE_TIME_SHIFT,
					      .weight = weight,
					      .has_stale_modules = stale,
					      .interpreter_state = stack->interpreter_state,
					      .metrics = metrics};
	struct sample_encoder_state state = {stream->previous_frames, stream->previous_frame_count,
					     stream->last_sample_time, stream->last_sample_weight,
					     stream->metrics};
	uint32_t common = stream->chunk ? sample_record_count_common_frames(&state, &sample) : 0;
	uint8_t *end;

	if (get_stream_free_bytes(stream) < sample_record_compute_size_max(sample.count - common)) {
		if (!begin_next_stream_chunk(stream, ticks,
					     sample_record_compute_size_max(sample.count)))
			return false;
		state = (struct sample_encoder_state){stream->previous_frames, 0,
						      stream->last_sample_time, 0, stream->metrics};
		common = 0;
		if (get_stream_free_bytes(stream) < sample_record_compute_size_max(sample.count)) {
			spool_count_loss(stream->sampler->spool, SPOOL_LOSS_OVERSIZED);
			return false;
		}
	}
	end = sample_record_encode(spool_chunk_get_data(stream->chunk) + stream->used, &state,
				   &sample, common);
	stream->used = (uint32_t)(end - spool_chunk_get_data(stream->chunk));
	/* release: a reader that sees the length sees the bytes */
	atomic_store_explicit((_Atomic uint32_t *)&stream->chunk->header->committed, stream->used,
			      memory_order_release);
	stream->last_sample_time = sample.time;
	stream->last_sample_weight = weight;
	stream->previous_frame_count = stack->count;
	stream->previous_stack_end = stack->end;
	stream->previous_interpreter_state = stack->interpreter_state;
	if (stack->frames == stream->current_frames) {
		stream->current_frames = stream->previous_frames;
		stream->previous_frames = (uint64_t *)stack->frames;
	} else if (stack->frames != stream->previous_frames) {
		memcpy(stream->previous_frames, stack->frames,
		       stack->count * sizeof(*stack->frames));
	}
	stream->sample_count++;
	return true;
}

#define RECORD_HEAD_SIZE_MAX 4 /* kind and length */

bool sampler_write_record(void *record_stream, enum spool_record kind, const uint8_t *payload,
			  size_t size)
{
	const struct sampler_record_stream *to = record_stream;
	struct thread *stream = to->stream;
	uint8_t *at;

	if (get_stream_free_bytes(stream) < size + RECORD_HEAD_SIZE_MAX &&
	    (!begin_next_stream_chunk(stream, to->ticks, size + RECORD_HEAD_SIZE_MAX) ||
	     get_stream_free_bytes(stream) < size + RECORD_HEAD_SIZE_MAX))
		return false;
	at = spool_chunk_get_data(stream->chunk) + stream->used;
	*at++ = (uint8_t)kind;
	at = leb128_write(at, size);
	memcpy(at, payload, size);
	spool_chunk_exclude_from_ring_within_limit(stream->sampler->spool, stream->chunk);
	stream->used = (uint32_t)(at + size - spool_chunk_get_data(stream->chunk));
	/* release: a reader that sees the length sees the bytes */
	atomic_store_explicit((_Atomic uint32_t *)&stream->chunk->header->committed, stream->used,
			      memory_order_release);
	return true;
}

bool sampler_try_enter_handler_state(struct thread *thread)
{
	return runtime_is_active() &&
	       atomic_load_explicit(&thread->state, memory_order_relaxed) != THREAD_STATE_ENDED &&
	       !atomic_exchange_explicit(&thread->is_in_signal_handler, 1, memory_order_acquire);
}

bool sampler_write_record_outside_handler(void *thread, enum spool_record kind,
					  const uint8_t *payload, size_t size)
{
	struct thread *stream = thread;
	struct sampler_record_stream records = {stream, ticks_now()};
	bool written;

	if (!sampler_try_enter_handler_state(stream))
		return false;
	written = sampler_write_record(&records, kind, payload, size);
	atomic_store_explicit(&stream->is_in_signal_handler, 0, memory_order_release);
	return written;
}

void sampler_count_interpreted_losses(struct spool_writer *spool,
				      const struct stack_request *walked)
{
	for (uint32_t i = 0; i < walked->lost_frame_walks; i++)
		spool_count_loss(spool, SPOOL_LOSS_INTERPRETED_FRAMES);
	for (uint32_t i = 0; i < walked->lost_code; i++)
		spool_count_loss(spool, SPOOL_LOSS_INTERPRETED_CODE);
}

void sampler_stream_begin_identity_span(struct thread *stream, uint64_t ticks)
{
	if (get_stream_free_bytes(stream) >= SPAN_RECORD_SIZE_MAX)
		write_thread_span_record(stream, ticks);
	else if (stream->chunk)
		sampler_close_stream(stream);
}

void sampler_close_stream(struct thread *stream)
{
	if (stream->chunk)
		spool_chunk_pass_on_or_retire(stream->sampler->spool, stream->chunk);
	stream->chunk = NULL;
}
