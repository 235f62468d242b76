/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Timetables in virtual time. What a thread has absorbed, it is late by, for ever: who sleeps until
 * a time is to sleep that much longer. How much of it the program knows already depends on where
 * the time comes from:
 *
 *   from a clock that was read, and so much more: all that was absorbed before the clock was read
 *   from the time before, and so much more (a timetable): nothing, also where the program reads
 *   clocks for other ends
 *
 * Which of them it is shows when a thread that sleeps until times has been put off by several times
 * its interval: the times of the first kind keep up with the clock, those of the second stay behind
 * by what it was put off. Until that is known a thread with short intervals is put off as if it had
 * a timetable, for else nothing would show.
 */
#include "causal/state.h"

/* Intervals up to here are short. */
#define SHORT_SLEEP_INTERVAL_MAX_NS 20000000u
/* It shows after so many intervals. */
#define SLEEP_TIMETABLE_INTERVALS_LEAST   4u
#define SLEEP_TIMETABLE_LATENESS_LEAST_NS 200000u
/* A time so far from the one before begins something else. */
#define SLEEP_TIMETABLE_GAP_MAX_NS 10000000000ll

uint64_t causal_get_absorbed_ticks_in_epoch(const struct causal_thread *state)
{
	uint64_t far = causal_compute_local_delay_at(state, ticks_now()) +
		       causal_load_relaxed(&state->excess_delay),
		 start = causal_load_relaxed(&state->start);

	return far > start ? far - start : 0;
}

static uint64_t get_absorbed_ticks_in_all_epochs(const struct causal_thread *state)
{
	return state->absorbed_before_epoch_ticks +
	       (causal_load_relaxed(&state->word) & CAUSAL_ACTIVE
			? causal_get_absorbed_ticks_in_epoch(state)
			: 0);
}

/* The calling thread's state, entered and brought up to date. */
static struct causal_thread *enter_and_sync_this_thread_state(void)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_relaxed);
	struct causal_thread *state = control ? causal_find_or_make_current_state() : NULL;

	if (!state || !causal_try_enter_state(state))
		return NULL;
	causal_sync_with_experiment(control, state);
	return state;
}

static uint64_t get_lateness_since_clock_read_ns(const struct causal_thread *state)
{
	uint64_t all = get_absorbed_ticks_in_all_epochs(state);

	return all > state->absorbed_at_clock_read_ticks
		       ? causal_ticks_to_ns(all - state->absorbed_at_clock_read_ticks)
		       : 0;
}

uint64_t causal_compute_deadline_extension_ns(void)
{
	struct causal_thread *state = enter_and_sync_this_thread_state();
	uint64_t late;

	if (!state)
		return 0;
	late = get_lateness_since_clock_read_ns(state);
	causal_leave_state(state);
	return late;
}

void causal_record_clock_reading(void)
{
	struct causal_thread *state = enter_and_sync_this_thread_state();

	if (!state)
		return;
	state->absorbed_at_clock_read_ticks = get_absorbed_ticks_in_all_epochs(state);
	causal_leave_state(state);
}

/* ---- sleeping until a time ---- */

static void reset_sleep_timetable(struct causal_sleep_timetable *table, int clock, int64_t time,
				  int64_t now, uint64_t all)
{
	*table = (struct causal_sleep_timetable){.clock = clock,
						 .first = time,
						 .clock_at_first_ns = now,
						 .last = time,
						 .absorbed_at_first_ticks = all,
						 .kind = CAUSAL_SLEEP_TIMETABLE_UNKNOWN};
}

/* By how much times have stayed behind the clock since the first one. How far ahead of it they are
 * tells how long intervals are in one case, and goes to 0 in the other. */
static void update_sleep_timetable_kind(struct causal_sleep_timetable *table, int64_t time,
					int64_t now, uint64_t late_ns)
{
	int64_t behind = (now - table->clock_at_first_ns) - (time - table->first);

	table->count++;
	table->ahead_sum_ns += time > now ? time - now : 0;
	if (table->kind != CAUSAL_SLEEP_TIMETABLE_UNKNOWN ||
	    late_ns < SLEEP_TIMETABLE_LATENESS_LEAST_NS ||
	    (int64_t)late_ns <
		    SLEEP_TIMETABLE_INTERVALS_LEAST * (table->ahead_sum_ns / table->count))
		return;
	table->kind = behind > (int64_t)(late_ns / 2) ? CAUSAL_SLEEP_TIMETABLE_FIXED
						      : CAUSAL_SLEEP_TIMETABLE_FROM_CLOCK;
}

static uint64_t compute_sleep_until_extension_ns(struct causal_thread *state, int clock,
						 int64_t time, int64_t now)
{
	struct causal_sleep_timetable *table = &state->sleep_timetable;
	uint64_t all = get_absorbed_ticks_in_all_epochs(state), late_ns;

	if (!table->clock_at_first_ns || table->clock != clock || time < table->last ||
	    time - table->last > SLEEP_TIMETABLE_GAP_MAX_NS) {
		reset_sleep_timetable(table, clock, time, now, all);
		return get_lateness_since_clock_read_ns(state);
	}
	late_ns = causal_ticks_to_ns(all - table->absorbed_at_first_ticks);
	update_sleep_timetable_kind(table, time, now, late_ns);
	table->last = time;
	if (table->kind == CAUSAL_SLEEP_TIMETABLE_FROM_CLOCK ||
	    (table->kind == CAUSAL_SLEEP_TIMETABLE_UNKNOWN &&
	     time - table->first > (int64_t)SHORT_SLEEP_INTERVAL_MAX_NS * table->count))
		return get_lateness_since_clock_read_ns(state);
	return late_ns;
}

uint64_t causal_get_sleep_until_extension_ns(int clock, int64_t time, int64_t now)
{
	struct causal_thread *state = enter_and_sync_this_thread_state();
	uint64_t late;

	if (!state)
		return 0;
	late = compute_sleep_until_extension_ns(state, clock, time, now);
	causal_leave_state(state);
	return late;
}
