/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See oversubscription.h.
 */
#include "causal/oversubscription.h"

#include <sched.h>
#include <time.h>

#include "common/syscalls.h"

#define AWAKE_PAUSE_SLICE_MAX_US                                                                   \
	250u /* of a pause, until it is asked again whether CPUs are oversubscribed                \
	      */
#define PREEMPTION_GAP_LEAST_US 20u /* between two looks at the clock: others had the processor */
#define PAUSE_INSTRUCTIONS_PER_CLOCK_READ                                                          \
	8                            /* pauses of the processor from one look to the next          \
				      */
#define CPU_CLOCK_READ_PERIOD_US 50u /* the CPU clock is a system call: no more often than that */

static uint64_t get_preemption_gap_ticks(void)
{
	return PREEMPTION_GAP_LEAST_US * kymo_causal_rates.ticks_per_us;
}

/* Nobody hears of the end of one (_exit(2)). */
static bool forked_child_flag;

void causal_oversubscription_set_forked(void)
{
	forked_child_flag = true;
}

void causal_oversubscription_enter_runnable(struct causal_control *control,
					    struct causal_thread *state)
{
	uint64_t epoch = causal_load_relaxed(&state->word) >> CAUSAL_EPOCH_SHIFT;

	if (state->oversubscription.epoch == epoch || forked_child_flag)
		return;
	if (state->oversubscription.part != epoch) {
		long policy = sys_call1(SYS_sched_getscheduler, 0);

		atomic_fetch_add_explicit(&control->took_part[epoch % 2], 1, memory_order_relaxed);
		state->oversubscription.has_realtime_policy =
			policy == SCHED_FIFO || policy == SCHED_RR;
	}
	state->oversubscription.epoch = state->oversubscription.part = epoch;
	atomic_fetch_add_explicit(&control->could_run[epoch % 2], 1, memory_order_relaxed);
}

/* Counts of experiments that are over are nobody's. */
void causal_oversubscription_enter_waiting(struct causal_control *control,
					   struct causal_thread *state)
{
	uint64_t epoch = state->oversubscription.epoch;

	state->oversubscription.epoch = 0;
	state->oversubscription.cpu_ns = 0;
	if (epoch && epoch == causal_load_relaxed(&control->experiment) >> CAUSAL_EPOCH_SHIFT)
		atomic_fetch_sub_explicit(&control->could_run[epoch % 2], 1, memory_order_relaxed);
}

void causal_oversubscription_end_thread(struct causal_control *control, struct causal_thread *state)
{
	uint64_t epoch = state->oversubscription.part;

	causal_oversubscription_enter_waiting(control, state);
	state->oversubscription.part = 0;
	if (epoch && epoch == causal_load_relaxed(&control->experiment) >> CAUSAL_EPOCH_SHIFT)
		atomic_fetch_sub_explicit(&control->took_part[epoch % 2], 1, memory_order_relaxed);
}

/* ---- waiting for a processor ---- */

static uint64_t read_current_thread_cpu_ns(void)
{
	struct timespec time = {0};

	sys_call2(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void causal_oversubscription_record_delay_paid(const struct causal_control *control,
					       struct causal_thread *state, uint64_t now)
{
	struct causal_thread_oversubscription_state *oversubscription = &state->oversubscription;

	oversubscription->delay_settled_ticks = now;
	if (!causal_is_oversubscribed(control, state)) {
		oversubscription->cpu_ns = 0;
		return;
	}
	if (oversubscription->cpu_ns &&
	    now - oversubscription->ticks <
		    CPU_CLOCK_READ_PERIOD_US * kymo_causal_rates.ticks_per_us)
		return;
	oversubscription->cpu_ns = read_current_thread_cpu_ns();
	oversubscription->ticks = now;
	oversubscription->off_cpu_ticks = 0;
}

void causal_oversubscription_add_off_cpu_time(struct causal_thread *state, uint64_t ticks)
{
	state->oversubscription.off_cpu_ticks += ticks;
}

static void add_absorbed_delay_to_local(struct causal_thread *state, uint64_t amount)
{
	causal_store_relaxed(&state->local_delay,
			     causal_load_relaxed(&state->local_delay) + amount);
	state->credited += amount;
}

void causal_oversubscription_credit_delay(const struct causal_control *control,
					  struct causal_thread *state, uint64_t debt, uint64_t now)
{
	struct causal_thread_oversubscription_state *oversubscription = &state->oversubscription;
	uint64_t known, since = now - oversubscription->delay_settled_ticks, queued;

	if (!oversubscription->cpu_ns || !since || !causal_is_oversubscribed(control, state) ||
	    atomic_load_explicit(&control->could_run[oversubscription->part % 2],
				 memory_order_relaxed) <=
		    (int64_t)kymo_causal_rates.usable_processor_count)
		return; /* whoever had the processor is none of us */
	known = oversubscription->off_cpu_ticks +
		causal_ns_to_ticks(read_current_thread_cpu_ns() - oversubscription->cpu_ns);
	queued = now - oversubscription->ticks > known ? now - oversubscription->ticks - known : 0;
	if (queued < get_preemption_gap_ticks())
		return;
	queued = queued < since ? queued : since;
	add_absorbed_delay_to_local(state, (uint64_t)((unsigned __int128)debt * queued / since));
}

/* ---- pausing ---- */

uint64_t causal_oversubscription_pause_awake(const struct causal_control *control,
					     struct causal_thread *state, uint64_t ticks)
{
	uint64_t begin = ticks_now(), last = begin, now, held = 0, delay, most;
	uint64_t slice = AWAKE_PAUSE_SLICE_MAX_US * kymo_causal_rates.ticks_per_us;

	ticks = ticks < slice ? ticks : slice;
	most = causal_compute_global_delay(control, last);
	while (held < ticks) {
		for (int i = 0; i < PAUSE_INSTRUCTIONS_PER_CLOCK_READ; i++)
			__builtin_ia32_pause();
		now = ticks_now();
		if (now - last < get_preemption_gap_ticks()) {
			held += now - last;
		} else if (causal_load_relaxed(&control->experiment) ==
			   causal_load_relaxed(&state->word)) {
			delay = causal_load_relaxed(&state->local_delay);
			most = most > delay ? most : delay;
			delay = causal_compute_global_delay(control, now);
			add_absorbed_delay_to_local(state, delay > most ? delay - most : 0);
		}
		most = causal_compute_global_delay(control, now);
		last = now;
	}
	causal_oversubscription_add_off_cpu_time(state,
						 last - begin > held ? last - begin - held : 0);
	return held;
}
