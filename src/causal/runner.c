/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Earning without waiting for samples. Between two turns (taking a lock, leaving it, waking
 * another, meeting at a barrier) a thread does much the same each time, so how much of such a
 * burst is the target is learnt from the samples that fell into bursts of that kind, and
 * local_delay grows at that rate from its first moment on. What samples say beyond it is due.
 *
 * Mostly that is chance. Of a function that is half of the time twenty samples say two milliseconds
 * more or less than it had, when all bursts are known for what they are; and whatever is worked
 * off is worked off elsewhere: in a burst that is not the target, where it is paid for by those
 * who would have waited for the target, or makes faster what is not. So only what is more than
 * chance is worked off: local_delay grows by what samples have gained to within a few milliseconds,
 * however long it lasts.
 *
 * Others must see it grow while the thread runs: how far it is when they are done with their own
 * decides how long they pause. So the rate is published.
 */
#include "causal/burst.h"
#include "causal/oversubscription.h"
#include "causal/state.h"

#define RUNNER_SLOT_ABANDONED_AFTER_MS                                                             \
	1000u /* milliseconds after its end a slot may be taken from its owner                     \
	       */
#define MAKE_RUNNER_SLOT_OWNER_ID(state)                                                           \
	((uint64_t)(uintptr_t)(state) ^ (uint64_t)kymo_process.pid << 48 ^ 1)

/* ---- what everybody sees ---- */

/* NULL: it waits. */
static void publish_runner_delay(struct causal_runner *runner, const struct causal_thread *state,
				 uint64_t now)
{
	uint64_t sequence = causal_load_relaxed(&runner->sequence) | 1;

	causal_store_relaxed(&runner->sequence, sequence);
	/* release: who sees a new value sees that it is being written */
	atomic_store_explicit(&runner->begin, state ? state->attribution.begin : 0,
			      memory_order_release);
	atomic_store_explicit(&runner->until, state ? state->attribution.until : now,
			      memory_order_release);
	if (state) {
		atomic_store_explicit(&runner->delay, causal_load_relaxed(&state->local_delay),
				      memory_order_release);
		atomic_store_explicit(&runner->ticks, now, memory_order_release);
		atomic_store_explicit(&runner->step, kymo_causal_rates.burst_step_ticks,
				      memory_order_release);
		for (uint32_t i = 0; i < CAUSAL_STEPS; i++) {
			atomic_store_explicit(
				&runner->rates[i],
				causal_load_relaxed(&state->attribution.delay_rates[i]),
				memory_order_release);
			atomic_store_explicit(
				&runner->jumps[i],
				atomic_load_explicit(&state->attribution.delay_jumps[i],
						     memory_order_relaxed),
				memory_order_release);
		}
	}
	atomic_store_explicit(&runner->sequence, sequence + 1, memory_order_release);
}

/* ---- slots ---- */

static struct causal_runner *find_runner_slot_of_thread(struct causal_control *control,
							struct causal_thread *state)
{
	struct causal_runner *runner;

	if (!state->attribution.slot)
		return NULL;
	runner = &control->runners[state->attribution.slot - 1];
	if (causal_load_relaxed(&runner->owner) == MAKE_RUNNER_SLOT_OWNER_ID(state))
		return runner;
	state->attribution.slot = 0; /* it was long unused */
	return NULL;
}

/* Processes that are killed leave theirs behind. */
static struct causal_runner *claim_runner_slot_for_thread(struct causal_control *control,
							  struct causal_thread *state, uint64_t now)
{
	uint64_t old = RUNNER_SLOT_ABANDONED_AFTER_MS * 1000u * kymo_causal_rates.ticks_per_us;

	for (uint32_t i = 0; i < CAUSAL_RUNNERS; i++) {
		struct causal_runner *runner = &control->runners[i];
		uint64_t owner = causal_load_relaxed(&runner->owner);

		if (owner && causal_load_relaxed(&runner->until) + old > now)
			continue;
		if (!atomic_compare_exchange_strong(&runner->owner, &owner,
						    MAKE_RUNNER_SLOT_OWNER_ID(state)))
			continue;
		state->attribution.slot = i + 1;
		publish_runner_delay(runner, NULL, now);
		atomic_fetch_or(&control->runners_used, 1ull << i);
		return runner;
	}
	return NULL;
}

static void release_runner_slot_of_thread(struct causal_control *control,
					  struct causal_thread *state)
{
	struct causal_runner *runner = find_runner_slot_of_thread(control, state);

	if (!runner)
		return;
	publish_runner_delay(runner, NULL, ticks_now());
	atomic_fetch_and(&control->runners_used, ~(1ull << (state->attribution.slot - 1)));
	causal_store_relaxed(&runner->owner, 0);
	state->attribution.slot = 0;
}

/* ---- rates ---- */

static int64_t compute_rate_for_unapplied_delay(const struct causal_attribution_state *attribution,
						uint64_t speedup)
{
	int64_t unapplied =
		atomic_load_explicit(&attribution->unapplied_delay, memory_order_relaxed);
	int64_t chance = (int64_t)(kymo_causal_rates.chance_delay_tolerance_ticks * speedup / 1000);

	if (unapplied >= -chance && unapplied <= chance)
		return 0;
	unapplied -= unapplied > 0 ? chance : -chance;
	return (int64_t)(((__int128)unapplied * (int64_t)CAUSAL_RATE_FIXED_POINT_ONE) /
			 (int64_t)(attribution->repay_time_ticks
					   ? attribution->repay_time_ticks
					   : kymo_causal_rates.repay_time_ticks));
}

/* False: all rates are 0. */
static bool compute_thread_delay_rates(struct causal_thread *state)
{
	struct causal_attribution_state *attribution = &state->attribution;
	uint64_t word = causal_load_relaxed(&state->word);
	uint64_t speedup = word >> CAUSAL_SPEEDUP_SHIFT & CAUSAL_SPEEDUP_MASK;
	int64_t unapplied = compute_rate_for_unapplied_delay(attribution, speedup), rate;
	struct causal_burst_statistics *burst;
	bool any;

	if (!(word & CAUSAL_ACTIVE) || !speedup)
		return false;
	burst = burst_find_or_reset_statistics(state);
	any = burst_update_delay_rates_if_stale(burst, &attribution->usual, speedup);
	for (uint32_t i = 0; i < CAUSAL_STEPS; i++) {
		rate = (int64_t)causal_load_relaxed(&burst->delay_rates[i]) + unapplied;
		rate = rate < 0 ? 0
		       : rate > (int64_t)CAUSAL_RATE_FIXED_POINT_ONE
			       ? (int64_t)CAUSAL_RATE_FIXED_POINT_ONE
			       : rate;
		causal_store_relaxed(&attribution->delay_rates[i], (uint64_t)rate);
		atomic_store_explicit(
			&attribution->delay_jumps[i],
			atomic_load_explicit(&burst->delay_jumps[i], memory_order_relaxed),
			memory_order_relaxed);
		any |= rate > 0;
	}
	return any;
}

static void raise_global_delay(struct causal_control *control, uint64_t delay)
{
	uint64_t most = causal_load_relaxed(&control->global_delay);

	while (most < delay &&
	       !atomic_compare_exchange_weak_explicit(&control->global_delay, &most, delay,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

/* local_delay never falls below where the experiment began. */
static void add_to_local_and_global_delay(struct causal_control *control,
					  struct causal_thread *state, int64_t amount)
{
	uint64_t delay = causal_load_relaxed(&state->local_delay);
	int64_t least = (int64_t)(causal_load_relaxed(&state->start) - delay);

	amount = amount > least ? amount : least;
	if (!amount)
		return;
	causal_store_relaxed(&state->local_delay, delay + (uint64_t)amount);
	raise_global_delay(control, causal_load_relaxed(&state->local_delay));
	causal_add_to_counter(&control->earned, (uint64_t)amount);
	atomic_fetch_sub_explicit(&state->attribution.unapplied_delay, amount,
				  memory_order_relaxed);
}

static void stop_local_delay_growth(struct causal_control *control, struct causal_thread *state,
				    int64_t amount, uint64_t now)
{
	struct causal_runner *runner;

	if (!state->attribution.running)
		return;
	state->attribution.running = false;
	add_to_local_and_global_delay(control, state, amount);
	runner = find_runner_slot_of_thread(control, state);
	if (runner)
		publish_runner_delay(runner, NULL, now);
}

void causal_pause_burst(struct causal_control *control, struct causal_thread *state, uint64_t now)
{
	stop_local_delay_growth(control, state, causal_compute_thread_delay_growth(state, now),
				now);
}

void causal_end_burst(struct causal_control *control, struct causal_thread *state, uint64_t now)
{
	struct causal_attribution_state *attribution = &state->attribution;
	int64_t amount = causal_compute_thread_delay_growth(state, now);

	if (attribution->begin && now > attribution->begin)
		amount += burst_end_and_get_delay_correction(state, now - attribution->begin);
	attribution->begin = 0;
	stop_local_delay_growth(control, state, amount, now);
}

void causal_continue_burst(struct causal_control *control, struct causal_thread *state,
			   uint64_t kind, uint64_t lasted, uint64_t now)
{
	struct causal_attribution_state *attribution = &state->attribution;
	struct causal_runner *runner;
	bool earns;

	causal_oversubscription_enter_runnable(control, state);
	if (attribution->running)
		add_to_local_and_global_delay(control, state,
					      causal_compute_thread_delay_growth(state, now));
	attribution->running = false;
	attribution->kind = kind;
	attribution->begin = now - lasted;
	attribution->until = now + kymo_causal_rates.running_unseen_max_ticks;
	earns = compute_thread_delay_rates(state);
	runner = find_runner_slot_of_thread(control, state);
	if (earns) {
		causal_store_relaxed(&attribution->ticks, now);
		attribution->running = true;
		runner = runner ? runner : claim_runner_slot_for_thread(control, state, now);
	}
	if (runner)
		publish_runner_delay(runner, earns ? state : NULL, now);
}

void causal_begin_burst(struct causal_control *control, struct causal_thread *state, uint64_t kind,
			uint64_t now)
{
	causal_continue_burst(control, state, kind, 0, now);
}

/* ---- samples ---- */

/* What is due is worked off in the same real time by threads that seldom run. */
static void update_delay_repay_time(struct causal_attribution_state *attribution, uint64_t cpu_ns,
				    uint64_t now)
{
	uint64_t passed = now - attribution->last_sample_ticks, cpu = causal_ns_to_ticks(cpu_ns),
		 most = kymo_causal_rates.repay_time_ticks, repay = most;

	if (attribution->last_sample_ticks && cpu < passed)
		repay = (uint64_t)((unsigned __int128)most * cpu / passed);
	repay = (3 * (attribution->repay_time_ticks ? attribution->repay_time_ticks : repay) +
		 repay) /
		4;
	attribution->repay_time_ticks = repay < most / 20 ? most / 20 : repay;
	attribution->last_sample_ticks = now;
}

void causal_add_sample_to_attribution(struct causal_thread *state, uint64_t cpu_ns, bool hit,
				      uint64_t speedup, uint64_t now)
{
	struct causal_attribution_state *attribution = &state->attribution;

	update_delay_repay_time(attribution, cpu_ns, now);
	causal_fade_old_samples_in_time_sums(&attribution->usual);
	causal_add_sample_to_time_sums(&attribution->usual, cpu_ns, hit ? cpu_ns : 0);
	burst_add_sample(state,
			 attribution->begin && now > attribution->begin ? now - attribution->begin
									: 0,
			 cpu_ns, hit);
	if (now < attribution->learning_until_ticks)
		atomic_store_explicit(&attribution->unapplied_delay, 0, memory_order_relaxed);
	else if (hit)
		atomic_fetch_add_explicit(&attribution->unapplied_delay,
					  (int64_t)(causal_ns_to_ticks(cpu_ns) * speedup / 1000),
					  memory_order_relaxed);
}

void causal_add_unsampled_time_to_attribution(struct causal_thread *state, uint64_t cpu_ns,
					      uint64_t speedup, uint64_t now)
{
	struct causal_attribution_state *attribution = &state->attribution;

	if (now >= attribution->learning_until_ticks)
		atomic_fetch_add_explicit(&attribution->unapplied_delay,
					  (int64_t)(causal_ns_to_ticks(cpu_ns) * speedup / 1000),
					  memory_order_relaxed);
}

void causal_apply_unapplied_delay(struct causal_control *control, struct causal_thread *state)
{
	int64_t unapplied =
		atomic_load_explicit(&state->attribution.unapplied_delay, memory_order_relaxed);

	if (unapplied > 0)
		add_to_local_and_global_delay(control, state, unapplied);
	release_runner_slot_of_thread(control, state);
}

void causal_reset_attribution(struct causal_control *control, struct causal_thread *state)
{
	struct causal_attribution_state *attribution = &state->attribution;

	release_runner_slot_of_thread(control, state);
	attribution->running = false;
	burst_forget_samples(state);
	causal_store_relaxed(&attribution->usual.ns, 0);
	causal_store_relaxed(&attribution->usual.target_ns, 0);
	atomic_store_explicit(&attribution->unapplied_delay, 0, memory_order_relaxed);
	attribution->learning_until_ticks = ticks_now() + kymo_causal_rates.epoch_learning_ticks;
}
