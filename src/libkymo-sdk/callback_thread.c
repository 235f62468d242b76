/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See callback_thread.h.
 */
#include "libkymo-sdk/callback_thread.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "core/futex.h"
#include "core/ticks.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/state.h"

#define THREADS_MAX     256
#define THREAD_LOOK_NS  ((uint64_t)3600 * 1000000000u)
#define THREAD_PAUSE_NS 10000000u
#define THREAD_END_NS   ((uint64_t)1000000000u)

enum { THREAD_ABSENT, THREAD_STARTING, THREAD_RUNS, THREAD_FAILED };

static struct sdk_callback_thread threads[THREADS_MAX];
static _Atomic uint64_t thread_count = 1; /* the first one always is */
static __thread struct sdk_callback_thread *thread_current;
static __thread bool thread_is_creating; /* tools are told of it here, and may flush */

struct sdk_callback_thread *sdk_callback_thread_find(uint64_t number)
{
	uint64_t count = atomic_load_explicit(&thread_count, memory_order_acquire);

	return number < count && number < THREADS_MAX ? &threads[number] : NULL;
}

static bool thread_round(struct sdk_callback_thread *thread)
{
	bool any = false;

	for (uint32_t i = 0; i < sdk_buffer_count(); i++) {
		struct sdk_buffer *buffer = sdk_buffer_at(i);

		if (atomic_load_explicit(&buffer->thread, memory_order_acquire) == thread &&
		    atomic_load_explicit(&buffer->wanted, memory_order_acquire)) {
			sdk_buffer_empty(buffer);
			any = true;
		}
	}
	return any;
}

static void *thread_main(void *data)
{
	struct sdk_callback_thread *thread = data;

	thread_current = thread;
	sdk_thread_is_own();
	pthread_setname_np(pthread_self(), "kymo-tools");
	atomic_store_explicit(&thread->state, THREAD_RUNS, memory_order_release);
	futex_wake(&thread->state);
	for (;;) {
		uint32_t work = atomic_load(&thread->work);

		if (thread_round(thread))
			continue;
		if (atomic_load_explicit(&thread->is_to_end, memory_order_acquire))
			break;
		atomic_store(&thread->sleeps, true);
		futex_wait(&thread->work, work, THREAD_LOOK_NS);
		atomic_store(&thread->sleeps, false);
	}
	atomic_store_explicit(&thread->state, THREAD_ABSENT, memory_order_release);
	futex_wake(&thread->state);
	return NULL;
}

/* Signals of the program are handled by its own threads. */
static bool thread_create(struct sdk_callback_thread *thread)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t made;
	int error;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&made, &attributes, thread_main, thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return !error;
}

bool sdk_callback_thread_start(struct sdk_callback_thread *thread)
{
	uint32_t state = THREAD_ABSENT;

	if (atomic_compare_exchange_strong(&thread->state, &state, THREAD_STARTING)) {
		bool made, outer = thread_is_creating;

		atomic_store(&thread->is_to_end, false);
		thread_is_creating = true;
		sdk_thread_creating(ROCPROFILER_LIBRARY);
		made = thread_create(thread);
		sdk_thread_created(ROCPROFILER_LIBRARY);
		thread_is_creating = outer;
		if (!made)
			atomic_store(&thread->state, THREAD_FAILED);
	}
	for (;;) {
		state = atomic_load_explicit(&thread->state, memory_order_acquire);
		if (state != THREAD_STARTING)
			return state == THREAD_RUNS;
		futex_wait(&thread->state, state, THREAD_PAUSE_NS);
	}
}

struct sdk_callback_thread *sdk_callback_thread_make(void)
{
	uint64_t number = atomic_load(&thread_count);

	do {
		if (number >= THREADS_MAX)
			return NULL;
	} while (!atomic_compare_exchange_weak(&thread_count, &number, number + 1));
	threads[number].number = number;
	return sdk_callback_thread_start(&threads[number]) ? &threads[number] : NULL;
}

void sdk_callback_thread_request(struct sdk_callback_thread *thread, struct sdk_buffer *buffer)
{
	(void)buffer;
	atomic_fetch_add(&thread->work, 1);
	if (atomic_load(&thread->sleeps))
		futex_wake(&thread->work);
	else if (atomic_load_explicit(&thread->state, memory_order_acquire) == THREAD_ABSENT &&
		 !sdk_fini_status())
		sdk_callback_thread_start(thread);
}

void sdk_callback_thread_stand_in(struct sdk_callback_thread *thread)
{
	uint32_t state = atomic_load(&thread->state), before = state;

	if (thread_current != NULL ||
	    (state != THREAD_FAILED && (state != THREAD_ABSENT || !sdk_fini_status())) ||
	    !atomic_compare_exchange_strong(&thread->state, &state, THREAD_RUNS))
		return;
	thread_current = thread;
	thread_round(thread);
	thread_current = NULL;
	atomic_store_explicit(&thread->state, before, memory_order_release);
	futex_wake(&thread->state);
}

bool sdk_callback_thread_is_current(const struct sdk_callback_thread *thread)
{
	return thread == thread_current;
}

bool sdk_callback_thread_waits(struct sdk_callback_thread *target)
{
	struct sdk_callback_thread *next = target;

	if (target && thread_is_creating && atomic_load(&target->state) == THREAD_STARTING)
		return false;
	if (!thread_current)
		return true;
	atomic_store(&thread_current->waits_for, target);
	for (unsigned i = 0; next && target && i < THREADS_MAX; i++) {
		next = atomic_load(&next->waits_for);
		if (next == thread_current) {
			atomic_store(&thread_current->waits_for, NULL);
			return false;
		}
	}
	return true;
}

static void thread_end(struct sdk_callback_thread *thread, uint64_t deadline)
{
	atomic_store(&thread->is_to_end, true);
	atomic_fetch_add(&thread->work, 1);
	futex_wake(&thread->work);
	while (thread != thread_current && ticks_clock_ns(CLOCK_MONOTONIC) < deadline) {
		uint32_t state = atomic_load_explicit(&thread->state, memory_order_acquire);

		if (state != THREAD_RUNS && state != THREAD_STARTING)
			return;
		futex_wait(&thread->state, state, THREAD_PAUSE_NS);
	}
}

void sdk_callback_thread_end_all(void)
{
	uint64_t deadline = ticks_clock_ns(CLOCK_MONOTONIC) + THREAD_END_NS;

	for (uint64_t i = 0; i < atomic_load(&thread_count); i++)
		thread_end(&threads[i], deadline);
}

void sdk_callback_thread_forked(void)
{
	for (uint64_t i = 0; i < atomic_load(&thread_count); i++) {
		atomic_store(&threads[i].state, THREAD_ABSENT);
		atomic_store(&threads[i].sleeps, false);
		atomic_store(&threads[i].waits_for, NULL);
	}
}
