/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The delays of a thread. A state is written by its own thread and by the
 * handler that interrupts it alone; the creator fills it in before the thread runs.
 *
 * What is attributed becomes known a sample at a time, but the time they stand for was spent bit by
 * bit. Threads that meet more often than samples are taken would see one large delay in one of
 * their rounds, most of it hidden by the others' waiting, and none in the rest. So a thread's
 * local_delay grows as it runs, at a rate that samples have taught (runner.c), and everybody sees
 * it grow.
 */
#ifndef KYMO_CAUSAL_STATE_H
#define KYMO_CAUSAL_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "causal/causal.h"
#include "common/causal_global_delay.h"
#include "core/base/ticks.h"

struct causal_sample_time_sums {
	_Atomic uint64_t ns, target_ns;
};

/* What the thread does between two turns of one kind, and how much of that is the target: of late,
 * by the step (struct causal_runner) that it ended in, and by the one that it was in. A turn that
 * is followed by a short task or by a long one is so distinguished, if not before its end
 * (burst.c). */
struct causal_burst_statistics {
	_Atomic uint64_t kind, epoch_and_thread_life; /* burst.c */
	struct causal_sample_time_sums seen[CAUSAL_STEPS][CAUSAL_STEPS];
	/* What follows from that at the speedup of the epoch: what local_delay grows by on average,
	 * from what is known when it has come to a step; and by what more, or less, if it ends in
	 * that step.
	 */
	_Atomic uint32_t stale;
	_Atomic uint64_t delay_rates[CAUSAL_STEPS];
	_Atomic int64_t delay_jumps[CAUSAL_STEPS], delay_jumps_at_end[CAUSAL_STEPS],
		delay_rates_at_end[CAUSAL_STEPS];
};

#define CAUSAL_BURST_KIND_SLOT_COUNT 64u /* power of two */

/* Targets of a thread's latest sample, from the innermost one on. */
#define CAUSAL_LATEST_SAMPLE_TARGETS_MAX 24u
struct causal_latest_sample {
	uint32_t innermost; /* in scope; 0: none, or the stack is that of a visit */
	uint32_t count;
	uint32_t ids[CAUSAL_LATEST_SAMPLE_TARGETS_MAX];
};

struct causal_attribution_state {
	uint32_t thread_life_number; /* of a thread: what the one before learnt here is nothing to
					this one */
	uint64_t kind;               /* of the burst at hand */
	bool running;
	uint64_t begin;                                    /* of the burst; 0: it has ended */
	struct causal_sample_time_sums seen[CAUSAL_STEPS]; /* in it, by step */
	_Atomic uint64_t ticks;                            /* since when `rates` hold */
	_Atomic uint64_t delay_rates[CAUSAL_STEPS];
	_Atomic int64_t delay_jumps[CAUSAL_STEPS];
	uint64_t until;
	struct causal_sample_time_sums usual; /* of late, in all bursts */
	_Atomic int64_t
		unapplied_delay;    /* of samples, not in local_delay; negative: that was ahead */
	uint64_t repay_time_ticks;  /* ticks of running in which unapplied_delay becomes local_delay
				     */
	uint64_t last_sample_ticks; /* ticks: the last sample */
	uint64_t learning_until_ticks; /* ticks: before, samples teach and are not due */
	uint32_t slot;                 /* of control->runners, and 1; 0: none */
	_Atomic uint64_t spun_ns;      /* CPU time in pauses since the last sample */
	_Atomic uint32_t is_pausing;
	uint64_t handler_spun_ns; /* of that, in the handler of that sample */
	int64_t unsampled_cpu_ns; /* own CPU time that no sample stood for yet */
	bool has_latest_sample;
	struct causal_latest_sample latest_sample; /* of a created thread */
	/* Last: tens of kilobytes, of which most threads never touch but a page. */
	struct causal_burst_statistics burst_statistics[CAUSAL_BURST_KIND_SLOT_COUNT];
};

/* The times that a thread sleeps until (clocks.c). Nanoseconds. */
struct causal_sleep_timetable {
	int64_t first, clock_at_first_ns, last; /* times, and what the clock said */
	int64_t ahead_sum_ns;                   /* sum of what times were ahead of the clock */
	uint64_t absorbed_at_first_ticks;       /* ticks: what was absorbed in all at the first */
	uint32_t count;
	int clock;
	enum {
		CAUSAL_SLEEP_TIMETABLE_UNKNOWN,
		CAUSAL_SLEEP_TIMETABLE_FIXED,
		CAUSAL_SLEEP_TIMETABLE_FROM_CLOCK
	} kind;
};

/* What is known of a thread that competes for processors (oversubscription.h). */
struct causal_thread_oversubscription_state {
	uint64_t epoch;               /* in which it is counted; 0: it is not */
	uint64_t part;                /* the last one that it took part in */
	uint64_t delay_settled_ticks; /* ticks: no delay was unapplied */
	uint64_t ticks, cpu_ns;       /* of one moment; cpu_ns 0: it is not known */
	uint64_t off_cpu_ticks;       /* since then: it waited or paused */
	bool has_realtime_policy;
};

struct causal_thread {
	struct thread *thread;
	_Atomic uint64_t word;         /* the experiment as of the last turn */
	_Atomic uint64_t start;        /* global_delay when its epoch began */
	_Atomic uint64_t local_delay;  /* while it runs the target, as of `ticks` */
	_Atomic uint64_t excess_delay; /* paused more than asked for; goes off the next pause */
	uint64_t absorbed_before_epoch_ticks;  /* in all epochs before this one */
	uint64_t absorbed_at_clock_read_ticks; /* in all when it last read a clock */
	struct causal_sleep_timetable sleep_timetable;
	struct causal_thread_oversubscription_state oversubscription;
	struct causal_wait_state
		spin_wait; /* of a function that is instrumented for that (spins.h) */
	/* Where on the stack the engine was entered; 0: it is not at work. */
	_Atomic uint64_t busy;
	/* Where on the stack the wait is that the thread is in; 0: none. What happens inside, its
	 * end settles. */
	_Atomic uint64_t waiting;
	uint64_t turns_used_until_ticks; /* ticks: the turns it has had are worth the time until
					    then */
	/* Ticks: when it had none left and calls were let pass unread; how many. */
	uint64_t clock_read_ticks;
	uint32_t calls_without_clock_count;
	/* For the session's counts; added up a sample at a time. */
	uint64_t waits, waits_ended_outside_session, credited;
	/* Last, as it is large. Nothing that a forked child goes on with. */
	struct causal_attribution_state attribution;
};

/* Lengths in ticks of this process. */
struct causal_tick_lengths_info {
	uint64_t ticks_per_us;
	uint64_t ticks_per_ns_q, ns_per_tick_q; /* fixed point, 32 bits of fraction */
	uint64_t pause_threshold_ticks;         /* less is not paused for */
	uint64_t epoch_learning_ticks;          /* time of a new epoch that is not paid back */
	uint64_t repay_time_ticks; /* time in which unapplied_delay becomes local_delay */
	uint64_t chance_delay_tolerance_ticks; /* so much is due by it, in the target's time */
	uint64_t running_unseen_max_ticks;     /* so long a thread is believed to run unseen */
	uint64_t sleep_slice_max_ticks;        /* no sleep is longer */
	uint64_t spin_max_ticks;               /* the end of a pause is waited for awake */
	uint64_t burst_step_ticks;             /* of struct causal_runner */
	uint64_t
		sync_turn_period_ticks; /* what is taken often makes no more turns than one in it */
	uint64_t usable_processor_count; /* that the process may use */
};

extern struct causal_tick_lengths_info kymo_causal_rates;
extern __thread struct causal_thread *kymo_causal_thread;

void causal_set_tick_constants(uint64_t ticks_per_second);

static inline uint64_t causal_ns_to_ticks(uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * kymo_causal_rates.ticks_per_ns_q >> 32);
}

static inline uint64_t causal_ticks_to_ns(uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * kymo_causal_rates.ns_per_tick_q >> 32);
}

static inline uint64_t causal_load_relaxed(const _Atomic uint64_t *value)
{
	return atomic_load_explicit(value, memory_order_relaxed);
}

static inline void causal_store_relaxed(_Atomic uint64_t *value, uint64_t to)
{
	atomic_store_explicit(value, to, memory_order_relaxed);
}

static inline void causal_add_to_counter(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

/* The state of a thread, made where it has none; NULL when memory is short. Signal-safe. */
struct causal_thread *causal_find_or_make_thread_state(struct thread *thread);
/* What an earlier process kept of the calling thread goes on in this one. */
void causal_carry_state_over_fork(void);

/* The calling thread's state; NULL: it is none of the program's, or takes no part. */
static inline struct causal_thread *causal_find_or_make_current_state(void)
{
	if (!thread_pointer_is_usable())
		return NULL;
	if (__builtin_expect(kymo_causal_thread != NULL, 1) && process_is_where_runtime_started())
		return kymo_causal_thread;
	if (!kymo_thread || !process_is_where_runtime_started())
		return NULL;
	kymo_causal_thread = causal_find_or_make_thread_state(kymo_thread);
	return kymo_causal_thread;
}

/* ---- sync points (delay.c) ---- */

/* Begins to work on the state; false: it was being worked on, by what the caller interrupts, whose
 * part of the stack is further out. What was left by longjmp does not count. */
static inline bool causal_try_enter_state(struct causal_thread *state)
{
	uint64_t here = (uint64_t)__builtin_frame_address(0),
		 busy = causal_load_relaxed(&state->busy);

	if (busy && here < busy)
		return false;
	causal_store_relaxed(&state->busy, here);
	atomic_signal_fence(memory_order_seq_cst);
	return true;
}

static inline void causal_leave_state(struct causal_thread *state)
{
	atomic_signal_fence(memory_order_seq_cst);
	causal_store_relaxed(&state->busy, 0);
}

/* Is the thread in a wait, of whose end it will hear? One that was left by longjmp, to a part of
 * the stack further out, is none any more. */
static inline bool causal_thread_is_waiting(struct causal_thread *state)
{
	uint64_t here = (uint64_t)__builtin_frame_address(0),
		 waiting = causal_load_relaxed(&state->waiting);

	if (waiting && here > waiting) {
		causal_store_relaxed(&state->waiting, 0);
		return false;
	}
	return waiting;
}

void causal_adopt_experiment_word(struct causal_control *control, struct causal_thread *state,
				  uint64_t word);

/* What the thread has absorbed since the epoch began, ticks (clocks.c). */
uint64_t causal_get_absorbed_ticks_in_epoch(const struct causal_thread *state);

/* Takes note of the experiment; on a state that was entered. */
static inline uint64_t causal_sync_with_experiment(struct causal_control *control,
						   struct causal_thread *state)
{
	uint64_t word = atomic_load_explicit(&control->experiment, memory_order_acquire);

	if (__builtin_expect(word != causal_load_relaxed(&state->word), 0))
		causal_adopt_experiment_word(control, state, word);
	return word;
}

/* global_delay when the thing was last given away, if that was since then; else UINT64_MAX
 * (wakeups.c). */
uint64_t causal_get_global_delay_at_wakeup(const volatile void *what, uint64_t since);

/* ---- attribution (runner.c); on a state that was entered ---- */

/* How much local_delay has grown since it was last brought up to date: less than nothing, where it
 * was too much. */
static inline int64_t causal_compute_thread_delay_growth(const struct causal_thread *state,
							 uint64_t now)
{
	const struct causal_attribution_state *attribution = &state->attribution;

	if (!attribution->running)
		return 0;
	now = now < attribution->until ? now : attribution->until;
	return causal_compute_local_delay_growth(
		attribution->delay_rates, attribution->delay_jumps, attribution->begin,
		kymo_causal_rates.burst_step_ticks, causal_load_relaxed(&attribution->ticks), now);
}

/* local_delay at that moment. */
static inline uint64_t causal_compute_local_delay_at(const struct causal_thread *state,
						     uint64_t now)
{
	return causal_load_relaxed(&state->local_delay) +
	       (uint64_t)causal_compute_thread_delay_growth(state, now);
}

/* The thread stops running for a while: local_delay is what it is. */
void causal_pause_burst(struct causal_control *control, struct causal_thread *state, uint64_t now);
/* Its burst ends. */
void causal_end_burst(struct causal_control *control, struct causal_thread *state, uint64_t now);
/* It runs, in a burst of this kind that begins. */
void causal_begin_burst(struct causal_control *control, struct causal_thread *state, uint64_t kind,
			uint64_t now);
/* It runs on, in a burst that has lasted so long. */
void causal_continue_burst(struct causal_control *control, struct causal_thread *state,
			   uint64_t kind, uint64_t lasted, uint64_t now);
/* The kind of a thread's first burst, by where it starts: what one of them learns counts for all,
 * for a thread may live too short to learn anything. */
#define CAUSAL_THREAD_START_BURST_KIND_BIT 1ull
/* A sample taught how much of this time was the target; 0 for speedup: none of it counts. */
void causal_add_sample_to_attribution(struct causal_thread *state, uint64_t cpu_ns, bool hit,
				      uint64_t speedup, uint64_t now);
/* The thread ends, and so much of its time was the target, of which no sample tells. */
void causal_add_unsampled_time_to_attribution(struct causal_thread *state, uint64_t cpu_ns,
					      uint64_t speedup, uint64_t now);
/* All unapplied_delay becomes local_delay at once: the thread ends. */
void causal_apply_unapplied_delay(struct causal_control *control, struct causal_thread *state);
/* No local delay was gained in the experiment that begins. */
void causal_reset_attribution(struct causal_control *control, struct causal_thread *state);

/* ---- samples (attribute.c) ---- */

void causal_attribute_sample(struct thread *thread, const struct sampled_stack *stack,
			     uint64_t cpu_ns, uint64_t ticks);

/* The calling thread ends: the CPU time that no sample stands for is what its latest sample was,
 * or, without one, the latest sample of a thread that started in the same function. Threads of a
 * millisecond or two, of which many are never sampled, so have their time. On a state that was
 * entered. */
void causal_attribute_unsampled_time_of_ending_thread(struct causal_control *control,
						      struct causal_thread *state);

/* The end of the handler of a sample, or of the thread. */
void causal_pay_delay_of_sampled_thread(struct thread *thread);
void causal_pay_delay_of_ending_thread(void);

#endif
