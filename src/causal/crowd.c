/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See crowd.h.
 */
#include "causal/crowd.h"

#include <sched.h>
#include <time.h>

#include "common/syscalls.h"

#define SLICE_US 250u /* of a pause, until it is asked again whether there is a crowd */
#define GAP_US   20u  /* between two looks at the clock: others had the processor */
#define LOOKS    8    /* pauses of the processor from one look to the next */
#define MARK_US  50u  /* the CPU clock is a system call: no more often than that */

static uint64_t gap(void)
{
	return GAP_US * kymo_causal_rates.ticks_per_us;
}

/* Nobody hears of the end of one (_exit(2)). */
static bool forked_child;

void causal_crowd_forked(void)
{
	forked_child = true;
}

void causal_crowd_join(struct causal_control *control, struct causal_thread *state)
{
	uint64_t epoch = causal_get(&state->word) >> CAUSAL_EPOCH_SHIFT;

	if (state->crowd.epoch == epoch || forked_child)
		return;
	if (state->crowd.part != epoch) {
		long policy = sys_call1(SYS_sched_getscheduler, 0);

		atomic_fetch_add_explicit(&control->took_part[epoch % 2], 1, memory_order_relaxed);
		state->crowd.realtime = policy == SCHED_FIFO || policy == SCHED_RR;
	}
	state->crowd.epoch = state->crowd.part = epoch;
	atomic_fetch_add_explicit(&control->could_run[epoch % 2], 1, memory_order_relaxed);
}

/* Counts of experiments that are over are nobody's. */
void causal_crowd_leave(struct causal_control *control, struct causal_thread *state)
{
	uint64_t epoch = state->crowd.epoch;

	state->crowd.epoch = 0;
	state->crowd.cpu_ns = 0;
	if (epoch && epoch == causal_get(&control->experiment) >> CAUSAL_EPOCH_SHIFT)
		atomic_fetch_sub_explicit(&control->could_run[epoch % 2], 1, memory_order_relaxed);
}

void causal_crowd_end(struct causal_control *control, struct causal_thread *state)
{
	uint64_t epoch = state->crowd.part;

	causal_crowd_leave(control, state);
	state->crowd.part = 0;
	if (epoch && epoch == causal_get(&control->experiment) >> CAUSAL_EPOCH_SHIFT)
		atomic_fetch_sub_explicit(&control->took_part[epoch % 2], 1, memory_order_relaxed);
}

/* ---- waiting for a processor ---- */

static uint64_t cpu_ns_now(void)
{
	struct timespec time = {0};

	sys_call2(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void causal_crowd_settled(const struct causal_control *control, struct causal_thread *state,
			  uint64_t now)
{
	struct causal_crowd *crowd = &state->crowd;

	crowd->settled = now;
	if (!causal_is_crowded(control, state)) {
		crowd->cpu_ns = 0;
		return;
	}
	if (crowd->cpu_ns && now - crowd->ticks < MARK_US * kymo_causal_rates.ticks_per_us)
		return;
	crowd->cpu_ns = cpu_ns_now();
	crowd->ticks = now;
	crowd->away = 0;
}

void causal_crowd_away(struct causal_thread *state, uint64_t ticks)
{
	state->crowd.away += ticks;
}

static void absorb(struct causal_thread *state, uint64_t amount)
{
	causal_set(&state->delay, causal_get(&state->delay) + amount);
	state->credited += amount;
}

void causal_crowd_credit(const struct causal_control *control, struct causal_thread *state,
			 uint64_t debt, uint64_t now)
{
	struct causal_crowd *crowd = &state->crowd;
	uint64_t known, since = now - crowd->settled, queued;

	if (!crowd->cpu_ns || !since || !causal_is_crowded(control, state) ||
	    atomic_load_explicit(&control->could_run[crowd->part % 2], memory_order_relaxed) <=
		    (int64_t)kymo_causal_rates.processors)
		return; /* whoever had the processor is none of us */
	known = crowd->away + causal_ticks(cpu_ns_now() - crowd->cpu_ns);
	queued = now - crowd->ticks > known ? now - crowd->ticks - known : 0;
	if (queued < gap())
		return;
	queued = queued < since ? queued : since;
	absorb(state, (uint64_t)((unsigned __int128)debt * queued / since));
}

/* ---- pausing ---- */

uint64_t causal_crowd_pause(const struct causal_control *control, struct causal_thread *state,
			    uint64_t ticks)
{
	uint64_t begin = ticks_now(), last = begin, now, held = 0, delay, most;
	uint64_t slice = SLICE_US * kymo_causal_rates.ticks_per_us;

	ticks = ticks < slice ? ticks : slice;
	most = causal_most(control, last);
	while (held < ticks) {
		for (int i = 0; i < LOOKS; i++)
			__builtin_ia32_pause();
		now = ticks_now();
		if (now - last < gap()) {
			held += now - last;
		} else if (causal_get(&control->experiment) == causal_get(&state->word)) {
			delay = causal_get(&state->delay);
			most = most > delay ? most : delay;
			delay = causal_most(control, now);
			absorb(state, delay > most ? delay - most : 0);
		}
		most = causal_most(control, now);
		last = now;
	}
	causal_crowd_away(state, last - begin > held ? last - begin - held : 0);
	return held;
}
