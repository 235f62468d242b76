/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * More threads than processors. Where all processors are busy, a pause asleep costs nothing:
 * another thread of the session has the processor meanwhile, or as soon as it is woken, which in
 * the program with the faster target would have had none. So whoever pauses in a crowd keeps its
 * processor, awake; and a thread that waits for a processor waits for a thread of the session,
 * which pays or earns: what grew meanwhile is credited, as in every other wait that one of us ends.
 *
 * Only of real-time threads, which nothing else preempts: whose processors are shared out in slices
 * has its own back soon after a pause, and may have waited for it because of other programs.
 *
 * How many could run is counted anew in each experiment, so that processes that are killed in one
 * do not count for ever.
 */
#ifndef KYMO_CAUSAL_CROWD_H
#define KYMO_CAUSAL_CROWD_H

#include "causal/state.h"

static inline bool causal_is_crowded(const struct causal_control *control,
				     const struct causal_thread *state)
{
	uint64_t epoch = causal_get(&state->word) >> CAUSAL_EPOCH_SHIFT;
	int64_t most = (int64_t)kymo_causal_rates.processors;

	return state->crowd.realtime &&
	       atomic_load_explicit(&control->took_part[epoch % 2], memory_order_relaxed) > most &&
	       atomic_load_explicit(&control->could_run[epoch % 2], memory_order_relaxed) >= most;
}

/* The thread could run from now on; or does not: it waits; or ends. */
void causal_crowd_join(struct causal_control *control, struct causal_thread *state);
void causal_crowd_leave(struct causal_control *control, struct causal_thread *state);
/* The process is a forked child, whose threads do not count. */
void causal_crowd_forked(void);
void causal_crowd_end(struct causal_control *control, struct causal_thread *state);

/* The calling thread owes nothing, and runs. */
void causal_crowd_settled(const struct causal_control *control, struct causal_thread *state,
			  uint64_t now);
/* It has not run for so long, which is accounted for. */
void causal_crowd_away(struct causal_thread *state, uint64_t ticks);
/* It owes something, of which it is credited what grew while it waited for a processor. */
void causal_crowd_credit(const struct causal_control *control, struct causal_thread *state,
			 uint64_t debt, uint64_t now);
/* A pause of so much of the processor's time. Returns how much it was: less where it is crowded no
 * more, or after a while. */
uint64_t causal_crowd_pause(const struct causal_control *control, struct causal_thread *state,
			    uint64_t ticks);

#endif
