/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Causal profiling in the profiled process: virtual speedup of a target by delaying everything
 * else (Curtsinger and Berger, "Coz", SOSP 2015). kymo chooses what and how much (kymo/causal.h);
 * here samples attribute delays to threads, threads take them by pausing, waits that a thread of
 * the session ended are credited, and visits of progress points are counted with the virtual time
 * of their thread. The terms are explained at the head of kymo/causal.h.
 *
 * The rules:
 *   a sample in the target    local_delay += speedup * CPU time of the sample;
 *                             global_delay = max(global_delay, local_delay)
 *   at every sync point       a thread pauses for global_delay - local_delay, if that is more than
 *                             nothing: at samples, before it wakes others, before it waits, after a
 *                             wait that no thread of the session ended
 *   a wait ended by a waker   local_delay += growth of global_delay during the wait: the waker has
 *   of the session            taken that delay
 *   a new thread              begins with its creator's local_delay, who has paused before
 *   a new epoch               local_delay = global_delay at its start: earlier delays are dropped
 * So virtual time (real time - local_delay) of every thread goes as if the target were faster.
 *
 * Everything here keeps errno, allocates nothing, takes no lock, and may be called from signal
 * handlers. Before causal_join_session_if_requested(), and in processes that take no part, nothing
 * happens.
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

/* Not for a thread in a seccomp filter: what paces and publishes makes system calls. */
static inline bool causal_is_active(void)
{
	return __builtin_expect(atomic_load_explicit(&kymo_causal, memory_order_relaxed) != NULL,
				0) &&
	       !is_calling_thread_in_own_filter();
}

/* Is there a KYMO_CAUSAL in the environment at all? Decides which wrappers are installed. */
bool causal_is_requested_in_environment(char *const *environment);

/* Maps the control file and takes part. Constructor, after the runtime has started; nothing happens
 * without KYMO_CAUSAL. In forked children the mapping is inherited. */
void causal_join_session_if_requested(struct runtime *runtime);

/* The runtime's hooks: rounds ask for maps of new modules; threads begin and end; forks. */
extern const struct runtime_hooks causal_hook_table;

/* ---- waiting and waking (wrappers) ---- */

enum causal_waker_kind {
	CAUSAL_WAKER_SESSION, /* a thread of the session: the wait is credited */
	CAUSAL_WAKER_OUTSIDE /* time, another process, a device: what grew meanwhile is unapplied */
};

/* On the waiting thread's stack, from one call to the next. */
struct causal_wait_state {
	uint64_t delay; /* global_delay at the begin */
	uint64_t epoch; /* 0: nothing to credit */
	uint64_t ticks;
};

/* The thread is about to wait: pays its unapplied delay, so that it is not late for those who wait
 * for it afterwards. */
void causal_apply_delay_and_begin_wait(struct causal_wait_state *wait);
/* The wait that has just begun may run code of the program on this thread (tasks), which pays at
 * its own turns. In other waits nothing is paid until their end, whatever is called inside. */
void causal_allow_pauses_in_wait(void);
/* It has waited; applies the delay that is due now. */
void causal_end_wait_and_apply_delay(const struct causal_wait_state *wait,
				     enum causal_waker_kind waker);
/* The thread is about to do something that may wake others, or to begin or end: pays first. */
void causal_pay_delay(void);

/* What a thread does next shows by where the program called: the same, for wrappers that know.
 * CAUSAL_GET_CALL_SITE is that in a function that stands for one of the C library, and in what is
 * inlined there. */
#define CAUSAL_GET_CALL_SITE ((uint64_t)(uintptr_t)__builtin_return_address(0))
void causal_end_wait_at_site(const struct causal_wait_state *wait, enum causal_waker_kind waker,
			     uint64_t site);
void causal_pay_delay_at_site(uint64_t site);
/* Has waited for a thing that threads of this process give to each other
 * (causal_record_wakeup_in_process()).
 */
void causal_end_wait_on_object_at_site(const struct causal_wait_state *wait,
				       const volatile void *what, uint64_t site);
/* For locks, which some programs take by the million a second (SQLite: a hundred for a statement):
 * turns would take longer than what is between them, and longest in experiments, which then are
 * slower than what they are compared with. So of many in short time most are left out; the
 * unapplied delay grows by less than a pause is worth meanwhile. Most of those not even read the
 * clock, which takes longer than a free lock: so many may still pass, until the thread waits or is
 * sampled. */
extern __thread uint32_t kymo_causal_unread;
void causal_pay_delay_at_site_within_rate_limit(uint64_t site);

static inline void causal_pay_delay_at_lock_if_due(uint64_t site)
{
	if (__builtin_expect(kymo_causal_unread != 0, 1))
		kymo_causal_unread--;
	else
		causal_pay_delay_at_site_within_rate_limit(site);
}

/* A deadline of an absolute wait is put off by what the thread has absorbed since it last read the
 * clock: the program's timetable is one of virtual time. In nanoseconds. */
uint64_t causal_compute_deadline_extension_ns(void);
/* The same for a sleep until a time (both in nanoseconds of this clock), which may come from a
 * timetable that knows of no clock. */
uint64_t causal_get_sleep_until_extension_ns(int clock, int64_t time, int64_t now);
/* The calling thread has read a clock. */
void causal_record_clock_reading(void);

/* The calling thread, which has paid, gives away what somebody waits for. */
void causal_record_wakeup_in_process(const volatile void *what);

/* The calling thread wakes whoever waits for the thing with this hash; was it marked since? */
void causal_publish_wakeup_to_session(uint64_t hash);
bool causal_wakeup_was_published_since(uint64_t hash, uint64_t ticks);

/* ---- threads ---- */

/* On the creator's thread, before the new thread runs; and on the new one. */
void causal_pay_delay_and_init_created_thread(struct thread *child);

/* ---- progress points ---- */

/* Index of the point of this name and kind, made where there is none yet; UINT32_MAX: no room
 * (counted). Takes some 100 ns when it is there: keep it. */
uint32_t causal_find_or_add_point(const char *name, enum causal_point_kind kind,
				  enum causal_origin origin);
/* The calling thread visits it. Some 20 ns. */
void causal_record_visit(uint32_t point);
/* The same by name, for programs that pass names each time: found by the name's address first. */
void causal_record_visit_by_name(const char *name, enum causal_point_kind kind,
				 enum causal_origin origin);

/* The calling thread enters an instrumented function: a visit, if it is a point; a wait, if it is
 * one that waits by looking again and again. And leaves it. */
void causal_handle_function_entry(uint64_t address);
void causal_handle_function_exit(uint64_t address);

/* ---- maps (map.c) ---- */

/* Targets of a code address, innermost first, ended by 0; never NULL. Signal-safe. */
const uint32_t *causal_map_find_targets_of_address(uint64_t address);
/* Around a look-up outside of the signal handler, which holds the view by itself. */
void causal_map_begin_use(void);
void causal_map_end_use(void);
/* Background thread, every round: asks for maps of modules that are new, takes what was answered.
 * Never waits for the answer. */
void causal_map_request_and_publish(struct runtime *runtime);
/* Forked child: maps stay as they are. */
void causal_map_reset_after_fork(void);

#endif
