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
#define SHORT_NS 20000000u
/* It shows after so many intervals. */
#define INTERVALS 4u
#define LEAST_NS  200000u
/* A time so far from the one before begins something else. */
#define FAR_NS 10000000000ll

uint64_t causal_absorbed_now(const struct causal_thread *state)
{
	uint64_t far = causal_delay_at(state, ticks_now()) + causal_get(&state->bank),
		 start = causal_get(&state->start);

	return far > start ? far - start : 0;
}

static uint64_t absorbed(const struct causal_thread *state)
{
	return state->absorbed +
	       (causal_get(&state->word) & CAUSAL_ACTIVE ? causal_absorbed_now(state) : 0);
}

/* The calling thread's state, entered and brought up to date. */
static struct causal_thread *begin(void)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_relaxed);
	struct causal_thread *state = control ? causal_self() : NULL;

	if (!state || !causal_enter(state))
		return NULL;
	causal_turn(control, state);
	return state;
}

static uint64_t lateness_ns(const struct causal_thread *state)
{
	uint64_t all = absorbed(state);

	return all > state->clock_absorbed ? causal_ns(all - state->clock_absorbed) : 0;
}

uint64_t causal_lateness_ns(void)
{
	struct causal_thread *state = begin();
	uint64_t late;

	if (!state)
		return 0;
	late = lateness_ns(state);
	causal_leave(state);
	return late;
}

void causal_clock_was_read(void)
{
	struct causal_thread *state = begin();

	if (!state)
		return;
	state->clock_absorbed = absorbed(state);
	causal_leave(state);
}

/* ---- sleeping until a time ---- */

static void begin_timetable(struct causal_timetable *table, int clock, int64_t time, int64_t now,
			    uint64_t all)
{
	*table = (struct causal_timetable){.clock = clock,
					   .first = time,
					   .first_now = now,
					   .last = time,
					   .from = all,
					   .kind = CAUSAL_TIMES_UNKNOWN};
}

/* By how much times have stayed behind the clock since the first one. How far ahead of it they are
 * tells how long intervals are in one case, and goes to 0 in the other. */
static void learn(struct causal_timetable *table, int64_t time, int64_t now, uint64_t late_ns)
{
	int64_t behind = (now - table->first_now) - (time - table->first);

	table->count++;
	table->ahead += time > now ? time - now : 0;
	if (table->kind != CAUSAL_TIMES_UNKNOWN || late_ns < LEAST_NS ||
	    (int64_t)late_ns < INTERVALS * (table->ahead / table->count))
		return;
	table->kind = behind > (int64_t)(late_ns / 2) ? CAUSAL_TIMES_OWN : CAUSAL_TIMES_CLOCKS;
}

static uint64_t put_off_ns(struct causal_thread *state, int clock, int64_t time, int64_t now)
{
	struct causal_timetable *table = &state->timetable;
	uint64_t all = absorbed(state), late_ns;

	if (!table->first_now || table->clock != clock || time < table->last ||
	    time - table->last > FAR_NS) {
		begin_timetable(table, clock, time, now, all);
		return lateness_ns(state);
	}
	late_ns = causal_ns(all - table->from);
	learn(table, time, now, late_ns);
	table->last = time;
	if (table->kind == CAUSAL_TIMES_CLOCKS ||
	    (table->kind == CAUSAL_TIMES_UNKNOWN &&
	     time - table->first > (int64_t)SHORT_NS * table->count))
		return lateness_ns(state);
	return late_ns;
}

uint64_t causal_put_off_ns(int clock, int64_t time, int64_t now)
{
	struct causal_thread *state = begin();
	uint64_t late;

	if (!state)
		return 0;
	late = put_off_ns(state, clock, time, now);
	causal_leave(state);
	return late;
}
