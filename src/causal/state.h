/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a thread has absorbed, earned and banked. A state is written by its own thread and by the
 * handler that interrupts it, by nobody else; the creator fills it in before the thread runs.
 *
 * Earnings become known a sample at a time, but the time they stand for was spent bit by bit. So a
 * sample's earnings are `pending` first and become delay as the thread runs on, before whatever it
 * does next with other threads. Threads that meet more often than samples are taken would otherwise
 * see one large delay in one of their rounds, most of it hidden by the others' waiting, and none in
 * the rest.
 */
#ifndef KYMO_CAUSAL_STATE_H
#define KYMO_CAUSAL_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "causal/causal.h"
#include "core/ticks.h"

struct causal_thread {
	struct thread *thread;
	_Atomic uint64_t word;    /* the experiment as of the last turn */
	_Atomic uint64_t start;   /* G when its epoch began */
	_Atomic uint64_t delay;   /* L */
	_Atomic uint64_t bank;    /* paused more than was owed; goes off the next debt */
	_Atomic uint64_t pending; /* earned and not in L yet */
	uint64_t mark;            /* up to when the thread's running has released of it */
	uint64_t clock_absorbed;  /* L + bank when it last read a clock */
	/* Where on the stack the engine was entered; 0: it is not at work. */
	_Atomic uint64_t busy;
	/* Where on the stack the wait is that the thread is in; 0: none. What happens inside, its
	 * end settles. */
	_Atomic uint64_t waiting;
	/* For the session's counts; added up a sample at a time. */
	uint64_t waits, waits_outside, credited;
};

/* Of the ticks of this process. */
struct causal_rates {
	uint64_t ticks_per_us;
	uint64_t ticks_per_ns_q, ns_per_tick_q; /* fixed point, 32 bits of fraction */
	uint64_t threshold;                     /* less is not paused for */
	uint64_t release;                       /* running time in which earnings become delay */
	uint64_t slice;                         /* no sleep is longer */
	uint64_t spin;                          /* the end of a pause is waited for awake */
	uint64_t blocked;                       /* a wait of this length was one */
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
void causal_release(struct causal_control *control, struct causal_thread *state, uint64_t now,
		    bool all);

/* Takes note of the experiment, and of what was earned; on a state that was entered. */
static inline uint64_t causal_turn(struct causal_control *control, struct causal_thread *state)
{
	uint64_t word = atomic_load_explicit(&control->experiment, memory_order_acquire);

	if (__builtin_expect(word != causal_get(&state->word), 0))
		causal_change_epoch(control, state, word);
	if (causal_get(&state->pending))
		causal_release(control, state, ticks_now(), false);
	return word;
}

/* Pauses for what is owed. */
void causal_settle(struct causal_control *control, struct causal_thread *state);

/* ---- samples (earn.c) ---- */

void causal_sampled(struct thread *thread, const struct sampler_stack *stack, uint64_t cpu_ns,
		    uint64_t ticks);

/* The end of the handler of a sample, or of the thread. */
void causal_settle_thread(struct thread *thread);
void causal_settle_end(void);

#endif
