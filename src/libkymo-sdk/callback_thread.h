/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads on which tools get their buffers. The first is everybody's; tools may ask for more. Two
 * buffers of one thread are never handed over at the same time.
 */
#ifndef KYMO_LIBKYMO_SDK_CALLBACK_THREAD_H
#define KYMO_LIBKYMO_SDK_CALLBACK_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sdk_buffer;

struct sdk_callback_thread {
	uint64_t number;
	_Atomic uint32_t state; /* callback_thread.c; a futex */
	_Atomic uint32_t work;  /* bumped with every request; a futex */
	_Atomic bool is_sleeping;
	_Atomic bool is_asked_to_end;
	struct sdk_callback_thread *_Atomic waits_for; /* whose buffer a tool flushes here */
};

/* NULL: no such thread. Number 0 always is. */
struct sdk_callback_thread *sdk_callback_thread_find_by_number(uint64_t number);
/* Makes another one and starts it. NULL: no memory, or too many. */
struct sdk_callback_thread *sdk_callback_thread_create(void);
/* Starts it, where it does not run yet. false: it cannot be started. */
bool sdk_callback_thread_start_if_needed(struct sdk_callback_thread *thread);
/* The buffer is to be looked at. May start the thread (in a child of fork). */
void sdk_callback_thread_request_work(struct sdk_callback_thread *thread,
				      struct sdk_buffer *buffer);
/* Where it is not there and none is made (the process ends, in a child of fork; or none could be
 * made), the caller, who waits for it, does what it would. */
void sdk_callback_thread_deliver_here_if_absent(struct sdk_callback_thread *thread);
bool sdk_callback_thread_is_current(const struct sdk_callback_thread *thread);
/* The calling thread is about to wait for `target` (NULL: not any more). false: they would wait for
 * each other. */
bool sdk_callback_thread_record_wait_if_no_cycle(struct sdk_callback_thread *target);
/* Ends all; waits a second at most for each. */
void sdk_callback_thread_end_all(void);
void sdk_callback_threads_reset_after_fork(void);

#endif
