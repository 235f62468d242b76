/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Causal profiling in the profiled process: virtual speedup of a target by delaying everything
 * else (Curtsinger and Berger, "Coz", SOSP 2015). kymo chooses what and how much (kymo/causal.h);
 * here delays are earned (samples), owed, paid (pauses), and credited to threads that waited for
 * others, and visits of progress points are counted with the virtual time of their thread.
 *
 * The rules. L is a thread's own delay, G the session's:
 *   a sample in the target    L += speedup * CPU time of the sample; G = max(G, L)
 *   at every turn             a thread with L < G pauses for G - L: at samples, before it wakes
 *                             others, before it waits, after a wait that nobody of us ended
 *   a wait ended by us        L += growth of G during the wait: that time was no delay of its own
 *   a new thread              begins with its creator's L, who has paid before
 *   a new epoch               L = G as it was at its start: debts of before are forgiven
 * So virtual time (real time - L) of every thread goes as if the target were faster.
 *
 * Everything here keeps errno, allocates nothing, takes no lock, and may be called from signal
 * handlers. Before causal_start(), and in processes that take no part, nothing happens.
 */
#ifndef KYMO_CAUSAL_CAUSAL_H
#define KYMO_CAUSAL_CAUSAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/runtime.h"
#include "kymo/causal.h"

/* NULL: this process takes no part. */
extern struct causal_control *_Atomic kymo_causal;

static inline bool causal_on(void)
{
	return __builtin_expect(atomic_load_explicit(&kymo_causal, memory_order_relaxed) != NULL,
				0);
}

/* Is there a KYMO_CAUSAL in the environment at all? Decides which wrappers are installed. */
bool causal_wanted(char *const *environment);

/* Maps the control file and takes part. Constructor, after the runtime has started; nothing happens
 * without KYMO_CAUSAL. In forked children the mapping is inherited. */
void causal_start(struct runtime *runtime);

/* The runtime's hooks: rounds ask for maps of new modules; threads begin and end; forks. */
extern const struct runtime_hooks causal_hooks;

/* ---- waiting and waking (wrappers) ---- */

enum causal_waker {
	CAUSAL_WAKER_SESSION, /* a thread of the session: the wait is credited */
	CAUSAL_WAKER_OUTSIDE  /* time, another process, a device: what grew meanwhile is owed */
};

/* On the waiting thread's stack, from one call to the next. */
struct causal_wait {
	uint64_t delay; /* G at the begin */
	uint64_t epoch; /* 0: nothing to credit */
	uint64_t ticks;
};

/* The thread is about to wait: pays what it owes, so that it is not late for those who wait for it
 * afterwards. */
void causal_before_wait(struct causal_wait *wait);
/* The wait that has just begun may run code of the program on this thread (tasks), which pays at
 * its own turns. In other waits nothing is paid until their end, whatever is called inside. */
void causal_wait_runs(void);
/* It has waited; pays what is owed now. */
void causal_after_wait(const struct causal_wait *wait, enum causal_waker waker);
/* The thread is about to do something that may wake others, or to begin or end: pays first. */
void causal_pay(void);

/* What a thread does next shows by where the program called: the same, for wrappers that know.
 * CAUSAL_SITE is that in a function that stands for one of the C library, and in what is inlined
 * there. */
#define CAUSAL_SITE ((uint64_t)(uintptr_t)__builtin_return_address(0))
void causal_after_wait_at(const struct causal_wait *wait, enum causal_waker waker, uint64_t site);
void causal_pay_at(uint64_t site);
/* Has waited for a thing that threads of this process give to each other (causal_give()). */
void causal_after_wait_for(const struct causal_wait *wait, const volatile void *what,
			   uint64_t site);
/* Of locks, which some programs take by the million a second (SQLite: a hundred for a statement):
 * turns would take longer than what is between them, and longest in experiments, which then are
 * slower than what they are compared with. So of many in short time most are left out; what is owed
 * grows by less than a pause is worth meanwhile. Most of those not even read the clock, which takes
 * longer than a free lock: so many may still pass, until the thread waits or is sampled. */
extern __thread uint32_t kymo_causal_unread;
void causal_pay_seldom_at(uint64_t site);

static inline void causal_pay_often_at(uint64_t site)
{
	if (__builtin_expect(kymo_causal_unread != 0, 1))
		kymo_causal_unread--;
	else
		causal_pay_seldom_at(site);
}

/* A deadline of an absolute wait is put off by what the thread has absorbed since it last read the
 * clock: the program's timetable is one of virtual time. In nanoseconds. */
uint64_t causal_lateness_ns(void);
/* The same for a sleep until a time (both in nanoseconds of this clock), which may come from a
 * timetable that knows of no clock. */
uint64_t causal_put_off_ns(int clock, int64_t time, int64_t now);
/* The calling thread has read a clock. */
void causal_clock_was_read(void);

/* The calling thread, which has paid, gives away what somebody waits for. */
void causal_give(const volatile void *what);

/* The calling thread wakes whoever waits for the thing with this hash; was it marked since? */
void causal_mark(uint64_t hash);
bool causal_marked_since(uint64_t hash, uint64_t ticks);

/* ---- threads ---- */

/* On the creator's thread, before the new thread runs; and on the new one. */
void causal_thread_created(struct thread *child);

/* ---- progress points ---- */

/* Index of the point of this name and kind, made where there is none yet; UINT32_MAX: no room
 * (counted). Takes some 100 ns when it is there: keep it. */
uint32_t causal_point(const char *name, enum causal_point_kind kind, enum causal_origin origin);
/* The calling thread visits it. Some 20 ns. */
void causal_visit(uint32_t point);
/* The same by name, for programs that pass names each time: found by the name's address first. */
void causal_visit_named(const char *name, enum causal_point_kind kind, enum causal_origin origin);

/* The calling thread enters an instrumented function: a visit, if it is a point; a wait, if it is
 * one that waits by looking again and again. And leaves it. */
void causal_entered(uint64_t address);
void causal_left(uint64_t address);

/* ---- maps (map.c) ---- */

/* Targets of a code address, innermost first, ended by 0; never NULL. Signal-safe. */
const uint32_t *causal_map_find(uint64_t address);
/* Background thread, every round: asks for maps of modules that are new, takes what was answered.
 * Never waits for the answer. */
void causal_map_round(struct runtime *runtime);
/* Forked child: maps stay as they are. */
void causal_map_forked(void);

#endif
