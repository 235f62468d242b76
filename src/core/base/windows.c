/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See windows.h. Phase ends are computed from the phase before, not from when the change was
 * noticed, so that errors do not add up over cycles or over periods.
 */
#include "core/base/windows.h"

#include <time.h>

void time_windows_init(struct time_windows *windows,
		       const struct collection_period_setting *periods, uint32_t count,
		       time_windows_clock_reader clock)
{
	*windows = (struct time_windows){.periods = periods,
					 .count = count,
					 .clock = clock,
					 .open = count == 0,
					 .done = count == 0};
}

void time_windows_backdate_start(struct time_windows *windows, uint64_t ns)
{
	windows->period_entry_lateness_ns = ns;
}

void time_windows_init_single_period(struct time_windows *windows,
				     const struct collection_period_setting *period,
				     time_windows_clock_reader clock)
{
	time_windows_init(windows, period, period->delay_ns > 0 || period->duration_ns > 0, clock);
}

/* Real clocks run alike: what one is late, the next one is. */
static bool period_uses_wall_clock(const struct time_windows *windows, uint32_t number)
{
	return windows->periods[number].clock != CLOCK_PROCESS_CPUTIME_ID;
}

static void enter_collection_period(struct time_windows *windows, uint32_t number)
{
	bool same_clock =
		windows->started && number < windows->count &&
		windows->periods[number].clock == windows->periods[windows->current].clock;

	windows->current = number;
	windows->repeat_index = 0;
	windows->open = false;
	if (number == windows->count) {
		windows->done = true;
		return;
	}
	if (!same_clock) {
		uint64_t start = windows->clock(windows->periods[number].clock);
		uint64_t late = period_uses_wall_clock(windows, number)
					? windows->period_entry_lateness_ns
					: 0;
		windows->phase_end_ns = start > late ? start - late : 0;
	}
	windows->phase_end_ns += (uint64_t)windows->periods[number].delay_ns;
}

/* The current phase is over: what comes next. */
static void begin_next_window_phase(struct time_windows *windows, uint64_t now)
{
	const struct collection_period_setting *period = &windows->periods[windows->current];

	if (!windows->open) {
		windows->open = true;
		if (period->duration_ns <= 0)
			windows->done = true; /* until the end */
		windows->phase_end_ns += (uint64_t)period->duration_ns;
		return;
	}
	windows->open = false;
	if (period->repeat_count && ++windows->repeat_index >= period->repeat_count) {
		windows->period_entry_lateness_ns =
			period_uses_wall_clock(windows, windows->current)
				? now - windows->phase_end_ns
				: 0;
		enter_collection_period(windows, windows->current + 1);
		return;
	}
	windows->phase_end_ns += (uint64_t)period->delay_ns;
}

/* Whole cycles that passed unseen (the process was stopped, the clock was set) are passed over at
 * once; the last one is left to be stepped through. */
static void skip_missed_window_cycles(struct time_windows *windows, uint64_t now)
{
	const struct collection_period_setting *period = &windows->periods[windows->current];
	uint64_t length = (uint64_t)period->delay_ns + (uint64_t)period->duration_ns, missed;

	if (period->duration_ns <= 0 || now < windows->phase_end_ns)
		return;
	missed = (now - windows->phase_end_ns) / length;
	if (period->repeat_count && missed > period->repeat_count - windows->repeat_index - 1)
		missed = period->repeat_count - windows->repeat_index - 1;
	windows->repeat_index += missed;
	windows->phase_end_ns += missed * length;
}

bool time_windows_advance(struct time_windows *windows, unsigned cpus, uint64_t *ret_wait_ns)
{
	*ret_wait_ns = TIME_WINDOWS_WAIT_NEVER_ENDS;
	if (!windows->started && !windows->done)
		enter_collection_period(windows, 0);
	windows->started = true;
	while (!windows->done) {
		int clock = windows->periods[windows->current].clock;
		uint64_t now = windows->clock(clock);
		if (now < windows->phase_end_ns) {
			*ret_wait_ns = windows->phase_end_ns - now;
			if (clock == CLOCK_PROCESS_CPUTIME_ID && cpus > 1)
				*ret_wait_ns /= cpus;
			break;
		}
		skip_missed_window_cycles(windows, now);
		begin_next_window_phase(windows, now);
	}
	return windows->open;
}

void time_windows_restart_cpu_time_period(struct time_windows *windows)
{
	if (!windows->started || windows->done ||
	    windows->periods[windows->current].clock != CLOCK_PROCESS_CPUTIME_ID)
		return;
	windows->started = false;
	windows->period_entry_lateness_ns = 0;
	enter_collection_period(windows, windows->current);
	windows->started = true;
}
