/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See sample_record.h.
 */
#include "core/spool/sample_record.h"

#include <string.h>

#include "common/leb128.h"

#define SAMPLE_FLAG_METRICS       4
#define SAMPLE_FLAG_STALE_MODULES 8

uint32_t sample_record_count_common_frames(const struct sample_encoder_state *state,
					   const struct sample_encoder_input *sample)
{
	uint32_t least = state->previous_frame_count < sample->count ? state->previous_frame_count
								     : sample->count,
		 common = 0;
	const uint64_t *a = state->previous_frames + state->previous_frame_count,
		       *b = sample->frames + sample->count;

	while (common < least && *--a == *--b)
		common++;
	return common;
}

static uint8_t *encode_new_frames(uint8_t *at, const struct sample_encoder_state *state,
				  const struct sample_encoder_input *sample, uint32_t common)
{
	uint64_t base = 0;

	if (common < state->previous_frame_count)
		base = state->previous_frames[state->previous_frame_count - 1 - common];
	else if (common)
		base = sample->frames[sample->count - common];
	for (uint32_t i = common; i < sample->count; i++) {
		uint64_t pc = sample->frames[sample->count - 1 - i];
		at = leb128_write_zigzag(at, (int64_t)(pc - base));
		base = pc;
	}
	return at;
}

static uint8_t *encode_metrics(uint8_t *at, uint64_t *known, const uint64_t *metrics,
			       uint64_t changed)
{
	at = leb128_write(at, changed);
	for (unsigned i = 0; i < SPOOL_METRIC_COUNT; i++) {
		if (!(changed & 1u << i))
			continue;
		at = leb128_write(at, metrics[i] - known[i]);
		known[i] = metrics[i];
	}
	return at;
}

static uint64_t find_changed_metric_bits(const struct sample_encoder_state *state,
					 const struct sample_encoder_input *sample)
{
	uint64_t changed = 0;

	for (unsigned i = 0; sample->metrics && i < SPOOL_METRIC_COUNT; i++) {
		if (sample->metrics[i] != state->metrics[i])
			changed |= 1u << i;
	}
	return changed;
}

uint8_t *sample_record_encode(uint8_t *at, const struct sample_encoder_state *state,
			      const struct sample_encoder_input *sample, uint32_t common)
{
	uint64_t changed = find_changed_metric_bits(state, sample);
	uint8_t *payload = at + 2, *start = payload, *end;
	uint8_t flags;
	size_t size;

	flags = (uint8_t)((unsigned)sample->source | (changed ? SAMPLE_FLAG_METRICS : 0u) |
			  (sample->has_stale_modules ? SAMPLE_FLAG_STALE_MODULES : 0u) |
			  (unsigned)sample->end << 4);
	payload = leb128_write(payload, sample->time - state->time);
	payload = leb128_write_zigzag(payload, (int64_t)(sample->weight - state->weight));
	payload = leb128_write(payload, common);
	payload = leb128_write(payload, sample->count - common);
	payload = encode_new_frames(payload, state, sample, common);
	if (sample->source == SPOOL_SOURCE_OVERFLOW)
		payload = leb128_write(payload, 0);
	if (changed)
		payload = encode_metrics(payload, state->metrics, sample->metrics, changed);
	if (sample->interpreter_state != SPOOL_INTERPRETER_STATE_NONE)
		payload = leb128_write(payload, sample->interpreter_state);
	size = (size_t)(payload - start);
	*at++ = (uint8_t)(SPOOL_RECORD_SAMPLE_COMPACT + flags);
	end = start + (size >= 128) + (size >= 16384);
	if (end != start) /* a length of two bytes or more: records above 127 bytes are rare */
		memmove(end, start, size);
	leb128_write(at, size);
	return end + size;
}
