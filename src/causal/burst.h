/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What samples teach of the bursts of a thread: by how much local_delay grows in one of a kind,
 * from its first moment on.
 *
 * How much of a burst is the target differs by how long it is, where a thread takes short and
 * long tasks from one queue; and which it was is only known as it goes on. So local_delay grows by
 * what most bursts of the kind gain in local delay; where one has become longer than some of them,
 * local_delay jumps to what those that are left have gained on average up to there; and at its end
 * to what those that ended alike have.
 *
 * On the thread itself, in a state that was entered, or in a handler that interrupts it: a sample
 * may be forgotten then. Nothing here waits.
 */
#ifndef KYMO_CAUSAL_BURST_H
#define KYMO_CAUSAL_BURST_H

#include "causal/state.h"

/* Adds the time of samples; the older ones of some thirty count less. */
void causal_add_sample_to_time_sums(struct causal_sample_time_sums *to, uint64_t ns,
				    uint64_t target_ns);
void causal_fade_old_samples_in_time_sums(struct causal_sample_time_sums *time);

/* What is known of the kind of burst that is at hand, for the experiment that is. */
struct causal_burst_statistics *burst_find_or_reset_statistics(struct causal_thread *state);
/* A sample of the burst at hand: so long after its begin. */
void burst_add_sample(struct causal_thread *state, uint64_t after, uint64_t ns, bool hit);
/* The burst at hand was so long. What more, or less, local_delay is than by rates and jumps; 0
 * where the speedup is. */
int64_t burst_end_and_get_delay_correction(struct causal_thread *state, uint64_t length);
/* What was seen of the burst at hand is forgotten. */
void burst_forget_samples(struct causal_thread *state);
/* Rates and jumps of the burst are brought up to date. A kind of which nothing is known yet is
 * taken for what the thread does otherwise. False: nothing of it is the target. */
bool burst_update_delay_rates_if_stale(struct causal_burst_statistics *burst,
				       const struct causal_sample_time_sums *thread,
				       uint64_t speedup);

#endif
