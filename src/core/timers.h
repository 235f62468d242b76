/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * POSIX CPU timers of the program's threads. Only a thread of the process can make and set them
 * (timer_create(2)), so the helper says what it wants and the threads do it: each its own, when it
 * next runs our handler. A thread that runs without one is sent our signal.
 */
#ifndef KYMO_CORE_TIMERS_H
#define KYMO_CORE_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/threads.h"

struct runtime;

enum timer_request {
	TIMER_REQUEST_NONE,
	TIMER_REQUEST_START,
	TIMER_REQUEST_STOP,
	TIMER_REQUEST_DELETE
};

/* ---- the helper ---- */

void timers_set_request_of_thread(struct thread *thread, enum timer_request wish);
/* A new period, from the thread's next sample on. */
void timers_request_period_of_thread(struct thread *thread, uint64_t period);
/* Reminds threads that run of what is wanted of them; shortens *wait while something is. */
void timers_remind_threads_of_requests(struct runtime *runtime, uint64_t now, uint64_t *wait);
/* The thread has ended, and has left its timer. */
void timers_queue_deletion_for_ended_thread(struct thread *thread);
/* Has one thread of the program delete all timers; waits for it. */
void timers_make_thread_delete_all(struct runtime *runtime, uint64_t timeout_ns);

/* ---- threads of the program; signal-safe ---- */

/* A new thread makes and starts its own, where that is how samples are taken. */
void timers_start_for_new_thread(struct thread *thread);
/* The calling thread makes and starts its own, if it has none that runs. */
void timers_start_for_thread_if_stopped(struct thread *thread);
/* Does what is wanted of the calling thread. */
void timers_execute_request(struct thread *thread);
/* Ours, but no sample: timers_execute_request(), or all timers of the process are deleted. */
void timers_handle_request_signal(struct thread *thread, uint64_t mark);
/* The thread ends, or leaves what can be profiled. */
void timers_delete_for_thread(struct thread *thread);

/* All timers of the process are deleted. Not for handlers. */
void timers_delete_for_all_threads(struct threads *threads);
/* In a child that was forked: it has none. */
void timers_reset_after_fork(void);

/* How many threads could not make one since the last call. */
uint32_t timers_fetch_refused_count(void);

#endif
