/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Encoding of one sample (SPOOL_RECORD_SAMPLE_COMPACT, see kymo/spool.h): pure, so that it can be
 * tested without signals.
 */
#ifndef KYMO_CORE_SAMPLER_ENCODE_H
#define KYMO_CORE_SAMPLER_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kymo/spool.h"

/* What the decoder knows before the record. */
struct sampler_state {
	const uint64_t *previous; /* innermost first */
	uint32_t previous_count;
	uint64_t time; /* ticks >> SPOOL_SAMPLE_TIME_SHIFT */
	uint64_t weight;
	uint64_t *metrics;
};

struct sampler_sample {
	const uint64_t *frames;
	uint32_t count;
	enum spool_stack_end end;
	enum spool_sample_source source;
	uint64_t time, weight;
	bool stale;
	const uint64_t *metrics; /* NULL: none */
};

/* Most bytes that a sample of `fresh` new frames can need. */
static inline size_t sampler_encoded_maximum(uint32_t fresh)
{
	return 1 + 3 + 1 + 4 * 10 + (size_t)fresh * 10 + 10 + (size_t)SPOOL_METRIC_COUNT * 10;
}

/* Frames shared with the previous stack, from the outermost. */
uint32_t sampler_common(const struct sampler_state *state, const struct sampler_sample *sample);
/* Writes the record at `at` (sampler_encoded_maximum bytes of room); returns its end. Updates
 * state->metrics only. */
uint8_t *sampler_encode(uint8_t *at, const struct sampler_state *state,
			const struct sampler_sample *sample, uint32_t common);

#endif
