/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Unapplied delay is paid by sleeping. Sleeps end late: what they took too long is banked and goes
 * off the next debt, so that what a thread pauses is in the long run its unapplied delay.
 */
#include <time.h>

#include "causal/oversubscription.h"
#include "causal/state.h"
#include "common/syscalls.h"

#define PAUSE_THRESHOLD_US                 5u
#define EPOCH_LEARNING_TIME_US             8000u
#define UNAPPLIED_DELAY_REPAY_TIME_US      20000u
#define CHANCE_DELAY_TOLERANCE_US          8000u
#define UNSAMPLED_RUN_MAX_US               4000u
#define SLEEP_SLICE_MAX_US                 10000u
#define SPIN_MAX_US                        80u
#define SPINS_PER_DELAY_PAYMENT_MAX        3u /* so many times that long, awake, in one turn */
#define NEVER_SPIN_TICKS                   UINT64_MAX
#define BURST_LENGTH_STEP_US               128u
#define SYNC_DELAY_PAYMENT_PERIOD_US       5u
#define SYNC_DELAY_PAYMENTS_IN_RESERVE_MAX 64u /* so many may follow at once on each other */
/* That pass without a look at the clock; odd with the one that looks, or of locks and unlocks in
 * turns it would be always the same. */
#define CALLS_WITHOUT_CLOCK_READ_MAX 30u
#define KERNEL_PROCESSORS_MAX        8192u /* that a kernel may know (NR_CPUS of x86) */
/* A handler does not pause for longer: the program's signals wait for it. What is still unapplied
 * then is paid at the next turn. */
#define HANDLER_PAUSE_MAX_US 50000u

struct causal_tick_lengths_info kymo_causal_rates;
__thread uint32_t kymo_causal_unread;

static uint64_t count_usable_processors(void)
{
	uint64_t set[KERNEL_PROCESSORS_MAX / 64] = {0};
	long size = sys_call3(SYS_sched_getaffinity, 0, sizeof(set), (long)set);
	uint64_t count = 0;

	for (size_t i = 0; size > 0 && i < (size_t)size / sizeof(set[0]); i++)
		count += (uint64_t)__builtin_popcountll(set[i]);
	return count ? count : KERNEL_PROCESSORS_MAX;
}

void causal_set_tick_constants(uint64_t ticks_per_second)
{
	struct causal_tick_lengths_info *rates = &kymo_causal_rates;

	rates->ticks_per_us = ticks_per_second / 1000000u;
	rates->ticks_per_ns_q =
		(uint64_t)(((unsigned __int128)ticks_per_second << 32) / 1000000000u);
	rates->ns_per_tick_q =
		(uint64_t)(((unsigned __int128)1000000000u << 32) / ticks_per_second);
	rates->pause_threshold_ticks = PAUSE_THRESHOLD_US * rates->ticks_per_us;
	rates->epoch_learning_ticks = EPOCH_LEARNING_TIME_US * rates->ticks_per_us;
	rates->repay_time_ticks = UNAPPLIED_DELAY_REPAY_TIME_US * rates->ticks_per_us;
	rates->chance_delay_tolerance_ticks = CHANCE_DELAY_TOLERANCE_US * rates->ticks_per_us;
	rates->running_unseen_max_ticks = UNSAMPLED_RUN_MAX_US * rates->ticks_per_us;
	rates->sleep_slice_max_ticks = SLEEP_SLICE_MAX_US * rates->ticks_per_us;
	rates->spin_max_ticks = SPIN_MAX_US * rates->ticks_per_us;
	rates->burst_step_ticks = BURST_LENGTH_STEP_US * rates->ticks_per_us;
	rates->sync_turn_period_ticks = SYNC_DELAY_PAYMENT_PERIOD_US * rates->ticks_per_us;
	rates->usable_processor_count = count_usable_processors();
}

static uint64_t compute_unapplied_delay(const struct causal_control *control,
					const struct causal_thread *state, uint64_t now)
{
	uint64_t delay = causal_load_relaxed(&state->local_delay),
		 most = causal_compute_global_delay(control, now);

	return most > delay ? most - delay : 0;
}

void causal_adopt_experiment_word(struct causal_control *control, struct causal_thread *state,
				  uint64_t word)
{
	uint64_t old = causal_load_relaxed(&state->word);

	if (old & CAUSAL_ACTIVE && old != ~0ull)
		state->absorbed_before_epoch_ticks += causal_get_absorbed_ticks_in_epoch(state);
	if (old >> CAUSAL_EPOCH_SHIFT != word >> CAUSAL_EPOCH_SHIFT) {
		/* acquire of `word`: its start_delay is there, or that of a later one, which is
		 * taken note of at the next turn */
		uint64_t start = causal_load_relaxed(&control->start_delay);

		if (old & CAUSAL_ACTIVE && old != ~0ull &&
		    start > causal_load_relaxed(&state->local_delay))
			causal_add_to_counter(&control->forgiven,
					      start - causal_load_relaxed(&state->local_delay));
		causal_store_relaxed(&state->start, start);
		causal_store_relaxed(&state->local_delay, start);
		causal_store_relaxed(&state->excess_delay, 0);
	}
	causal_reset_attribution(control, state);
	causal_store_relaxed(&state->word, word);
}

/* ---- pausing ---- */

static bool is_experiment_still_running(const struct causal_control *control, uint64_t word,
					uint64_t now)
{
	return atomic_load_explicit(&control->experiment, memory_order_relaxed) == word &&
	       now < causal_load_relaxed(&control->expires);
}

/* Returns what it was late by, beyond what timers are. */
static uint64_t sleep_ticks_and_get_lateness(uint64_t begin, uint64_t ticks)
{
	uint64_t usual = ticks + kymo_causal_rates.spin_max_ticks, took;
	uint64_t ns = causal_ticks_to_ns(ticks);
	struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u),
				.tv_nsec = (long)(ns % 1000000000u)};

	sys_call4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&time, 0);
	took = ticks_now() - begin;
	return took > usual ? took - usual : 0;
}

/* The end of it awake: what a sleep is late by is more than threads that meet every 100 us can do
 * without. */
static uint64_t spin_until(const struct causal_control *control, uint64_t word, uint64_t until)
{
	uint64_t begin = ticks_now(), now = begin;

	while (now < until && is_experiment_still_running(control, word, now)) {
		__builtin_ia32_pause();
		now = ticks_now();
	}
	return now - begin;
}

/* Returns how long it was; less than asked for where the experiment has ended. *spun is how long
 * this turn has been awake so far: whoever follows a debt that grows as it is paid would be awake
 * for all of it, on a processor that other threads wait for. */
static uint64_t pause_this_thread_for_ticks(struct causal_control *control,
					    struct causal_thread *state, uint64_t ticks,
					    uint64_t *turn_spun)
{
	const struct causal_tick_lengths_info *rates = &kymo_causal_rates;
	uint64_t now = ticks_now(), word = causal_load_relaxed(&state->word), paused = 0, held = 0,
		 spun = 0;
	uint64_t late = 0;

	atomic_store_explicit(&state->attribution.is_pausing, 1, memory_order_relaxed);
	while (paused < ticks && is_experiment_still_running(control, word, now)) {
		uint64_t begin = now, left = ticks - paused;

		if (causal_is_oversubscribed(control, state)) {
			uint64_t some = causal_oversubscription_pause_awake(control, state, left);

			held += some;
			paused += some;
			now = ticks_now();
			continue;
		}
		if (left > rates->sleep_slice_max_ticks)
			left = rates->sleep_slice_max_ticks;
		if (*turn_spun == NEVER_SPIN_TICKS)
			late += sleep_ticks_and_get_lateness(begin, left);
		else if (left > rates->spin_max_ticks)
			late += sleep_ticks_and_get_lateness(begin, left - rates->spin_max_ticks);
		else if (*turn_spun + spun > SPINS_PER_DELAY_PAYMENT_MAX * rates->spin_max_ticks)
			late += sleep_ticks_and_get_lateness(begin, rates->spin_max_ticks);
		else
			spun += spin_until(control, word, begin + left);
		now = ticks_now();
		paused += now - begin;
	}
	*turn_spun += spun;
	if (late)
		causal_add_to_counter(&control->late, late);
	causal_add_to_counter(&state->attribution.spun_ns, causal_ticks_to_ns(spun + held));
	atomic_store_explicit(&state->attribution.is_pausing, 0, memory_order_relaxed);
	causal_oversubscription_add_off_cpu_time(state, paused - held - spun);
	return paused;
}

static bool thread_may_pause(const struct causal_thread *state)
{
	const struct thread *thread = state->thread;

	return !atomic_load_explicit(&thread->exec_pending, memory_order_relaxed) &&
	       !thread->has_own_seccomp_filter && !process_has_seccomp_thread();
}

static void pay_debt_by_excess_and_pause(struct causal_control *control,
					 struct causal_thread *state, uint64_t debt, uint64_t *spun)
{
	uint64_t excess_delay = causal_load_relaxed(&state->excess_delay),
		 saved = excess_delay < debt ? excess_delay : debt, slept, over;

	causal_store_relaxed(&state->excess_delay, excess_delay - saved);
	if (saved)
		atomic_fetch_sub_explicit(&control->overslept, saved, memory_order_relaxed);
	slept = saved < debt ? pause_this_thread_for_ticks(control, state, debt - saved, spun) : 0;
	over = slept > debt - saved ? slept - (debt - saved) : 0;
	causal_store_relaxed(&state->local_delay,
			     causal_load_relaxed(&state->local_delay) + saved + slept - over);
	causal_store_relaxed(&state->excess_delay,
			     causal_load_relaxed(&state->excess_delay) + over);
	if (!slept)
		return;
	causal_add_to_counter(&control->paid, slept);
	causal_add_to_counter(&control->overslept, over);
	causal_add_to_counter(&control->pauses, 1);
}

static uint64_t get_least_payable_delay(uint64_t limit)
{
	return limit ? 2 * kymo_causal_rates.spin_max_ticks
		     : kymo_causal_rates.pause_threshold_ticks;
}

/* Settles the delay of a thread that does not run. With a limit, in the handler of a sample, pauses
 * are asleep, and what is too short for that is left for a turn: the time to the next sample is CPU
 * time, so a pause awake would bring it nearer, where there was something to pay and not elsewhere,
 * and samples would come to the same places again and again. */
static void pause_until_delay_is_paid(struct causal_control *control, struct causal_thread *state,
				      uint64_t now, uint64_t limit)
{
	uint64_t begin = now, word = causal_sync_with_experiment(control, state),
		 least = get_least_payable_delay(limit), debt;
	uint64_t spun = limit ? NEVER_SPIN_TICKS : 0;

	debt = word & CAUSAL_ACTIVE ? compute_unapplied_delay(control, state, now) : 0;
	if (debt >= kymo_causal_rates.pause_threshold_ticks)
		causal_oversubscription_credit_delay(control, state, debt, now);
	while (word & CAUSAL_ACTIVE &&
	       (debt = compute_unapplied_delay(control, state, now)) >= least) {
		if (!is_experiment_still_running(control, word, now) || !thread_may_pause(state))
			break;
		if (limit && now - begin > limit)
			break;
		if (limit && debt > limit)
			debt = limit;
		debt -= limit ? least / 2 : 0;
		pay_debt_by_excess_and_pause(control, state, debt, &spun);
		word = causal_sync_with_experiment(control, state);
		now = ticks_now();
	}
}

/* ---- at the turns of a thread ---- */

static struct causal_control *get_causal_control(void)
{
	return atomic_load_explicit(&kymo_causal, memory_order_relaxed);
}

/* The kind of a burst is where it began: which function of the wrappers called, and from where
 * that was. */
#define BURST_KIND_BY_CALLER_AND_SITE(site)                                                        \
	((CAUSAL_GET_CALL_SITE ^ ((site) << 32 | (site) >> 32)) &                                  \
	 ~CAUSAL_THREAD_START_BURST_KIND_BIT)
#define BURST_KIND_BY_CALLER BURST_KIND_BY_CALLER_AND_SITE(0ull)

/* *ret_now becomes the time after a pause. */
static void pause_running_burst_if_delay_is_due(struct causal_control *control,
						struct causal_thread *state, uint64_t limit,
						uint64_t *ret_now)
{
	uint64_t now = *ret_now;

	if (compute_unapplied_delay(control, state, now) >= get_least_payable_delay(limit)) {
		causal_pause_burst(control, state, now);
		pause_until_delay_is_paid(control, state, now, limit);
		*ret_now = ticks_now();
	}
}

static void pay_delay_and_begin_new_burst(struct causal_control *control,
					  struct causal_thread *state, uint64_t kind, uint64_t now)
{
	if (causal_thread_is_waiting(state) || !causal_try_enter_state(state))
		return;
	kymo_causal_unread = 0;
	causal_sync_with_experiment(control, state);
	causal_end_burst(control, state, now);
	pause_running_burst_if_delay_is_due(control, state, 0, &now);
	causal_begin_burst(control, state, kind, now);
	causal_oversubscription_record_delay_paid(control, state, now);
	causal_leave_state(state);
}

void causal_pay_delay(void)
{
	struct causal_control *control = get_causal_control();
	struct causal_thread *state = control ? causal_find_or_make_current_state() : NULL;

	if (state)
		pay_delay_and_begin_new_burst(control, state, BURST_KIND_BY_CALLER, ticks_now());
}

void causal_pay_delay_at_site(uint64_t site)
{
	struct causal_control *control = get_causal_control();
	struct causal_thread *state = control ? causal_find_or_make_current_state() : NULL;

	if (state)
		pay_delay_and_begin_new_burst(control, state, BURST_KIND_BY_CALLER_AND_SITE(site),
					      ticks_now());
}

static bool sync_delay_payment_is_allowed_now(const struct causal_thread *state, uint64_t now)
{
	uint64_t reserve =
		SYNC_DELAY_PAYMENTS_IN_RESERVE_MAX * kymo_causal_rates.sync_turn_period_ticks;

	return (int64_t)(state->turns_used_until_ticks - now) <= (int64_t)reserve;
}

/* As many calls as, by those of late, take no longer than a turn is worth. */
static void set_calls_until_clock_is_read(struct causal_thread *state, uint64_t now)
{
	uint64_t passed = now - state->clock_read_ticks;
	uint64_t calls = (state->calls_without_clock_count + 1) *
			 kymo_causal_rates.sync_turn_period_ticks / (passed ? passed : 1);

	state->clock_read_ticks = now;
	state->calls_without_clock_count = calls < CALLS_WITHOUT_CLOCK_READ_MAX
						   ? (uint32_t)calls & ~1u
						   : CALLS_WITHOUT_CLOCK_READ_MAX;
	kymo_causal_unread = state->calls_without_clock_count;
}

/* Turns go off an allowance that comes back with time: threads that take a lock now and then begin
 * a burst wherever they do. */
void causal_pay_delay_at_site_within_rate_limit(uint64_t site)
{
	struct causal_control *control = get_causal_control();
	struct causal_thread *state = control ? causal_find_or_make_current_state() : NULL;
	uint64_t now;

	if (!state)
		return;
	now = ticks_now();
	if (sync_delay_payment_is_allowed_now(state, now)) {
		state->turns_used_until_ticks =
			(state->turns_used_until_ticks > now ? state->turns_used_until_ticks
							     : now) +
			kymo_causal_rates.sync_turn_period_ticks;
		pay_delay_and_begin_new_burst(control, state, BURST_KIND_BY_CALLER_AND_SITE(site),
					      now);
	}
	if (!sync_delay_payment_is_allowed_now(state, now))
		set_calls_until_clock_is_read(state, now);
}

/* The session's counts take part in nothing: they are brought up to date when there is time. */
static void add_thread_wait_counts_to_session(struct causal_control *control,
					      struct causal_thread *state)
{
	if (state->waits)
		causal_add_to_counter(&control->waits, state->waits);
	if (state->waits_ended_outside_session)
		causal_add_to_counter(&control->waits_outside, state->waits_ended_outside_session);
	if (state->credited)
		causal_add_to_counter(&control->credited, state->credited);
	state->waits = state->waits_ended_outside_session = state->credited = 0;
}

void causal_pay_delay_of_sampled_thread(struct thread *thread)
{
	struct causal_control *control = get_causal_control();
	struct causal_thread *state = thread->causal_state;
	uint64_t begin = ticks_now(), now = begin, lasted, spun;

	if (!control || !state || !causal_try_enter_state(state))
		return;
	kymo_causal_unread = 0;
	add_thread_wait_counts_to_session(control, state);
	spun = causal_load_relaxed(&state->attribution.spun_ns);
	lasted = state->attribution.begin ? begin - state->attribution.begin : 0;
	causal_sync_with_experiment(control, state);
	if (!causal_thread_is_waiting(state)) {
		pause_running_burst_if_delay_is_due(
			control, state, HANDLER_PAUSE_MAX_US * kymo_causal_rates.ticks_per_us,
			&now);
		causal_continue_burst(control, state, state->attribution.kind, lasted, now);
		causal_oversubscription_record_delay_paid(control, state, now);
	}
	state->attribution.handler_spun_ns +=
		causal_load_relaxed(&state->attribution.spun_ns) - spun;
	causal_leave_state(state);
}

void causal_pay_delay_of_ending_thread(void)
{
	struct causal_control *control = get_causal_control();
	struct causal_thread *state = control ? causal_find_or_make_current_state() : NULL;

	if (!state || !causal_try_enter_state(state))
		return;
	causal_sync_with_experiment(control, state);
	causal_attribute_unsampled_time_of_ending_thread(control, state);
	causal_end_burst(control, state, ticks_now());
	causal_apply_unapplied_delay(control, state);
	pause_until_delay_is_paid(control, state, ticks_now(), 0);
	add_thread_wait_counts_to_session(control, state);
	causal_oversubscription_end_thread(control, state);
	kymo_causal_thread = NULL;
	causal_leave_state(state);
}

/* `wait` may lie elsewhere than on the stack. */
void causal_apply_delay_and_begin_wait(struct causal_wait_state *wait)
{
	uint64_t here = (uint64_t)__builtin_frame_address(0);
	struct causal_control *control = get_causal_control();
	struct causal_thread *state = control ? causal_find_or_make_current_state() : NULL;

	wait->epoch = wait->ticks = 0;
	if (!state || causal_thread_is_waiting(state) || !causal_try_enter_state(state))
		return;
	wait->ticks = ticks_now();
	causal_sync_with_experiment(control, state);
	causal_end_burst(control, state, wait->ticks);
	pause_until_delay_is_paid(control, state, wait->ticks, 0);
	causal_oversubscription_enter_waiting(control, state);
	causal_store_relaxed(&state->waiting, (uint64_t)wait > here ? (uint64_t)wait : here);
	wait->ticks = ticks_now();
	wait->delay = causal_compute_global_delay(control, wait->ticks);
	wait->epoch = causal_load_relaxed(&state->word) >> CAUSAL_EPOCH_SHIFT | 1ull << 63;
	causal_leave_state(state);
}

void causal_allow_pauses_in_wait(void)
{
	struct causal_control *control = get_causal_control();
	struct causal_thread *state = control ? causal_find_or_make_current_state() : NULL;

	if (!state || !causal_try_enter_state(state))
		return;
	causal_store_relaxed(&state->waiting, 0);
	causal_begin_burst(control, state, BURST_KIND_BY_CALLER, ticks_now());
	causal_leave_state(state);
}

/* Since the wait began, or since the epoch did, where that was later; until what the thread waited
 * for was given away. From there to here it was on its way, which takes as long whatever is faster
 * meanwhile. */
static uint64_t compute_global_delay_growth_in_wait(const struct causal_control *control,
						    const struct causal_thread *state,
						    const struct causal_wait_state *wait,
						    uint64_t given, uint64_t now)
{
	bool same = (causal_load_relaxed(&state->word) >> CAUSAL_EPOCH_SHIFT | 1ull << 63) ==
		    wait->epoch;
	uint64_t from = same ? wait->delay : causal_load_relaxed(&state->start),
		 most = causal_compute_global_delay(control, now);

	most = most < given ? most : given;
	return most > from ? most - from : 0;
}

/* given: global_delay at that time; UINT64_MAX: it is not known. */
static void end_wait_with_waker(const struct causal_wait_state *wait, enum causal_waker_kind waker,
				uint64_t kind, uint64_t given)
{
	struct causal_control *control = get_causal_control();
	struct causal_thread *state =
		control && wait->epoch ? causal_find_or_make_current_state() : NULL;
	uint64_t now, grown;

	if (!state || !causal_try_enter_state(state))
		return;
	kymo_causal_unread = 0;
	causal_store_relaxed(&state->waiting, 0);
	now = ticks_now();
	if (waker == CAUSAL_WAKER_SESSION) {
		if (causal_sync_with_experiment(control, state) & CAUSAL_ACTIVE) {
			uint64_t debt = compute_unapplied_delay(control, state, now);

			grown = compute_global_delay_growth_in_wait(control, state, wait, given,
								    now);
			grown = grown < debt ? grown : debt;
			causal_store_relaxed(&state->local_delay,
					     causal_load_relaxed(&state->local_delay) + grown);
			state->credited += grown;
		}
		state->waits++;
	} else {
		state->waits_ended_outside_session++;
	}
	causal_oversubscription_enter_runnable(control, state);
	pause_until_delay_is_paid(control, state, now, 0);
	now = ticks_now();
	causal_begin_burst(control, state, kind, now);
	causal_oversubscription_record_delay_paid(control, state, now);
	causal_leave_state(state);
}

void causal_end_wait_and_apply_delay(const struct causal_wait_state *wait,
				     enum causal_waker_kind waker)
{
	end_wait_with_waker(wait, waker, BURST_KIND_BY_CALLER, UINT64_MAX);
}

void causal_end_wait_at_site(const struct causal_wait_state *wait, enum causal_waker_kind waker,
			     uint64_t site)
{
	end_wait_with_waker(wait, waker, BURST_KIND_BY_CALLER_AND_SITE(site), UINT64_MAX);
}

void causal_end_wait_on_object_at_site(const struct causal_wait_state *wait,
				       const volatile void *what, uint64_t site)
{
	end_wait_with_waker(wait, CAUSAL_WAKER_SESSION, BURST_KIND_BY_CALLER_AND_SITE(site),
			    causal_get_global_delay_at_wakeup(what, wait->ticks));
}
