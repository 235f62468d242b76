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

#include "core/windows.h"

struct runtime;
struct thread;

/* Why nothing is collected. The same values as enum regions_closed (regions/regions.h). */
enum control_closed {
	CONTROL_CLOSED_START = 1,  /* not started yet, or the runtime is off */
	CONTROL_CLOSED_WINDOW = 2, /* outside the collection windows */
	CONTROL_CLOSED_STOPPED = 4 /* by INIT_ENABLED=off or somebody's stop */
};

struct control {
	_Atomic uint32_t closed; /* control_closed bits; 0: collect */
	/* background thread only */
	bool begun, was_open, told, windows_run;
	struct windows windows;                                  /* of all collection */
	struct windows cpu_window, wall_window, overflow_window; /* the samplers' own, within it */
	uint32_t pid, answered; /* request of the spool file's header */
};

/* Signal-safe, any thread. What is collected by handlers and regions changes at once. */
void control_close(enum control_closed why);
void control_open(enum control_closed why);
/* kymo_stop_trace() and its like: until control_start(), however often it was said. */
void control_stop(void);
void control_start(void);
/* The other of the two. */
void control_toggle(void);
static inline bool control_is_open(const struct control *control)
{
	return !atomic_load_explicit(&control->closed, memory_order_relaxed);
}

/* The thread itself: no samples of it from here on, and again, for one reason (thread_excluded).
 * CPU time in between is neither sampled nor missed. Signal-safe. */
void control_exclude_thread(struct thread *thread, uint32_t why);
void control_include_thread(struct thread *thread, uint32_t why);

/* Background thread: collection may start; everything it needs is there. */
void control_begin(struct runtime *runtime);
/* Every round: does what was asked for from outside, steps the windows, and makes the sources
 * follow; lowers *wait to the time of the next change. */
void control_round(struct runtime *runtime, uint64_t *wait);
/* Collection is over for good, or starts anew in a forked child. */
void control_end(struct runtime *runtime);

#endif
