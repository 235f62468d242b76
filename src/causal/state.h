/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a thread has absorbed, earned and banked. A state is written by its own thread and by the
 * handler that interrupts it, by nobody else; the creator fills it in before the thread runs.
 *
 * Earnings become known a sample at a time, but the time they stand for was spent bit by bit.
 * Threads that meet more often than samples are taken would see one large delay in one of their
 * rounds, most of it hidden by the others' waiting, and none in the rest. So a thread's L grows as
 * it runs, at a rate that samples have taught (runner.c), and everybody sees it grow.
 */
#ifndef KYMO_CAUSAL_STATE_H
#define KYMO_CAUSAL_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "causal/causal.h"
#include "common/causal_most.h"
#include "core/ticks.h"

struct causal_time {
	_Atomic uint64_t ns, target_ns;
};

/* What the thread does between two turns of one kind, and how much of that is the target: of late,
 * by the step (struct causal_runner) that it ended in, and by the one that it was in. A turn that
 * is followed by a short task or by a long one is so told apart, if not before its end (stretch.c).
 */
struct causal_stretch {
	_Atomic uint64_t kind, when; /* stretch.c */
	struct causal_time seen[CAUSAL_STEPS][CAUSAL_STEPS];
	/* What follows from that at the speedup of the epoch: what L grows by on average, from what
	 * is known when it has come to a step; and by what more, or less, if it ends in that step.
	 */
	_Atomic uint32_t stale;
	_Atomic uint64_t rates[CAUSAL_STEPS];
	_Atomic int64_t jumps[CAUSAL_STEPS], end_jumps[CAUSAL_STEPS], end_rates[CAUSAL_STEPS];
};

#define CAUSAL_STRETCHES 64u /* power of two */

struct causal_earning {
	uint32_t life; /* of a thread: what the one before learnt here is nothing to this one */
	uint64_t kind; /* of the stretch at hand */
	bool running;
	uint64_t begin;                        /* of the stretch; 0: it has ended */
	struct causal_time seen[CAUSAL_STEPS]; /* in it, by step */
	_Atomic uint64_t ticks;                /* since when `rates` hold */
	_Atomic uint64_t rates[CAUSAL_STEPS];
	_Atomic int64_t jumps[CAUSAL_STEPS];
	uint64_t until;
	struct causal_time usual; /* of late, in all stretches */
	_Atomic int64_t due;      /* earned by samples and not in L; negative: L was ahead */
	uint64_t repay;           /* ticks of running in which what is due becomes L */
	uint64_t sampled;         /* ticks: the last sample */
	uint64_t learning_until;  /* ticks: before, samples teach and are not due */
	uint32_t slot;            /* of control->runners, and 1; 0: none */
	_Atomic uint64_t spun_ns; /* CPU time in pauses since the last sample */
	_Atomic uint32_t spinning;
	uint64_t handler_spun_ns; /* of that, in the handler of that sample */
	int64_t missing_ns;       /* own CPU time that no sample stood for yet */
	/* Last: tens of kilobytes, of which most threads never touch but a page. */
	struct causal_stretch stretches[CAUSAL_STRETCHES];
};

/* Of a thread that sleeps until times (clocks.c). Nanoseconds. */
struct causal_timetable {
	int64_t first, first_now, last; /* times, and what the clock said */
	int64_t ahead;                  /* sum of what times were ahead of the clock */
	uint64_t from;                  /* ticks: what was absorbed in all at the first */
	uint32_t count;
	int clock;
	enum { CAUSAL_TIMES_UNKNOWN, CAUSAL_TIMES_OWN, CAUSAL_TIMES_CLOCKS } kind;
};

/* Of a thread that competes for processors (crowd.h). */
struct causal_crowd {
	uint64_t epoch;         /* in which it is counted; 0: it is not */
	uint64_t part;          /* the last one that it took part in */
	uint64_t settled;       /* ticks: it owed nothing */
	uint64_t ticks, cpu_ns; /* of one moment; cpu_ns 0: it is not known */
	uint64_t away;          /* since then: it waited or paused */
	bool realtime;
};

struct causal_thread {
	struct thread *thread;
	_Atomic uint64_t word;   /* the experiment as of the last turn */
	_Atomic uint64_t start;  /* G when its epoch began */
	_Atomic uint64_t delay;  /* L; while it earns, as of `ticks` */
	_Atomic uint64_t bank;   /* paused more than was owed; goes off the next debt */
	uint64_t absorbed;       /* in all epochs before this one */
	uint64_t clock_absorbed; /* in all when it last read a clock */
	struct causal_timetable timetable;
	struct causal_crowd crowd;
	struct causal_wait spin; /* of a function that is instrumented for that (spins.h) */
	/* Where on the stack the engine was entered; 0: it is not at work. */
	_Atomic uint64_t busy;
	/* Where on the stack the wait is that the thread is in; 0: none. What happens inside, its
	 * end settles. */
	_Atomic uint64_t waiting;
	uint64_t turns; /* ticks: the turns it has had are worth the time until then */
	/* Ticks: when it had none left and calls were let pass unread; how many. */
	uint64_t looked;
	uint32_t let_pass;
	/* For the session's counts; added up a sample at a time. */
	uint64_t waits, waits_outside, credited;
	/* Last, as it is large. Nothing that a forked child goes on with. */
	struct causal_earning earning;
};

/* Of the ticks of this process. */
struct causal_rates {
	uint64_t ticks_per_us;
	uint64_t ticks_per_ns_q, ns_per_tick_q; /* fixed point, 32 bits of fraction */
	uint64_t threshold;                     /* less is not paused for */
	uint64_t learning;                      /* time of a new epoch that is not paid back */
	uint64_t repay;                         /* time in which what is due becomes L */
	uint64_t chance;                        /* so much is due by it, in the target's time */
	uint64_t alone;                         /* so long a thread is believed to run unseen */
	uint64_t slice;                         /* no sleep is longer */
	uint64_t spin;                          /* the end of a pause is waited for awake */
	uint64_t step;                          /* of struct causal_runner */
	uint64_t turn;       /* what is taken often makes no more turns than one in it */
	uint64_t processors; /* that the process may use */
};

extern struct causal_rates kymo_causal_rates;
extern __thread struct causal_thread *kymo_causal_thread;

void causal_rates_set(uint64_t ticks_per_second);

static inline uint64_t causal_ticks(uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * kymo_causal_rates.ticks_per_ns_q >> 32);
}

static inline uint64_t causal_ns(uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * kymo_causal_rates.ns_per_tick_q >> 32);
}

static inline uint64_t causal_get(const _Atomic uint64_t *value)
{
	return atomic_load_explicit(value, memory_order_relaxed);
}

static inline void causal_set(_Atomic uint64_t *value, uint64_t to)
{
	atomic_store_explicit(value, to, memory_order_relaxed);
}

static inline void causal_count(_Atomic uint64_t *counter, uint64_t more)
{
	atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

/* The state of a thread, made where it has none; NULL when memory is short. Signal-safe. */
struct causal_thread *causal_state_of(struct thread *thread);
/* What an earlier process kept of the calling thread goes on in this one. */
void causal_state_forked(void);

/* The calling thread's state; NULL: it is none of the program's, or takes no part. */
static inline struct causal_thread *causal_self(void)
{
	if (__builtin_expect(kymo_causal_thread != NULL, 1) && *kymo_runtime.same_process)
		return kymo_causal_thread;
	if (!kymo_thread || !*kymo_runtime.same_process)
		return NULL;
	kymo_causal_thread = causal_state_of(kymo_thread);
	return kymo_causal_thread;
}

/* ---- turns (delay.c) ---- */

/* Begins to work on the state; false: it was being worked on, by what the caller interrupts, whose
 * part of the stack is further out. What was left by longjmp does not count. */
static inline bool causal_enter(struct causal_thread *state)
{
	uint64_t here = (uint64_t)__builtin_frame_address(0), busy = causal_get(&state->busy);

	if (busy && here < busy)
		return false;
	causal_set(&state->busy, here);
	atomic_signal_fence(memory_order_seq_cst);
	return true;
}

static inline void causal_leave(struct causal_thread *state)
{
	atomic_signal_fence(memory_order_seq_cst);
	causal_set(&state->busy, 0);
}

/* Is the thread in a wait, of whose end it will hear? One that was left by longjmp, to a part of
 * the stack further out, is none any more. */
static inline bool causal_is_waiting(struct causal_thread *state)
{
	uint64_t here = (uint64_t)__builtin_frame_address(0), waiting = causal_get(&state->waiting);

	if (waiting && here > waiting) {
		causal_set(&state->waiting, 0);
		return false;
	}
	return waiting;
}

void causal_change_epoch(struct causal_control *control, struct causal_thread *state,
			 uint64_t word);

/* What the thread has absorbed since the epoch began, ticks (clocks.c). */
uint64_t causal_absorbed_now(const struct causal_thread *state);

/* Takes note of the experiment; on a state that was entered. */
static inline uint64_t causal_turn(struct causal_control *control, struct causal_thread *state)
{
	uint64_t word = atomic_load_explicit(&control->experiment, memory_order_acquire);

	if (__builtin_expect(word != causal_get(&state->word), 0))
		causal_change_epoch(control, state, word);
	return word;
}

/* G when the thing was last given away, if that was since then; else UINT64_MAX (wakes.c). */
uint64_t causal_given(const volatile void *what, uint64_t since);

/* ---- earning (runner.c); on a state that was entered ---- */

/* How much L has grown since it was last brought up to date: less than nothing, where it was too
 * much. */
static inline int64_t causal_grown(const struct causal_thread *state, uint64_t now)
{
	const struct causal_earning *earning = &state->earning;

	if (!earning->running)
		return 0;
	now = now < earning->until ? now : earning->until;
	return causal_growth(earning->rates, earning->jumps, earning->begin, kymo_causal_rates.step,
			     causal_get(&earning->ticks), now);
}

/* L at that moment. */
static inline uint64_t causal_delay_at(const struct causal_thread *state, uint64_t now)
{
	return causal_get(&state->delay) + (uint64_t)causal_grown(state, now);
}

/* The thread stops running for a while: L is what it is. */
void causal_stop_running(struct causal_control *control, struct causal_thread *state, uint64_t now);
/* Its stretch ends. */
void causal_end_running(struct causal_control *control, struct causal_thread *state, uint64_t now);
/* It runs, in a stretch of this kind that begins. */
void causal_run(struct causal_control *control, struct causal_thread *state, uint64_t kind,
		uint64_t now);
/* It runs on, in a stretch that has lasted so long. */
void causal_run_on(struct causal_control *control, struct causal_thread *state, uint64_t kind,
		   uint64_t lasted, uint64_t now);
/* The kind of a thread's first stretch, by where it starts: what one of them learns counts for all,
 * for a thread may live too short to learn anything. */
#define CAUSAL_KIND_START 1ull
/* A sample taught how much of this time was the target; 0 for speedup: none of it counts. */
void causal_learn(struct causal_thread *state, uint64_t cpu_ns, bool hit, uint64_t speedup,
		  uint64_t now);
/* All that is due becomes L at once: the thread ends. */
void causal_earn_all(struct causal_control *control, struct causal_thread *state);
/* Nothing was earned in the experiment that begins. */
void causal_forget_earnings(struct causal_control *control, struct causal_thread *state);

/* ---- samples (earn.c) ---- */

void causal_sampled(struct thread *thread, const struct sampler_stack *stack, uint64_t cpu_ns,
		    uint64_t ticks);

/* The end of the handler of a sample, or of the thread. */
void causal_settle_thread(struct thread *thread);
void causal_settle_end(void);

#endif
