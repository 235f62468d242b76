/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is owed is paid by sleeping. Sleeps end late: what they took too long is banked and goes off
 * the next debt, so that what a thread pauses is in the long run what it owed.
 */
#include <time.h>

#include "causal/crowd.h"
#include "causal/state.h"
#include "common/syscalls.h"

#define THRESHOLD_US 5u
#define LEARNING_US  8000u
#define REPAY_US     20000u
#define CHANCE_US    8000u
#define ALONE_US     4000u
#define SLICE_US     10000u
#define SPIN_US      80u
#define SPINS        3u /* so many times that long, awake, in one turn */
#define NEVER_AWAKE  UINT64_MAX
#define STEP_US      128u
#define TURN_US      5u
#define TURNS        64u /* so many may follow at once on each other */
/* That pass without a look at the clock; odd with the one that looks, or of locks and unlocks in
 * turns it would be always the same. */
#define UNREAD     30u
#define PROCESSORS 8192u /* that a kernel may know (NR_CPUS of x86) */
/* A handler does not pause for longer: the program's signals wait for it. What is still owed then
 * is paid at the next turn. */
#define HANDLER_US 50000u

struct causal_rates kymo_causal_rates;
__thread uint32_t kymo_causal_unread;

static uint64_t processors(void)
{
	uint64_t set[PROCESSORS / 64] = {0};
	long size = sys_call3(SYS_sched_getaffinity, 0, sizeof(set), (long)set);
	uint64_t count = 0;

	for (size_t i = 0; size > 0 && i < (size_t)size / sizeof(set[0]); i++)
		count += (uint64_t)__builtin_popcountll(set[i]);
	return count ? count : PROCESSORS;
}

void causal_rates_set(uint64_t ticks_per_second)
{
	struct causal_rates *rates = &kymo_causal_rates;

	rates->ticks_per_us = ticks_per_second / 1000000u;
	rates->ticks_per_ns_q =
		(uint64_t)(((unsigned __int128)ticks_per_second << 32) / 1000000000u);
	rates->ns_per_tick_q =
		(uint64_t)(((unsigned __int128)1000000000u << 32) / ticks_per_second);
	rates->threshold = THRESHOLD_US * rates->ticks_per_us;
	rates->learning = LEARNING_US * rates->ticks_per_us;
	rates->repay = REPAY_US * rates->ticks_per_us;
	rates->chance = CHANCE_US * rates->ticks_per_us;
	rates->alone = ALONE_US * rates->ticks_per_us;
	rates->slice = SLICE_US * rates->ticks_per_us;
	rates->spin = SPIN_US * rates->ticks_per_us;
	rates->step = STEP_US * rates->ticks_per_us;
	rates->turn = TURN_US * rates->ticks_per_us;
	rates->processors = processors();
}

static uint64_t owed(const struct causal_control *control, const struct causal_thread *state,
		     uint64_t now)
{
	uint64_t delay = causal_get(&state->delay), most = causal_most(control, now);

	return most > delay ? most - delay : 0;
}

void causal_change_epoch(struct causal_control *control, struct causal_thread *state, uint64_t word)
{
	uint64_t old = causal_get(&state->word);

	if (old & CAUSAL_ACTIVE && old != ~0ull)
		state->absorbed += causal_absorbed_now(state);
	if (old >> CAUSAL_EPOCH_SHIFT != word >> CAUSAL_EPOCH_SHIFT) {
		/* acquire of `word`: its start_delay is there, or that of a later one, which is
		 * taken note of at the next turn */
		uint64_t start = causal_get(&control->start_delay);

		if (old & CAUSAL_ACTIVE && old != ~0ull && start > causal_get(&state->delay))
			causal_count(&control->forgiven, start - causal_get(&state->delay));
		causal_set(&state->start, start);
		causal_set(&state->delay, start);
		causal_set(&state->bank, 0);
	}
	causal_forget_earnings(control, state);
	causal_set(&state->word, word);
}

/* ---- pausing ---- */

static bool goes_on(const struct causal_control *control, uint64_t word, uint64_t now)
{
	return atomic_load_explicit(&control->experiment, memory_order_relaxed) == word &&
	       now < causal_get(&control->expires);
}

/* Returns what it was late by, beyond what timers are. */
static uint64_t sleep_for(uint64_t begin, uint64_t ticks)
{
	uint64_t usual = ticks + kymo_causal_rates.spin, took;
	uint64_t ns = causal_ns(ticks);
	struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
				.tv_nsec = (long)(ns % 1000000000u)};

	sys_call4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&time, 0);
	took = ticks_now() - begin;
	return took > usual ? took - usual : 0;
}

/* The end of it awake: what a sleep is late by is more than threads that meet every 100 us can do
 * without. */
static uint64_t spin_for(const struct causal_control *control, uint64_t word, uint64_t until)
{
	uint64_t begin = ticks_now(), now = begin;

	while (now < until && goes_on(control, word, now)) {
		__builtin_ia32_pause();
		now = ticks_now();
	}
	return now - begin;
}

/* Returns how long it was; less than asked for where the experiment has ended. *spun is how long
 * this turn has been awake so far: whoever follows a debt that grows as it is paid would be awake
 * for all of it, on a processor that other threads wait for. */
static uint64_t pause_for(struct causal_control *control, struct causal_thread *state,
			  uint64_t ticks, uint64_t *turn_spun)
{
	const struct causal_rates *rates = &kymo_causal_rates;
	uint64_t now = ticks_now(), word = causal_get(&state->word), paused = 0, held = 0, spun = 0;
	uint64_t late = 0;

	atomic_store_explicit(&state->earning.spinning, 1, memory_order_relaxed);
	while (paused < ticks && goes_on(control, word, now)) {
		uint64_t begin = now, left = ticks - paused;

		if (causal_is_crowded(control, state)) {
			uint64_t some = causal_crowd_pause(control, state, left);

			held += some;
			paused += some;
			now = ticks_now();
			continue;
		}
		if (left > rates->slice)
			left = rates->slice;
		if (*turn_spun == NEVER_AWAKE)
			late += sleep_for(begin, left);
		else if (left > rates->spin)
			late += sleep_for(begin, left - rates->spin);
		else if (*turn_spun + spun > SPINS * rates->spin)
			late += sleep_for(begin, rates->spin);
		else
			spun += spin_for(control, word, begin + left);
		now = ticks_now();
		paused += now - begin;
	}
	*turn_spun += spun;
	if (late)
		causal_count(&control->late, late);
	causal_count(&state->earning.spun_ns, causal_ns(spun + held));
	atomic_store_explicit(&state->earning.spinning, 0, memory_order_relaxed);
	causal_crowd_away(state, paused - held - spun);
	return paused;
}

static bool may_pause(const struct causal_thread *state)
{
	const struct thread *thread = state->thread;

	return !atomic_load_explicit(&thread->leaving, memory_order_relaxed) && !thread->sealed &&
	       !kymo_runtime.sealed;
}

static void pay(struct causal_control *control, struct causal_thread *state, uint64_t debt,
		uint64_t *spun)
{
	uint64_t bank = causal_get(&state->bank), saved = bank < debt ? bank : debt, slept, over;

	causal_set(&state->bank, bank - saved);
	if (saved)
		atomic_fetch_sub_explicit(&control->overslept, saved, memory_order_relaxed);
	slept = saved < debt ? pause_for(control, state, debt - saved, spun) : 0;
	over = slept > debt - saved ? slept - (debt - saved) : 0;
	causal_set(&state->delay, causal_get(&state->delay) + saved + slept - over);
	causal_set(&state->bank, causal_get(&state->bank) + over);
	if (!slept)
		return;
	causal_count(&control->paid, slept);
	causal_count(&control->overslept, over);
	causal_count(&control->pauses, 1);
}

static uint64_t least_debt(uint64_t limit)
{
	return limit ? 2 * kymo_causal_rates.spin : kymo_causal_rates.threshold;
}

/* Of a thread that does not run. With a limit, in the handler of a sample, pauses are asleep, and
 * what is too short for that is left for a turn: the time to the next sample is CPU time, so a
 * pause awake would bring it nearer, where there was something to pay and not elsewhere, and
 * samples would come to the same places again and again. */
static void settle(struct causal_control *control, struct causal_thread *state, uint64_t now,
		   uint64_t limit)
{
	uint64_t begin = now, word = causal_turn(control, state), least = least_debt(limit), debt;
	uint64_t spun = limit ? NEVER_AWAKE : 0;

	debt = word & CAUSAL_ACTIVE ? owed(control, state, now) : 0;
	if (debt >= kymo_causal_rates.threshold)
		causal_crowd_credit(control, state, debt, now);
	while (word & CAUSAL_ACTIVE && (debt = owed(control, state, now)) >= least) {
		if (!goes_on(control, word, now) || !may_pause(state))
			break;
		if (limit && now - begin > limit)
			break;
		if (limit && debt > limit)
			debt = limit;
		debt -= limit ? least / 2 : 0;
		pay(control, state, debt, &spun);
		word = causal_turn(control, state);
		now = ticks_now();
	}
}

/* ---- at the turns of a thread ---- */

static struct causal_control *control_now(void)
{
	return atomic_load_explicit(&kymo_causal, memory_order_relaxed);
}

/* The kind of a stretch is where it began: which function of the wrappers called, and from where
 * that was. */
#define KIND_AT(site) ((CAUSAL_SITE ^ ((site) << 32 | (site) >> 32)) & ~CAUSAL_KIND_START)
#define KIND          KIND_AT(0ull)

/* *ret_now becomes the time after a pause. */
static void settle_at_turn(struct causal_control *control, struct causal_thread *state,
			   uint64_t limit, uint64_t *ret_now)
{
	uint64_t now = *ret_now;

	if (owed(control, state, now) >= least_debt(limit)) {
		causal_stop_running(control, state, now);
		settle(control, state, now, limit);
		*ret_now = ticks_now();
	}
}

static void pay_all(struct causal_control *control, struct causal_thread *state, uint64_t kind,
		    uint64_t now)
{
	if (causal_is_waiting(state) || !causal_enter(state))
		return;
	kymo_causal_unread = 0;
	causal_turn(control, state);
	causal_end_running(control, state, now);
	settle_at_turn(control, state, 0, &now);
	causal_run(control, state, kind, now);
	causal_crowd_settled(control, state, now);
	causal_leave(state);
}

void causal_pay(void)
{
	struct causal_control *control = control_now();
	struct causal_thread *state = control ? causal_self() : NULL;

	if (state)
		pay_all(control, state, KIND, ticks_now());
}

void causal_pay_at(uint64_t site)
{
	struct causal_control *control = control_now();
	struct causal_thread *state = control ? causal_self() : NULL;

	if (state)
		pay_all(control, state, KIND_AT(site), ticks_now());
}

static bool may_turn(const struct causal_thread *state, uint64_t now)
{
	uint64_t reserve = TURNS * kymo_causal_rates.turn;

	return (int64_t)(state->turns - now) <= (int64_t)reserve;
}

/* As many calls as, by those of late, take no longer than a turn is worth. */
static void let_pass(struct causal_thread *state, uint64_t now)
{
	uint64_t passed = now - state->looked;
	uint64_t calls = (state->let_pass + 1) * kymo_causal_rates.turn / (passed ? passed : 1);

	state->looked = now;
	state->let_pass = calls < UNREAD ? (uint32_t)calls & ~1u : UNREAD;
	kymo_causal_unread = state->let_pass;
}

/* Turns go off an allowance that comes back with time: threads that take a lock now and then begin
 * a stretch wherever they do. */
void causal_pay_seldom_at(uint64_t site)
{
	struct causal_control *control = control_now();
	struct causal_thread *state = control ? causal_self() : NULL;
	uint64_t now;

	if (!state)
		return;
	now = ticks_now();
	if (may_turn(state, now)) {
		state->turns = (state->turns > now ? state->turns : now) + kymo_causal_rates.turn;
		pay_all(control, state, KIND_AT(site), now);
	}
	if (!may_turn(state, now))
		let_pass(state, now);
}

/* The session's counts take part in nothing: they are brought up to date when there is time. */
static void add_up(struct causal_control *control, struct causal_thread *state)
{
	if (state->waits)
		causal_count(&control->waits, state->waits);
	if (state->waits_outside)
		causal_count(&control->waits_outside, state->waits_outside);
	if (state->credited)
		causal_count(&control->credited, state->credited);
	state->waits = state->waits_outside = state->credited = 0;
}

void causal_settle_thread(struct thread *thread)
{
	struct causal_control *control = control_now();
	struct causal_thread *state = thread->causal;
	uint64_t begin = ticks_now(), now = begin, lasted, spun;

	if (!control || !state || !causal_enter(state))
		return;
	kymo_causal_unread = 0;
	add_up(control, state);
	spun = causal_get(&state->earning.spun_ns);
	lasted = state->earning.begin ? begin - state->earning.begin : 0;
	causal_turn(control, state);
	if (!causal_is_waiting(state)) {
		settle_at_turn(control, state, HANDLER_US * kymo_causal_rates.ticks_per_us, &now);
		causal_run_on(control, state, state->earning.kind, lasted, now);
		causal_crowd_settled(control, state, now);
	}
	state->earning.handler_spun_ns += causal_get(&state->earning.spun_ns) - spun;
	causal_leave(state);
}

void causal_settle_end(void)
{
	struct causal_control *control = control_now();
	struct causal_thread *state = control ? causal_self() : NULL;

	if (!state || !causal_enter(state))
		return;
	causal_turn(control, state);
	causal_end_running(control, state, ticks_now());
	causal_earn_all(control, state);
	settle(control, state, ticks_now(), 0);
	add_up(control, state);
	causal_crowd_end(control, state);
	kymo_causal_thread = NULL;
	causal_leave(state);
}

/* `wait` may lie elsewhere than on the stack. */
void causal_before_wait(struct causal_wait *wait)
{
	uint64_t here = (uint64_t)__builtin_frame_address(0);
	struct causal_control *control = control_now();
	struct causal_thread *state = control ? causal_self() : NULL;

	wait->epoch = wait->ticks = 0;
	if (!state || causal_is_waiting(state) || !causal_enter(state))
		return;
	wait->ticks = ticks_now();
	causal_turn(control, state);
	causal_end_running(control, state, wait->ticks);
	settle(control, state, wait->ticks, 0);
	causal_crowd_leave(control, state);
	causal_set(&state->waiting, (uint64_t)wait > here ? (uint64_t)wait : here);
	wait->ticks = ticks_now();
	wait->delay = causal_most(control, wait->ticks);
	wait->epoch = causal_get(&state->word) >> CAUSAL_EPOCH_SHIFT | 1ull << 63;
	causal_leave(state);
}

void causal_wait_runs(void)
{
	struct causal_control *control = control_now();
	struct causal_thread *state = control ? causal_self() : NULL;

	if (!state || !causal_enter(state))
		return;
	causal_set(&state->waiting, 0);
	causal_run(control, state, KIND, ticks_now());
	causal_leave(state);
}

/* Since the wait began, or since the epoch did, where that was later; until what the thread waited
 * for was given away. From there to here it was on its way, which takes as long whatever is faster
 * meanwhile. */
static uint64_t growth(const struct causal_control *control, const struct causal_thread *state,
		       const struct causal_wait *wait, uint64_t given, uint64_t now)
{
	bool same = (causal_get(&state->word) >> CAUSAL_EPOCH_SHIFT | 1ull << 63) == wait->epoch;
	uint64_t from = same ? wait->delay : causal_get(&state->start),
		 most = causal_most(control, now);

	most = most < given ? most : given;
	return most > from ? most - from : 0;
}

/* given: G at that time; UINT64_MAX: it is not known. */
static void end_wait(const struct causal_wait *wait, enum causal_waker waker, uint64_t kind,
		     uint64_t given)
{
	struct causal_control *control = control_now();
	struct causal_thread *state = control && wait->epoch ? causal_self() : NULL;
	uint64_t now, grown;

	if (!state || !causal_enter(state))
		return;
	kymo_causal_unread = 0;
	causal_set(&state->waiting, 0);
	now = ticks_now();
	if (waker == CAUSAL_WAKER_SESSION) {
		if (causal_turn(control, state) & CAUSAL_ACTIVE) {
			uint64_t debt = owed(control, state, now);

			grown = growth(control, state, wait, given, now);
			grown = grown < debt ? grown : debt;
			causal_set(&state->delay, causal_get(&state->delay) + grown);
			state->credited += grown;
		}
		state->waits++;
	} else {
		state->waits_outside++;
	}
	causal_crowd_join(control, state);
	settle(control, state, now, 0);
	now = ticks_now();
	causal_run(control, state, kind, now);
	causal_crowd_settled(control, state, now);
	causal_leave(state);
}

void causal_after_wait(const struct causal_wait *wait, enum causal_waker waker)
{
	end_wait(wait, waker, KIND, UINT64_MAX);
}

void causal_after_wait_at(const struct causal_wait *wait, enum causal_waker waker, uint64_t site)
{
	end_wait(wait, waker, KIND_AT(site), UINT64_MAX);
}

void causal_after_wait_for(const struct causal_wait *wait, const volatile void *what, uint64_t site)
{
	end_wait(wait, CAUSAL_WAKER_SESSION, KIND_AT(site), causal_given(what, wait->ticks));
}
