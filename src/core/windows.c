/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See windows.h. Phase ends are computed from the phase before, not from when the change was
 * noticed, so that errors do not add up over cycles or over periods.
 */
#include "core/windows.h"

#include <time.h>

void windows_init(struct windows *windows, const struct options_period *periods, uint32_t count,
		  windows_clock clock)
{
	*windows = (struct windows){.periods = periods,
				    .count = count,
				    .clock = clock,
				    .open = count == 0,
				    .done = count == 0};
}

void windows_begin_earlier(struct windows *windows, uint64_t ns)
{
	windows->late = ns;
}

void windows_init_single(struct windows *windows, const struct options_period *period,
			 windows_clock clock)
{
	windows_init(windows, period, period->delay_ns > 0 || period->duration_ns > 0, clock);
}

/* Real clocks run alike: what one is late, the next one is. */
static bool is_real(const struct windows *windows, uint32_t number)
{
	return windows->periods[number].clock != CLOCK_PROCESS_CPUTIME_ID;
}

static void enter_period(struct windows *windows, uint32_t number)
{
	bool same_clock =
		windows->started && number < windows->count &&
		windows->periods[number].clock == windows->periods[windows->current].clock;

	windows->current = number;
	windows->cycle = 0;
	windows->open = false;
	if (number == windows->count) {
		windows->done = true;
		return;
	}
	if (!same_clock) {
		uint64_t start = windows->clock(windows->periods[number].clock);
		uint64_t late = is_real(windows, number) ? windows->late : 0;
		windows->phase_end = start > late ? start - late : 0;
	}
	windows->phase_end += (uint64_t)windows->periods[number].delay_ns;
}

/* The current phase is over: what comes next. */
static void next_phase(struct windows *windows, uint64_t now)
{
	const struct options_period *period = &windows->periods[windows->current];

	if (!windows->open) {
		windows->open = true;
		if (period->duration_ns <= 0)
			windows->done = true; /* until the end */
		windows->phase_end += (uint64_t)period->duration_ns;
		return;
	}
	windows->open = false;
	if (period->cycles && ++windows->cycle >= period->cycles) {
		windows->late = is_real(windows, windows->current) ? now - windows->phase_end : 0;
		enter_period(windows, windows->current + 1);
		return;
	}
	windows->phase_end += (uint64_t)period->delay_ns;
}

/* Whole cycles that passed unseen (the process was stopped, the clock was set) are passed over at
 * once; the last one is left to be stepped through. */
static void skip_cycles(struct windows *windows, uint64_t now)
{
	const struct options_period *period = &windows->periods[windows->current];
	uint64_t length = (uint64_t)period->delay_ns + (uint64_t)period->duration_ns, missed;

	if (period->duration_ns <= 0 || now < windows->phase_end)
		return;
	missed = (now - windows->phase_end) / length;
	if (period->cycles && missed > period->cycles - windows->cycle - 1)
		missed = period->cycles - windows->cycle - 1;
	windows->cycle += missed;
	windows->phase_end += missed * length;
}

bool windows_step(struct windows *windows, unsigned cpus, uint64_t *ret_wait_ns)
{
	*ret_wait_ns = WINDOWS_NEVER;
	if (!windows->started && !windows->done)
		enter_period(windows, 0);
	windows->started = true;
	while (!windows->done) {
		int clock = windows->periods[windows->current].clock;
		uint64_t now = windows->clock(clock);
		if (now < windows->phase_end) {
			*ret_wait_ns = windows->phase_end - now;
			if (clock == CLOCK_PROCESS_CPUTIME_ID && cpus > 1)
				*ret_wait_ns /= cpus;
			break;
		}
		skip_cycles(windows, now);
		next_phase(windows, now);
	}
	return windows->open;
}

void windows_follow_fork(struct windows *windows)
{
	if (!windows->started || windows->done ||
	    windows->periods[windows->current].clock != CLOCK_PROCESS_CPUTIME_ID)
		return;
	windows->started = false;
	windows->late = 0;
	enter_period(windows, windows->current);
	windows->started = true;
}
