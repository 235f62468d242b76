/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * kymo's own thread in the profiled process: allocator of chunks, writer of the process track,
 * owner of the event sources, observer of modules, threads and metrics.
 *
 * An own_thread. It never calls the dynamic loader, allocates with mmap only, and waits on a futex
 * with a timeout.
 */
#ifndef KYMO_CORE_BACKGROUND_H
#define KYMO_CORE_BACKGROUND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/own_thread.h"
#include "core/threads.h"

struct runtime;

struct background {
	_Atomic uint32_t wake;     /* futex word: 1 when there is something to do */
	_Atomic uint32_t sleeping; /* nobody needs to wake a thread that is awake */
	_Atomic uint32_t flushed;  /* futex word: flushes done */
	_Atomic uint32_t flush_wanted;
	_Atomic uint32_t finish; /* 1: write the last records and end */
	_Atomic uint32_t ready;  /* futex word: descriptors closed 1, collecting 2, failed 3 */
	_Atomic uint64_t throttle_period; /* period that a handler found too costly */
	_Atomic uint32_t stop;            /* 1: disarm everything and end for good */
	bool detach;                      /* leave the process (attach.h) */
	bool alone;                       /* because nobody holds it any more */
	uint64_t next_watch_ns;
	const char *stop_reason;
	struct own_thread thread;
	struct thread *own;  /* its registry entry */
	struct thread *live; /* all live threads, linked */
	uint32_t live_count;
	uint32_t program_threads; /* of them, the program's own */
	uint32_t told_counters;   /* bit per counter that could not be opened */
	bool traced;              /* a debugger came: sampling by SIGTRAP rests */
	bool metrics_on, told_timer_fallback, told_overflow;
	uint64_t scan, next_scan_ns, next_metrics_ns, next_clock_ns, next_jitter_ns, next_totals_ns,
		metrics_end_ns;
	uint64_t scan_cost_ns;
	uint32_t cpus;
	uint64_t past_signals, past_handler_ticks, past_covered_ns,
		past_samples; /* of ended threads */
};

/* Stages of `ready`. */
enum {
	BACKGROUND_RUNNING = 1, /* has let go of the program's descriptors */
	BACKGROUND_RECORDING,   /* regions can be written */
	BACKGROUND_COLLECTING,
	BACKGROUND_FAILED,
	BACKGROUND_FINISHED, /* last records written */
	BACKGROUND_STOPPED   /* gone */
};

/* Starts the thread. 0 or negative errno. */
int background_start(struct runtime *runtime);
/* Waits until `ready` is at least `stage` or the time is over. */
bool background_wait(struct background *background, uint32_t stage, uint64_t timeout_ns);
/* Signal-safe. */
void background_wake(struct background *background);
void background_throttle(struct background *background, uint64_t period);
/* Asks for everything announced so far to be written; waits at most timeout_ns. Not in handlers. */
void background_flush(struct background *background, uint64_t timeout_ns);

#endif
