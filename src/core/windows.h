/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Time windows: when to collect. A sequence of (clock, delay, duration, cycles) run one after the
 * other; duration 0 means until the end, cycles 0 for ever. Also the samplers' own delay and
 * duration. Pure state machine: the caller asks windows_step() with the time and is told whether
 * the window is open and when to ask again.
 */
#ifndef KYMO_CORE_WINDOWS_H
#define KYMO_CORE_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/options.h"

#define WINDOWS_NEVER UINT64_MAX

/* Reading of a clock in ns; replaced in tests. */
typedef uint64_t (*windows_clock)(int clock);

struct windows {
	const struct options_period *periods;
	uint32_t count, current;
	uint64_t cycle;     /* of the current period */
	uint64_t phase_end; /* on the period's clock */
	uint64_t late;      /* by which the current period was entered */
	bool open, done, started;
	windows_clock clock;
};

void windows_init(struct windows *windows, const struct options_period *periods, uint32_t count,
		  windows_clock clock);
/* One window with the delay and duration of `period`; open from the start when both are 0. */
void windows_init_single(struct windows *windows, const struct options_period *period,
			 windows_clock clock);
/* Windows that began `ns` before the first step: those of a process that joins a session. */
void windows_begin_earlier(struct windows *windows, uint64_t ns);
/* Returns whether the window is open now; *ret_wait_ns is the time until it may change
 * (WINDOWS_NEVER: never). For CPU-time clocks the wait is the least possible, since CPU time runs
 * at most once per CPU faster than real time. */
bool windows_step(struct windows *windows, unsigned cpus, uint64_t *ret_wait_ns);
/* A forked child goes on with its parent's windows; but its CPU time begins anew, and so does a
 * period that is measured by it. */
void windows_follow_fork(struct windows *windows);

#endif
