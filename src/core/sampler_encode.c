/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See sampler_encode.h and sampler_write() in sampler.h.
 */
#include "core/sampler_encode.h"

#include <string.h>

#include "common/leb128.h"
#include "core/chunk_wait.h"
#include "core/runtime.h"
#include "core/sampler.h"
#include "core/ticks.h"

#define FLAG_METRICS 4
#define FLAG_STALE   8

uint32_t sampler_common(const struct sampler_state *state, const struct sampler_sample *sample)
{
	uint32_t least = state->previous_count < sample->count ? state->previous_count
							       : sample->count,
		 common = 0;
	const uint64_t *a = state->previous + state->previous_count,
		       *b = sample->frames + sample->count;

	while (common < least && *--a == *--b)
		common++;
	return common;
}

static uint8_t *encode_frames(uint8_t *at, const struct sampler_state *state,
			      const struct sampler_sample *sample, uint32_t common)
{
	uint64_t base = 0;

	if (common < state->previous_count)
		base = state->previous[state->previous_count - 1 - common];
	else if (common)
		base = sample->frames[sample->count - common];
	for (uint32_t i = common; i < sample->count; i++) {
		uint64_t pc = sample->frames[sample->count - 1 - i];
		at = leb128_put_signed(at, (int64_t)(pc - base));
		base = pc;
	}
	return at;
}

static uint8_t *encode_metrics(uint8_t *at, uint64_t *known, const uint64_t *metrics,
			       uint64_t changed)
{
	at = leb128_put(at, changed);
	for (unsigned i = 0; i < SPOOL_METRIC_COUNT; i++) {
		if (!(changed & 1u << i))
			continue;
		at = leb128_put(at, metrics[i] - known[i]);
		known[i] = metrics[i];
	}
	return at;
}

static uint64_t changed_metrics(const struct sampler_state *state,
				const struct sampler_sample *sample)
{
	uint64_t changed = 0;

	for (unsigned i = 0; sample->metrics && i < SPOOL_METRIC_COUNT; i++) {
		if (sample->metrics[i] != state->metrics[i])
			changed |= 1u << i;
	}
	return changed;
}

uint8_t *sampler_encode(uint8_t *at, const struct sampler_state *state,
			const struct sampler_sample *sample, uint32_t common)
{
	uint64_t changed = changed_metrics(state, sample);
	uint8_t *payload = at + 2, *start = payload, *end;
	uint8_t flags;
	size_t size;

	flags = (uint8_t)((unsigned)sample->source | (changed ? FLAG_METRICS : 0u) |
			  (sample->stale ? FLAG_STALE : 0u) | (unsigned)sample->end << 4);
	payload = leb128_put(payload, sample->time - state->time);
	payload = leb128_put_signed(payload, (int64_t)(sample->weight - state->weight));
	payload = leb128_put(payload, common);
	payload = leb128_put(payload, sample->count - common);
	payload = encode_frames(payload, state, sample, common);
	if (sample->source == SPOOL_SOURCE_OVERFLOW)
		payload = leb128_put(payload, 0);
	if (changed)
		payload = encode_metrics(payload, state->metrics, sample->metrics, changed);
	size = (size_t)(payload - start);
	*at++ = (uint8_t)(SPOOL_RECORD_SAMPLE_COMPACT + flags);
	end = start + (size >= 128) + (size >= 16384);
	if (end != start) /* a length of two bytes or more: records above 127 bytes are rare */
		memmove(end, start, size);
	leb128_put(at, size);
	return end + size;
}

static void start_span(struct thread *stream, uint64_t ticks)
{
	uint8_t *start = spool_chunk_data(stream->chunk) + stream->used, *at = start + 2;

	at = leb128_put(at, stream->internal_id);
	at = leb128_put(at, stream->tid);
	at = leb128_put_fixed(at, ticks);
	start[0] = SPOOL_RECORD_SPAN;
	start[1] = (uint8_t)(at - start - 2);
	stream->used = (uint32_t)(at - spool_chunk_data(stream->chunk));
	stream->chunk_ticks = ticks;
	stream->sample_time = ticks >> SPOOL_SAMPLE_TIME_SHIFT;
	stream->sample_weight = 0;
	stream->previous_count = 0;
	memset(stream->metrics, 0, sizeof(stream->metrics));
}

#define SPAN_MAXIMUM 32

static void wake_allocators(void)
{
	background_wake(&kymo_runtime.background);
	allocators_wake(&kymo_runtime.allocators);
}

/* Makes room for `size` bytes besides a span header; false when no chunk is ready. */
static bool next_chunk(struct thread *stream, uint64_t ticks, size_t size)
{
	struct spool_writer *spool = &kymo_runtime.spool;
	struct spool_chunk *chunk = NULL;
	bool large = size + SPAN_MAXIMUM > SPOOL_CHUNK_SMALL - SPOOL_CHUNK_HEADER_SIZE;

	if (stream->chunk) {
		large |= stream->large_chunks |=
			ticks - stream->chunk_ticks < kymo_runtime.sampling.growth_ticks;
		spool_chunk_retire(spool, stream->chunk);
		stream->chunk = NULL;
	} else if (!large && (chunk = spool_chunk_take_partial(spool)) &&
		   spool_chunk_capacity(chunk) - chunk->header->committed < size + SPAN_MAXIMUM) {
		spool_chunk_retire(spool, chunk);
		chunk = NULL;
	}
	if (!chunk)
		chunk = spool_chunk_take(spool, large ? SPOOL_LARGE : SPOOL_SMALL);
	if (atomic_load_explicit(&spool->wanted, memory_order_relaxed) || !chunk)
		wake_allocators();
	if (!chunk)
		chunk = chunk_wait(large ? SPOOL_LARGE : SPOOL_SMALL, CHUNK_IN_HANDLER);
	if (!chunk) {
		spool_count_no_chunk(spool);
		return false;
	}
	stream->chunk = chunk;
	stream->used = chunk->header->committed;
	start_span(stream, ticks);
	return true;
}

static size_t room(const struct thread *stream)
{
	return stream->chunk ? spool_chunk_capacity(stream->chunk) - stream->used : 0;
}

bool sampler_write(struct thread *stream, const struct sampler_stack *stack,
		   enum spool_sample_source source, uint64_t ticks, uint64_t weight, bool stale,
		   const uint64_t *metrics)
{
	struct sampler_sample sample = {.frames = stack->frames,
					.count = stack->count,
					.end = stack->end,
					.source = source,
					.time = ticks >> SPOOL_SAMPLE_TIME_SHIFT,
					.weight = weight,
					.stale = stale,
					.metrics = metrics};
	struct sampler_state state = {stream->previous, stream->previous_count, stream->sample_time,
				      stream->sample_weight, stream->metrics};
	uint32_t common = stream->chunk ? sampler_common(&state, &sample) : 0;
	uint8_t *end;

	if (room(stream) < sampler_encoded_maximum(sample.count - common)) {
		if (!next_chunk(stream, ticks, sampler_encoded_maximum(sample.count)))
			return false;
		state = (struct sampler_state){stream->previous, 0, stream->sample_time, 0,
					       stream->metrics};
		common = 0;
		if (room(stream) < sampler_encoded_maximum(sample.count)) {
			spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_OVERSIZED);
			return false;
		}
	}
	end = sampler_encode(spool_chunk_data(stream->chunk) + stream->used, &state, &sample,
			     common);
	stream->used = (uint32_t)(end - spool_chunk_data(stream->chunk));
	/* release: a reader that sees the length sees the bytes */
	atomic_store_explicit((_Atomic uint32_t *)&stream->chunk->header->committed, stream->used,
			      memory_order_release);
	stream->sample_time = sample.time;
	stream->sample_weight = weight;
	stream->previous_count = stack->count;
	if (stack->frames == stream->current) {
		stream->current = stream->previous;
		stream->previous = (uint64_t *)stack->frames;
	} else {
		memcpy(stream->previous, stack->frames, stack->count * sizeof(*stack->frames));
	}
	stream->samples++;
	return true;
}

void sampler_switch_stream(struct thread *stream, uint64_t ticks)
{
	if (room(stream) >= SPAN_MAXIMUM)
		start_span(stream, ticks);
	else if (stream->chunk)
		sampler_close_stream(stream);
}

void sampler_close_stream(struct thread *stream)
{
	if (stream->chunk)
		spool_chunk_give_back(&kymo_runtime.spool, stream->chunk);
	stream->chunk = NULL;
}
