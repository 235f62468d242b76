/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * More threads than processors. Where all processors are busy, a pause asleep costs nothing:
 * another thread of the session has the processor meanwhile, or as soon as it is woken, which in
 * the program with the faster target would have had none. So whoever pauses while CPUs are
 * oversubscribed keeps its processor, awake; and a thread that waits for a processor waits for a
 * thread of the session, which pays or gains delay: what grew meanwhile is credited, as in every
 * other wait that one of us ends.
 *
 * Only of real-time threads, which nothing else preempts: whose processors are shared out in slices
 * has its own back soon after a pause, and may have waited for it because of other programs.
 *
 * How many could run is counted again in each experiment, so that processes that are killed in one
 * do not count for ever.
 */
#ifndef KYMO_CAUSAL_OVERSUBSCRIPTION_H
#define KYMO_CAUSAL_OVERSUBSCRIPTION_H

#include "causal/state.h"

static inline bool causal_is_oversubscribed(const struct causal_control *control,
					    const struct causal_thread *state)
{
	uint64_t epoch = causal_load_relaxed(&state->word) >> CAUSAL_EPOCH_SHIFT;
	int64_t most = (int64_t)kymo_causal_rates.usable_processor_count;

	return state->oversubscription.has_realtime_policy &&
	       atomic_load_explicit(&control->took_part[epoch % 2], memory_order_relaxed) > most &&
	       atomic_load_explicit(&control->could_run[epoch % 2], memory_order_relaxed) >= most;
}

/* The thread could run from now on; or does not: it waits; or ends. */
void causal_oversubscription_enter_runnable(struct causal_control *control,
					    struct causal_thread *state);
void causal_oversubscription_enter_waiting(struct causal_control *control,
					   struct causal_thread *state);
/* The process is a forked child, whose threads do not count. */
void causal_oversubscription_set_forked(void);
void causal_oversubscription_end_thread(struct causal_control *control,
					struct causal_thread *state);

/* The calling thread has no unapplied delay, and runs. */
void causal_oversubscription_record_delay_paid(const struct causal_control *control,
					       struct causal_thread *state, uint64_t now);
/* It has not run for so long, which is accounted for. */
void causal_oversubscription_add_off_cpu_time(struct causal_thread *state, uint64_t ticks);
/* It has unapplied delay, of which it is credited what grew while it waited for a processor. */
void causal_oversubscription_credit_delay(const struct causal_control *control,
					  struct causal_thread *state, uint64_t debt, uint64_t now);
/* A pause of so much of the processor's time. Returns how much it was: less where it is crowded no
 * more, or after a while. */
uint64_t causal_oversubscription_pause_awake(const struct causal_control *control,
					     struct causal_thread *state, uint64_t ticks);

#endif
