/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What samples teach of the stretches of a thread: by how much L grows in one of a kind, from its
 * first moment on.
 *
 * How much of a stretch is the target differs by how long it is, where a thread takes short and
 * long tasks from one queue; and which it was is only known as it goes on. So L grows by what most
 * stretches of the kind earn; where one has become longer than some of them, L jumps to what those
 * that are left have earned on average up to there; and at its end to what those that ended alike
 * have.
 *
 * On the thread itself, in a state that was entered, or in a handler that interrupts it: a sample
 * may be forgotten then. Nothing here waits.
 */
#ifndef KYMO_CAUSAL_STRETCH_H
#define KYMO_CAUSAL_STRETCH_H

#include "causal/state.h"

/* Of samples; the older ones of some thirty count less. */
void causal_time_add(struct causal_time *to, uint64_t ns, uint64_t target_ns);
void causal_time_fade(struct causal_time *time);

/* What is known of the kind of stretch that is at hand, for the experiment that is. */
struct causal_stretch *stretch_at_hand(struct causal_thread *state);
/* A sample of the stretch at hand: so long after its begin. */
void stretch_sampled(struct causal_thread *state, uint64_t after, uint64_t ns, bool hit);
/* The stretch at hand was so long. What more, or less, L is than by rates and jumps; 0 where the
 * speedup is. */
int64_t stretch_ended(struct causal_thread *state, uint64_t length);
/* What was seen of the stretch at hand is forgotten. */
void stretch_forget(struct causal_thread *state);
/* Rates and jumps of the stretch are brought up to date. A kind of which nothing is known yet is
 * taken for what the thread does otherwise. False: nothing of it is the target. */
bool stretch_conclude(struct causal_stretch *stretch, const struct causal_time *thread,
		      uint64_t speedup);

#endif
