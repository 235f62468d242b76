/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Time windows: when to collect. A sequence of (clock, delay, duration, cycles) run one after the
 * other; duration 0 means until the end, cycles 0 for ever. Also the samplers' own delay and
 * duration. Pure state machine: the caller asks time_windows_advance() with the time and learns
 * whether the window is open and when to ask again.
 */
#ifndef KYMO_CORE_WINDOWS_H
#define KYMO_CORE_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/options.h"

#define TIME_WINDOWS_WAIT_NEVER_ENDS UINT64_MAX

/* Reading of a clock in ns; replaced in tests. */
typedef uint64_t (*time_windows_clock_reader)(int clock);

struct time_windows {
	const struct collection_period_setting *periods;
	uint32_t count, current;
	uint64_t repeat_index;             /* of the current period */
	uint64_t phase_end_ns;             /* on the period's clock */
	uint64_t period_entry_lateness_ns; /* by which the current period was entered */
	bool open, done, started;
	time_windows_clock_reader clock;
};

void time_windows_init(struct time_windows *windows,
		       const struct collection_period_setting *periods, uint32_t count,
		       time_windows_clock_reader clock);
/* One window with the delay and duration of `period`; open from the start when both are 0. */
void time_windows_init_single_period(struct time_windows *windows,
				     const struct collection_period_setting *period,
				     time_windows_clock_reader clock);
/* Windows that began `ns` before the first step: those of a process that joins a session. */
void time_windows_backdate_start(struct time_windows *windows, uint64_t ns);
/* Returns whether the window is open now; *ret_wait_ns is the time until it may change
 * (TIME_WINDOWS_WAIT_NEVER_ENDS: never). For CPU-time clocks the wait is the least possible, since
 * CPU time runs at most once per CPU faster than real time. */
bool time_windows_advance(struct time_windows *windows, unsigned cpus, uint64_t *ret_wait_ns);
/* A forked child goes on with its parent's windows; but its CPU time begins again, and so does a
 * period that is measured by it. */
void time_windows_restart_cpu_time_period(struct time_windows *windows);

#endif
