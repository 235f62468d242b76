/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The one place that decides whether kymo collects now: time windows, INIT_ENABLED, the start and
 * stop calls of the program, `kymo ctl` and the control signal. Regions read `closed` with every
 * event and follow at once, and so do handlers; the background thread arms and disarms the sources
 * and metrics, so that no timer runs while nothing is collected.
 *
 * Windows are the session's, so that a process that is started late finds them under way; but by
 * CPU time each process has its own. With INIT_ENABLED=off a process begins with its windows at its
 * first start. A forked child goes on where its parent was.
 */
#ifndef KYMO_CORE_CONTROL_H
#define KYMO_CORE_CONTROL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/windows.h"

struct background_state;
struct runtime;
struct runtime_hooks;
struct thread;

/* Why nothing is collected. The same values as enum regions_closed_reason (regions/regions.h). */
enum control_closed_reason {
	CONTROL_CLOSED_NOT_STARTED = 1, /* not started yet, or the runtime is off */
	CONTROL_CLOSED_BY_WINDOW = 2,   /* outside the collection windows */
	CONTROL_CLOSED_BY_STOP = 4      /* by INIT_ENABLED=off or somebody's stop */
};

struct collection_control {
	_Atomic uint32_t closed_reasons; /* control_closed_reason bits; 0: collect */
	_Atomic uint32_t opened_window_count;
	_Atomic uint64_t window_close_ticks;    /* when the last one did */
	_Atomic uint64_t window_clock_at_close; /* ticks inside windows, then */
	_Atomic uint64_t outside_window_ticks;  /* what passed before windows so far */
	/* futex word: 1 when windows and sources of samples have followed the first start */
	_Atomic uint32_t first_start_state;
	struct background_state *background; /* follows what changes */
	const struct runtime_hooks *hooks;   /* hear of it at once; may be NULL */
	/* background thread only */
	bool begun, was_collecting, told, has_started_windows;
	bool is_window_recorded;     /* the spool says how the windows are */
	struct time_windows windows; /* of all collection */
	struct time_windows cpu_sampler_windows, wall_sampler_windows,
		overflow_sampler_windows; /* the samplers' own, within it */
	uint32_t pid, answered_request;   /* request of the spool file's header */
};

/* What modules look at until they are given that of the runtime. */
extern struct collection_control default_collection_control;

/* As at first, for a new run of the same process. */
void control_reset(struct collection_control *control);

/* Signal-safe, any thread. What is collected by handlers and regions changes at once. */
void control_add_closed_reason(struct collection_control *control, enum control_closed_reason why);
void control_remove_closed_reason(struct collection_control *control,
				  enum control_closed_reason why);
/* kymo_stop_trace() and its like: until control_start_collection(), however often it was said. The
 * first start waits until what follows it is there, 100 ms at most. */
void control_stop_collection(struct collection_control *control);
void control_start_collection(struct collection_control *control);
/* The other of the two, for signal handlers: it never waits. */
void control_toggle_collection(struct collection_control *control);
static inline bool control_is_collecting(const struct collection_control *control)
{
	return !atomic_load_explicit(&control->closed_reasons, memory_order_relaxed);
}

/* The thread itself: no samples of it from here on, and again, for one reason
 * (thread_excluded_reason). CPU time in between is neither sampled nor missed. Signal-safe. */
void control_exclude_this_thread(const struct collection_control *control, struct thread *thread,
				 uint32_t why);
void control_include_this_thread(const struct collection_control *control, struct thread *thread,
				 uint32_t why);

/* Background thread: collection may start; everything it needs is there. */
void control_set_runtime_ready(struct runtime *runtime);
/* Every round: does what was asked for from outside, steps the windows, and makes the sources
 * follow; lowers *wait to the time of the next change. */
void control_run_round(struct runtime *runtime, uint64_t *wait);
/* Collection is over for good, or starts again in a forked child. */
void control_set_runtime_stopped(struct runtime *runtime);

#endif
