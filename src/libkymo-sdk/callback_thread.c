/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See callback_thread.h.
 */
#include "libkymo-sdk/callback_thread.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "core/base/futex.h"
#include "core/base/ticks.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/emit.h"

#define CALLBACK_THREADS_MAX                  256
#define CALLBACK_THREAD_IDLE_WAIT_NS          ((uint64_t)3600 * 1000000000u)
#define CALLBACK_THREAD_STATE_RECHECK_WAIT_NS 10000000u
#define CALLBACK_THREADS_END_TIMEOUT_NS       ((uint64_t)1000000000u)

enum {
	CALLBACK_THREAD_ABSENT,
	CALLBACK_THREAD_STARTING,
	CALLBACK_THREAD_RUNNING,
	CALLBACK_THREAD_FAILED
};

static struct sdk_callback_thread callback_threads[CALLBACK_THREADS_MAX];
static _Atomic uint64_t callback_thread_count = 1; /* the first one always is */
static __thread struct sdk_callback_thread *current_callback_thread;
static __thread bool
	creating_callback_thread_flag; /* tools are notified of it here, and may flush */

struct sdk_callback_thread *sdk_callback_thread_find_by_number(uint64_t number)
{
	uint64_t count = atomic_load_explicit(&callback_thread_count, memory_order_acquire);

	return number < count && number < CALLBACK_THREADS_MAX ? &callback_threads[number] : NULL;
}

static bool deliver_buffers_of_callback_thread(struct sdk_callback_thread *thread)
{
	bool any = false;

	for (uint32_t i = 0; i < sdk_buffers_get_count(); i++) {
		struct sdk_buffer *buffer = sdk_buffer_get_by_number(i);

		if (atomic_load_explicit(&buffer->thread, memory_order_acquire) == thread &&
		    atomic_load_explicit(&buffer->wanted, memory_order_acquire)) {
			sdk_buffer_deliver_records(buffer);
			any = true;
		}
	}
	return any;
}

static void *run_callback_thread(void *data)
{
	struct sdk_callback_thread *thread = data;

	current_callback_thread = thread;
	sdk_thread_exclude_own_from_reports();
	pthread_setname_np(pthread_self(), "kymo-tools");
	atomic_store_explicit(&thread->state, CALLBACK_THREAD_RUNNING, memory_order_release);
	futex_wake_all_waiters(&thread->state);
	for (;;) {
		uint32_t work = atomic_load(&thread->work);

		if (deliver_buffers_of_callback_thread(thread))
			continue;
		if (atomic_load_explicit(&thread->is_asked_to_end, memory_order_acquire))
			break;
		atomic_store(&thread->is_sleeping, true);
		futex_wait(&thread->work, work, CALLBACK_THREAD_IDLE_WAIT_NS);
		atomic_store(&thread->is_sleeping, false);
	}
	atomic_store_explicit(&thread->state, CALLBACK_THREAD_ABSENT, memory_order_release);
	futex_wake_all_waiters(&thread->state);
	return NULL;
}

/* Signals of the program are handled by its own threads. */
static bool create_callback_pthread(struct sdk_callback_thread *thread)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t made;
	int error;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&made, &attributes, run_callback_thread, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return !error;
}

bool sdk_callback_thread_start_if_needed(struct sdk_callback_thread *thread)
{
	uint32_t state = CALLBACK_THREAD_ABSENT;

	if (atomic_compare_exchange_strong(&thread->state, &state, CALLBACK_THREAD_STARTING)) {
		bool made, outer = creating_callback_thread_flag;

		atomic_store(&thread->is_asked_to_end, false);
		creating_callback_thread_flag = true;
		sdk_thread_notify_creating(ROCPROFILER_LIBRARY);
		made = create_callback_pthread(thread);
		sdk_thread_notify_created(ROCPROFILER_LIBRARY);
		creating_callback_thread_flag = outer;
		if (!made)
			atomic_store(&thread->state, CALLBACK_THREAD_FAILED);
	}
	for (;;) {
		state = atomic_load_explicit(&thread->state, memory_order_acquire);
		if (state != CALLBACK_THREAD_STARTING)
			return state == CALLBACK_THREAD_RUNNING;
		futex_wait(&thread->state, state, CALLBACK_THREAD_STATE_RECHECK_WAIT_NS);
	}
}

struct sdk_callback_thread *sdk_callback_thread_create(void)
{
	uint64_t number = atomic_load(&callback_thread_count);

	do {
		if (number >= CALLBACK_THREADS_MAX)
			return NULL;
	} while (!atomic_compare_exchange_weak(&callback_thread_count, &number, number + 1));
	callback_threads[number].number = number;
	return sdk_callback_thread_start_if_needed(&callback_threads[number])
		       ? &callback_threads[number]
		       : NULL;
}

void sdk_callback_thread_request_work(struct sdk_callback_thread *thread, struct sdk_buffer *buffer)
{
	(void)buffer;
	atomic_fetch_add(&thread->work, 1);
	if (atomic_load(&thread->is_sleeping))
		futex_wake_all_waiters(&thread->work);
	else if (atomic_load_explicit(&thread->state, memory_order_acquire) ==
			 CALLBACK_THREAD_ABSENT &&
		 !sdk_get_fini_status())
		sdk_callback_thread_start_if_needed(thread);
}

void sdk_callback_thread_deliver_here_if_absent(struct sdk_callback_thread *thread)
{
	uint32_t state = atomic_load(&thread->state), before = state;

	if (current_callback_thread != NULL ||
	    (state != CALLBACK_THREAD_FAILED &&
	     (state != CALLBACK_THREAD_ABSENT || !sdk_get_fini_status())) ||
	    !atomic_compare_exchange_strong(&thread->state, &state, CALLBACK_THREAD_RUNNING))
		return;
	current_callback_thread = thread;
	deliver_buffers_of_callback_thread(thread);
	current_callback_thread = NULL;
	atomic_store_explicit(&thread->state, before, memory_order_release);
	futex_wake_all_waiters(&thread->state);
}

bool sdk_callback_thread_is_current(const struct sdk_callback_thread *thread)
{
	return thread == current_callback_thread;
}

bool sdk_callback_thread_record_wait_if_no_cycle(struct sdk_callback_thread *target)
{
	struct sdk_callback_thread *next = target;

	if (target && creating_callback_thread_flag &&
	    atomic_load(&target->state) == CALLBACK_THREAD_STARTING)
		return false;
	if (!current_callback_thread)
		return true;
	atomic_store(&current_callback_thread->waits_for, target);
	for (unsigned i = 0; next && target && i < CALLBACK_THREADS_MAX; i++) {
		next = atomic_load(&next->waits_for);
		if (next == current_callback_thread) {
			atomic_store(&current_callback_thread->waits_for, NULL);
			return false;
		}
	}
	return true;
}

static void end_callback_thread(struct sdk_callback_thread *thread, uint64_t deadline)
{
	atomic_store(&thread->is_asked_to_end, true);
	atomic_fetch_add(&thread->work, 1);
	futex_wake_all_waiters(&thread->work);
	while (thread != current_callback_thread &&
	       read_posix_clock_ns(CLOCK_MONOTONIC) < deadline) {
		uint32_t state = atomic_load_explicit(&thread->state, memory_order_acquire);

		if (state != CALLBACK_THREAD_RUNNING && state != CALLBACK_THREAD_STARTING)
			return;
		futex_wait(&thread->state, state, CALLBACK_THREAD_STATE_RECHECK_WAIT_NS);
	}
}

void sdk_callback_thread_end_all(void)
{
	uint64_t deadline = read_posix_clock_ns(CLOCK_MONOTONIC) + CALLBACK_THREADS_END_TIMEOUT_NS;

	for (uint64_t i = 0; i < atomic_load(&callback_thread_count); i++)
		end_callback_thread(&callback_threads[i], deadline);
}

void sdk_callback_threads_reset_after_fork(void)
{
	for (uint64_t i = 0; i < atomic_load(&callback_thread_count); i++) {
		atomic_store(&callback_threads[i].state, CALLBACK_THREAD_ABSENT);
		atomic_store(&callback_threads[i].is_sleeping, false);
		atomic_store(&callback_threads[i].waits_for, NULL);
	}
}
