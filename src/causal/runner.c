/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Earning without waiting for samples. Between two turns (taking a lock, leaving it, waking
 * another, meeting at a barrier) a thread does much the same each time, so how much of such a
 * stretch is the target is learnt from the samples that fell into stretches of that kind, and L
 * grows at that rate from its first moment on. What samples say beyond it is due.
 *
 * Mostly that is chance. Of a function that is half of the time twenty samples say two milliseconds
 * more or less than it had, when all stretches are known for what they are; and whatever is worked
 * off is worked off elsewhere: in a stretch that is not the target, where it is paid for by those
 * who would have waited for the target, or makes faster what is not. So only what is more than
 * chance is worked off: L grows by what samples have earned to within a few milliseconds, however
 * long it lasts.
 *
 * Others must see it grow while the thread runs: how far it is when they are done with their own
 * decides how long they pause. So the rate is published.
 */
#include "causal/crowd.h"
#include "causal/state.h"
#include "causal/stretch.h"

#define FORGOTTEN         1000u /* milliseconds after its end a slot may be taken from its owner */
#define SLOT_OWNER(state) ((uint64_t)(uintptr_t)(state) ^ (uint64_t)kymo_runtime.pid << 48 ^ 1)

/* ---- what everybody sees ---- */

/* NULL: it waits. */
static void publish(struct causal_runner *runner, const struct causal_thread *state, uint64_t now)
{
	uint64_t sequence = causal_get(&runner->sequence) | 1;

	causal_set(&runner->sequence, sequence);
	/* release: who sees a new value sees that it is being written */
	atomic_store_explicit(&runner->begin, state ? state->earning.begin : 0,
			      memory_order_release);
	atomic_store_explicit(&runner->until, state ? state->earning.until : now,
			      memory_order_release);
	if (state) {
		atomic_store_explicit(&runner->delay, causal_get(&state->delay),
				      memory_order_release);
		atomic_store_explicit(&runner->ticks, now, memory_order_release);
		atomic_store_explicit(&runner->step, kymo_causal_rates.step, memory_order_release);
		for (uint32_t i = 0; i < CAUSAL_STEPS; i++) {
			atomic_store_explicit(&runner->rates[i],
					      causal_get(&state->earning.rates[i]),
					      memory_order_release);
			atomic_store_explicit(&runner->jumps[i],
					      atomic_load_explicit(&state->earning.jumps[i],
								   memory_order_relaxed),
					      memory_order_release);
		}
	}
	atomic_store_explicit(&runner->sequence, sequence + 1, memory_order_release);
}

/* ---- slots ---- */

static struct causal_runner *slot_of(struct causal_control *control, struct causal_thread *state)
{
	struct causal_runner *runner;

	if (!state->earning.slot)
		return NULL;
	runner = &control->runners[state->earning.slot - 1];
	if (causal_get(&runner->owner) == SLOT_OWNER(state))
		return runner;
	state->earning.slot = 0; /* it was long unused */
	return NULL;
}

/* Processes that are killed leave theirs behind. */
static struct causal_runner *take_slot(struct causal_control *control, struct causal_thread *state,
				       uint64_t now)
{
	uint64_t old = FORGOTTEN * 1000u * kymo_causal_rates.ticks_per_us;

	for (uint32_t i = 0; i < CAUSAL_RUNNERS; i++) {
		struct causal_runner *runner = &control->runners[i];
		uint64_t owner = causal_get(&runner->owner);

		if (owner && causal_get(&runner->until) + old > now)
			continue;
		if (!atomic_compare_exchange_strong(&runner->owner, &owner, SLOT_OWNER(state)))
			continue;
		state->earning.slot = i + 1;
		publish(runner, NULL, now);
		atomic_fetch_or(&control->runners_used, 1ull << i);
		return runner;
	}
	return NULL;
}

static void leave_slot(struct causal_control *control, struct causal_thread *state)
{
	struct causal_runner *runner = slot_of(control, state);

	if (!runner)
		return;
	publish(runner, NULL, ticks_now());
	atomic_fetch_and(&control->runners_used, ~(1ull << (state->earning.slot - 1)));
	causal_set(&runner->owner, 0);
	state->earning.slot = 0;
}

/* ---- rates ---- */

static int64_t rate_of_due(const struct causal_earning *earning, uint64_t speedup)
{
	int64_t due = atomic_load_explicit(&earning->due, memory_order_relaxed);
	int64_t chance = (int64_t)(kymo_causal_rates.chance * speedup / 1000);

	if (due >= -chance && due <= chance)
		return 0;
	due -= due > 0 ? chance : -chance;
	return (int64_t)(((__int128)due * (int64_t)CAUSAL_RATE_ONE) /
			 (int64_t)(earning->repay ? earning->repay : kymo_causal_rates.repay));
}

/* False: all rates are 0. */
static bool find_rates(struct causal_thread *state)
{
	struct causal_earning *earning = &state->earning;
	uint64_t word = causal_get(&state->word);
	uint64_t speedup = word >> CAUSAL_SPEEDUP_SHIFT & CAUSAL_SPEEDUP_MASK;
	int64_t due = rate_of_due(earning, speedup), rate;
	struct causal_stretch *stretch;
	bool any;

	if (!(word & CAUSAL_ACTIVE) || !speedup)
		return false;
	stretch = stretch_at_hand(state);
	any = stretch_conclude(stretch, &earning->usual, speedup);
	for (uint32_t i = 0; i < CAUSAL_STEPS; i++) {
		rate = (int64_t)causal_get(&stretch->rates[i]) + due;
		rate = rate < 0                          ? 0
		       : rate > (int64_t)CAUSAL_RATE_ONE ? (int64_t)CAUSAL_RATE_ONE
							 : rate;
		causal_set(&earning->rates[i], (uint64_t)rate);
		atomic_store_explicit(
			&earning->jumps[i],
			atomic_load_explicit(&stretch->jumps[i], memory_order_relaxed),
			memory_order_relaxed);
		any |= rate > 0;
	}
	return any;
}

static void raise_most(struct causal_control *control, uint64_t delay)
{
	uint64_t most = causal_get(&control->delay);

	while (most < delay &&
	       !atomic_compare_exchange_weak_explicit(&control->delay, &most, delay,
						      memory_order_relaxed, memory_order_relaxed))
		;
}

/* L never falls below where the experiment began. */
static void grow(struct causal_control *control, struct causal_thread *state, int64_t amount)
{
	uint64_t delay = causal_get(&state->delay);
	int64_t least = (int64_t)(causal_get(&state->start) - delay);

	amount = amount > least ? amount : least;
	if (!amount)
		return;
	causal_set(&state->delay, delay + (uint64_t)amount);
	raise_most(control, causal_get(&state->delay));
	causal_count(&control->earned, (uint64_t)amount);
	atomic_fetch_sub_explicit(&state->earning.due, amount, memory_order_relaxed);
}

static void stop(struct causal_control *control, struct causal_thread *state, int64_t amount,
		 uint64_t now)
{
	struct causal_runner *runner;

	if (!state->earning.running)
		return;
	state->earning.running = false;
	grow(control, state, amount);
	runner = slot_of(control, state);
	if (runner)
		publish(runner, NULL, now);
}

void causal_stop_running(struct causal_control *control, struct causal_thread *state, uint64_t now)
{
	stop(control, state, causal_grown(state, now), now);
}

void causal_end_running(struct causal_control *control, struct causal_thread *state, uint64_t now)
{
	struct causal_earning *earning = &state->earning;
	int64_t amount = causal_grown(state, now);

	if (earning->begin && now > earning->begin)
		amount += stretch_ended(state, now - earning->begin);
	earning->begin = 0;
	stop(control, state, amount, now);
}

void causal_run_on(struct causal_control *control, struct causal_thread *state, uint64_t kind,
		   uint64_t lasted, uint64_t now)
{
	struct causal_earning *earning = &state->earning;
	struct causal_runner *runner;
	bool earns;

	causal_crowd_join(control, state);
	if (earning->running)
		grow(control, state, causal_grown(state, now));
	earning->running = false;
	earning->kind = kind;
	earning->begin = now - lasted;
	earning->until = now + kymo_causal_rates.alone;
	earns = find_rates(state);
	runner = slot_of(control, state);
	if (earns) {
		causal_set(&earning->ticks, now);
		earning->running = true;
		runner = runner ? runner : take_slot(control, state, now);
	}
	if (runner)
		publish(runner, earns ? state : NULL, now);
}

void causal_run(struct causal_control *control, struct causal_thread *state, uint64_t kind,
		uint64_t now)
{
	causal_run_on(control, state, kind, 0, now);
}

/* ---- samples ---- */

/* What is due is worked off in the same real time by threads that seldom run. */
static void set_repay(struct causal_earning *earning, uint64_t cpu_ns, uint64_t now)
{
	uint64_t passed = now - earning->sampled, cpu = causal_ticks(cpu_ns),
		 most = kymo_causal_rates.repay, repay = most;

	if (earning->sampled && cpu < passed)
		repay = (uint64_t)((unsigned __int128)most * cpu / passed);
	repay = (3 * (earning->repay ? earning->repay : repay) + repay) / 4;
	earning->repay = repay < most / 20 ? most / 20 : repay;
	earning->sampled = now;
}

void causal_learn(struct causal_thread *state, uint64_t cpu_ns, bool hit, uint64_t speedup,
		  uint64_t now)
{
	struct causal_earning *earning = &state->earning;

	set_repay(earning, cpu_ns, now);
	causal_time_fade(&earning->usual);
	causal_time_add(&earning->usual, cpu_ns, hit ? cpu_ns : 0);
	stretch_sampled(state, earning->begin && now > earning->begin ? now - earning->begin : 0,
			cpu_ns, hit);
	if (now < earning->learning_until)
		atomic_store_explicit(&earning->due, 0, memory_order_relaxed);
	else if (hit)
		atomic_fetch_add_explicit(&earning->due,
					  (int64_t)(causal_ticks(cpu_ns) * speedup / 1000),
					  memory_order_relaxed);
}

void causal_earn_all(struct causal_control *control, struct causal_thread *state)
{
	int64_t due = atomic_load_explicit(&state->earning.due, memory_order_relaxed);

	if (due > 0)
		grow(control, state, due);
	leave_slot(control, state);
}

void causal_forget_earnings(struct causal_control *control, struct causal_thread *state)
{
	struct causal_earning *earning = &state->earning;

	leave_slot(control, state);
	earning->running = false;
	stretch_forget(state);
	causal_set(&earning->usual.ns, 0);
	causal_set(&earning->usual.target_ns, 0);
	atomic_store_explicit(&earning->due, 0, memory_order_relaxed);
	earning->learning_until = ticks_now() + kymo_causal_rates.learning;
}
