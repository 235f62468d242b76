/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Encoding of one sample (SPOOL_RECORD_SAMPLE_COMPACT, see kymo/spool.h): pure, so that it serves
 * in a handler, outside the process, and in tests. Signal-safe.
 */
#ifndef KYMO_CORE_SPOOL_SAMPLE_RECORD_H
#define KYMO_CORE_SPOOL_SAMPLE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kymo/spool.h"

/* What the decoder knows before the record. */
struct sample_encoder_state {
	const uint64_t *previous_frames; /* innermost first */
	uint32_t previous_frame_count;
	uint64_t time; /* ticks >> SPOOL_SAMPLE_TIME_SHIFT */
	uint64_t weight;
	uint64_t *metrics;
};

struct sample_encoder_input {
	const uint64_t *frames;
	uint32_t count;
	enum spool_stack_end end;
	enum spool_sample_source source;
	uint64_t time, weight;
	bool has_stale_modules;
	enum spool_interpreter_state interpreter_state;
	const uint64_t *metrics; /* NULL: none */
};

/* Most bytes that a sample of `fresh` new frames can need. */
static inline size_t sample_record_compute_size_max(uint32_t fresh)
{
	return 1 + 3 + 1 + 4 * 10 + (size_t)fresh * 10 + 10 + (size_t)SPOOL_METRIC_COUNT * 10 + 1;
}

/* Frames shared with the previous stack, from the outermost. */
uint32_t sample_record_count_common_frames(const struct sample_encoder_state *state,
					   const struct sample_encoder_input *sample);
/* Writes the record at `at` (sample_record_compute_size_max bytes of room); returns its end.
 * Updates state->metrics only. */
uint8_t *sample_record_encode(uint8_t *at, const struct sample_encoder_state *state,
			      const struct sample_encoder_input *sample, uint32_t common);

#endif
