/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The sampling signal's handler: one sample into the interrupted thread's chunk.
 *
 * Hot path. Budget: one gettid, one clock_gettime(THREAD_CPUTIME), the walk (5-8 ns a frame),
 * 100-200 ns of encoding; no lock, no allocation, no libc. A futex wake only when chunks run low,
 * getrusage at most every 10 ms a thread.
 */
#ifndef KYMO_CORE_SAMPLER_H
#define KYMO_CORE_SAMPLER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/threads.h"

/* Values that mark signals as ours: perf's sig_data, timers' sigev_value. */
#define SAMPLER_MARK_CPU      0x6b796d6f00000001ull
#define SAMPLER_MARK_OVERFLOW 0x6b796d6f00000002ull
#define SAMPLER_MARK_POINT    0x6b796d6f00000100ull /* and up: breakpoints of causal profiling */
#define SAMPLER_MARK_POINTS   256u

struct sampler_stack {
	const uint64_t *frames; /* innermost first */
	uint32_t count;
	enum spool_stack_end end;
};

void sampler_handler(int signal, siginfo_t *information, void *context);

/* Appends one sample to a thread's stream; `metrics` may be NULL. The caller is the only writer of
 * the stream. Returns false when no chunk was to be had (counted). */
bool sampler_write(struct thread *stream, const struct sampler_stack *stack,
		   enum spool_sample_source source, uint64_t ticks, uint64_t weight, bool stale,
		   const uint64_t *metrics);

/* Begins a new span in the stream after its thread identity was changed. */
void sampler_switch_stream(struct thread *stream, uint64_t ticks);
/* Ends a stream; its chunk is given back. */
void sampler_close_stream(struct thread *stream);

#endif
