/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See thread.h.
 */
#include "libkymo-sdk/thread.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/syscalls.h"
#include "core/ticks.h"
#include "libkymo-sdk/external.h"

_Atomic(struct sdk_thread *) sdk_threads;
_Atomic uint64_t sdk_thread_lost;
__thread struct sdk_thread *sdk_thread_current __attribute__((tls_model("initial-exec")));

static pthread_key_t thread_key;
static pthread_once_t thread_key_once = PTHREAD_ONCE_INIT;

/* The end of a thread. Destructors of other keys may still come here: they get a state anew. */
static void thread_end(void *data)
{
	struct sdk_thread *thread = data;

	sdk_thread_current = NULL;
	if (thread->external)
		sdk_external_release(thread->external);
	thread->external = NULL;
	thread->call = NULL;
	atomic_store_explicit(&thread->is_used, false, memory_order_release);
}

static void thread_make_key(void)
{
	pthread_key_create(&thread_key, thread_end);
}

static struct sdk_thread *thread_take_over(void)
{
	struct sdk_thread *thread = atomic_load_explicit(&sdk_threads, memory_order_acquire);

	for (; thread; thread = thread->next) {
		bool used = false;

		if (!atomic_load_explicit(&thread->is_used, memory_order_relaxed) &&
		    atomic_compare_exchange_strong_explicit(&thread->is_used, &used, true,
							    memory_order_acquire,
							    memory_order_relaxed))
			return thread;
	}
	return NULL;
}

static struct sdk_thread *thread_allocate(void)
{
	static _Atomic uint32_t numbers;
	struct sdk_thread *thread = mmap(NULL, sizeof(*thread), PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sdk_thread *first = atomic_load_explicit(&sdk_threads, memory_order_relaxed);

	if (thread == MAP_FAILED)
		return NULL;
	thread->number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed);
	atomic_store_explicit(&thread->is_used, true, memory_order_relaxed);
	do
		thread->next = first;
	while (!atomic_compare_exchange_weak_explicit(&sdk_threads, &first, thread,
						      memory_order_release, memory_order_relaxed));
	return thread;
}

struct sdk_thread *sdk_thread_make(void)
{
	struct sdk_thread *thread;

	pthread_once(&thread_key_once, thread_make_key);
	thread = thread_take_over();
	if (!thread)
		thread = thread_allocate();
	if (!thread)
		return NULL;
	thread->tid = (uint64_t)sys_call0(SYS_gettid);
	thread->is_own = false;
	thread->busy = false;
	sdk_thread_current = thread;
	pthread_setspecific(thread_key, thread);
	return thread;
}

void sdk_thread_forked(void)
{
	struct sdk_thread *self = sdk_thread_current;
	struct sdk_thread *thread = atomic_load_explicit(&sdk_threads, memory_order_relaxed);

	for (; thread; thread = thread->next) {
		if (thread == self)
			continue;
		atomic_store_explicit(&thread->in_callback, 0, memory_order_relaxed);
		thread->call = NULL;
		thread->external = NULL;
		atomic_store_explicit(&thread->is_used, false, memory_order_relaxed);
	}
	if (self) {
		self->tid = (uint64_t)sys_call0(SYS_gettid);
		self->external = NULL;
	}
}

static bool thread_in_callback(uint64_t contexts)
{
	struct sdk_thread *thread = atomic_load_explicit(&sdk_threads, memory_order_acquire);

	for (; thread; thread = thread->next) {
		uint32_t context = atomic_load_explicit(&thread->in_callback, memory_order_acquire);

		if (thread != sdk_thread_current && context && (contexts >> (context - 1) & 1))
			return true;
	}
	return false;
}

bool sdk_thread_wait_callbacks(uint64_t contexts, uint64_t timeout_ns)
{
	uint64_t deadline = ticks_clock_ns(CLOCK_MONOTONIC) + timeout_ns;
	struct timespec pause = {0, 100000};

	while (thread_in_callback(contexts)) {
		if (ticks_clock_ns(CLOCK_MONOTONIC) > deadline)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}
