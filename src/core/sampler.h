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
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/stacks/stacks.h"
#include "core/threads.h"

/* Values that mark signals as ours: perf's sig_data, timers' sigev_value, the helper's sigqueue. */
#define SAMPLER_SIGNAL_COOKIE_CPU           0x6b796d6f00000001ull
#define SAMPLER_SIGNAL_COOKIE_OVERFLOW      0x6b796d6f00000002ull
#define SAMPLER_SIGNAL_COOKIE_TIMER_REQUEST 0x6b796d6f00000003ull /* timers.h */
#define SAMPLER_SIGNAL_COOKIE_DELETE_TIMERS 0x6b796d6f00000004ull
#define SAMPLER_SIGNAL_COOKIE_BREAKPOINT_FIRST                                                     \
	0x6b796d6f00000100ull /* and up: breakpoints of causal profiling */
#define SAMPLER_SIGNAL_BREAKPOINT_COOKIE_COUNT 256u

/* How samples are taken, for the handler and the sources, and what the handler works with: found
 * through the thread's record. */
struct sampler {
	struct spool_writer *spool;
	struct loaded_modules *modules;
	struct threads *threads;
	struct background_state *background;
	struct program_signals *signals;
	const struct collection_control *control;
	const struct options *options;
	/* Outside their windows the sources are disarmed; these catch stragglers. */
	_Atomic uint32_t is_cpu_window_open, is_wall_window_open, is_overflow_window_open;
	const struct sampling_source *source;
	int signal;                 /* the one signal of all sources */
	bool can_perf_count_kernel; /* perf may count kernel time */
	uint64_t tick_hz;
	uint64_t
		metrics_interval_min_ticks; /* least time between two metric readings of a thread */
	uint64_t large_chunk_fill_ticks;    /* a chunk that fills faster than this is followed by a
					       large one */
	uint64_t
		plausible_handler_ticks_max; /* more than this in one handler is not its own time */
	uint64_t throttle_ticks;             /* span over which the handler's share is judged */
	_Atomic uint64_t period;             /* current, after throttling */
	bool is_rate_reduced;                /* it is longer for a while */
	uint64_t kernel_timer_tick_ns;       /* POSIX CPU timers expire at the kernel's ticks */
	/* Timers serve threads whose events are costly (switch_rate.h). */
	_Atomic uint32_t may_change_source_to_timer;
	_Atomic uint32_t has_switch_rate_verdicts; /* some thread has one */
	struct unwind_cache *cache;
	uint64_t main_stack_floor; /* as far down as the main stack may grow; 0: no limit */
	/* Hooks of causal profiling; NULL: it is off. In the handler, with a sample's stack and the
	 * CPU time it stands for; and at the handler's end, when it holds on to nothing any more.
	 */
	void (*_Atomic sampled)(struct thread *thread, const struct sampled_stack *stack,
				uint64_t cpu_ns, uint64_t ticks);
	void (*_Atomic settle)(struct thread *thread);
	/* A SIGTRAP of ours came: of a breakpoint (SAMPLER_SIGNAL_COOKIE_BREAKPOINT_FIRST), or
	 * another one, which the signal of a breakpoint at the same moment has become part of. */
	void (*_Atomic visited)(uint64_t mark, const void *context);
};

void sampler_handle_signal(int signal, siginfo_t *information, void *context);

/* Appends one sample to a thread's stream; `metrics` may be NULL. The caller is the only writer of
 * the stream. Returns false when no chunk was to be had (counted). */
bool sampler_write_sample(struct thread *stream, const struct sampled_stack *stack,
			  enum spool_sample_source source, uint64_t ticks, uint64_t weight,
			  bool stale, const uint64_t *metrics);

/* Where descriptions of interpreted code go: into a stream, between its samples. A ring keeps them.
 * `ticks`: not later than the sample that is to follow. For interpreted_code_sink. */
struct sampler_record_stream {
	struct thread *stream;
	uint64_t ticks;
};
bool sampler_write_record(void *record_stream, enum spool_record kind, const uint8_t *payload,
			  size_t size);
/* The same by the thread itself outside of its handler, whose stream it is: `thread` is its block.
 * A sample that comes meanwhile is none. False: not now. */
bool sampler_write_record_outside_handler(void *thread, enum spool_record kind,
					  const uint8_t *payload, size_t size);
/* By the thread itself, outside of its handler: the function and line of interpreted code that it
 * is in, as frames of samples have them; 0: it is in none. */
uint64_t sampler_find_interpreted_caller(struct thread *thread);
/* What a walk could not read of interpreted frames. */
void sampler_count_interpreted_losses(struct spool_writer *spool,
				      const struct stack_request *walked);

/* Writes the time that the thread waited for a CPU (queued_ns) at the stack of its last sample. By
 * the thread itself. */
void sampler_write_queued_time(struct thread *thread);

/* Begins a new span in the stream after its thread identity was changed. */
void sampler_stream_begin_identity_span(struct thread *stream, uint64_t ticks);
/* Ends a stream; its chunk is given back. */
void sampler_close_stream(struct thread *stream);

#endif
