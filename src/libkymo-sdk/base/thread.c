/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See thread.h.
 */
#include "libkymo-sdk/base/thread.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/syscalls.h"
#include "core/base/ticks.h"

_Atomic(struct sdk_thread_state *) sdk_threads;
_Atomic uint64_t sdk_signal_handler_lost_event_count;
__thread struct sdk_thread_state *sdk_current_thread_state
	__attribute__((tls_model("initial-exec")));

static pthread_key_t thread_state_key;
static pthread_once_t thread_state_key_once = PTHREAD_ONCE_INIT;

/* The end of a thread. Destructors of other keys may still come here: they get a state again. */
static void handle_thread_end(void *data)
{
	struct sdk_thread_state *thread = data;

	sdk_current_thread_state = NULL;
	if (thread->external_id_stacks)
		thread->external_id_stacks_release(thread->external_id_stacks);
	thread->external_id_stacks = NULL;
	thread->call = NULL;
	atomic_store_explicit(&thread->is_in_use, false, memory_order_release);
}

static void create_thread_state_key(void)
{
	pthread_key_create(&thread_state_key, handle_thread_end);
}

static struct sdk_thread_state *reuse_ended_thread_state(void)
{
	struct sdk_thread_state *thread = atomic_load_explicit(&sdk_threads, memory_order_acquire);

	for (; thread; thread = thread->next) {
		bool used = false;

		if (!atomic_load_explicit(&thread->is_in_use, memory_order_relaxed) &&
		    atomic_compare_exchange_strong_explicit(&thread->is_in_use, &used, true,
							    memory_order_acquire,
							    memory_order_relaxed))
			return thread;
	}
	return NULL;
}

static struct sdk_thread_state *allocate_thread_state(void)
{
	static _Atomic uint32_t numbers;
	struct sdk_thread_state *thread = mmap(NULL, sizeof(*thread), PROT_READ | PROT_WRITE,
					       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sdk_thread_state *first = atomic_load_explicit(&sdk_threads, memory_order_relaxed);

	if (thread == MAP_FAILED)
		return NULL;
	thread->number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed);
	atomic_store_explicit(&thread->is_in_use, true, memory_order_relaxed);
	do
		thread->next = first;
	while (!atomic_compare_exchange_weak_explicit(&sdk_threads, &first, thread,
						      memory_order_release, memory_order_relaxed));
	return thread;
}

struct sdk_thread_state *sdk_thread_create_state(void)
{
	struct sdk_thread_state *thread;

	pthread_once(&thread_state_key_once, create_thread_state_key);
	thread = reuse_ended_thread_state();
	if (!thread)
		thread = allocate_thread_state();
	if (!thread)
		return NULL;
	thread->tid = (uint64_t)sys_call0(SYS_gettid);
	thread->is_profiler_thread = false;
	thread->busy = false;
	sdk_current_thread_state = thread;
	pthread_setspecific(thread_state_key, thread);
	return thread;
}

void sdk_threads_reset_after_fork(void)
{
	struct sdk_thread_state *self = sdk_current_thread_state;
	struct sdk_thread_state *thread = atomic_load_explicit(&sdk_threads, memory_order_relaxed);

	for (; thread; thread = thread->next) {
		if (thread == self)
			continue;
		atomic_store_explicit(&thread->callback_context_plus_one, 0, memory_order_relaxed);
		thread->call = NULL;
		thread->external_id_stacks = NULL;
		atomic_store_explicit(&thread->is_in_use, false, memory_order_relaxed);
	}
	if (self) {
		self->tid = (uint64_t)sys_call0(SYS_gettid);
		self->external_id_stacks = NULL;
	}
}

uint64_t sdk_threads_get_contexts_in_tool_callbacks(void)
{
	struct sdk_thread_state *thread = atomic_load_explicit(&sdk_threads, memory_order_acquire);
	uint64_t contexts = 0;

	for (; thread; thread = thread->next) {
		uint32_t context = atomic_load_explicit(&thread->callback_context_plus_one,
							memory_order_acquire);

		if (thread != sdk_current_thread_state && context)
			contexts |= (uint64_t)1 << (context - 1);
	}
	return contexts;
}

bool sdk_threads_wait_for_tool_callbacks(uint64_t contexts, uint64_t timeout_ns)
{
	uint64_t deadline = read_posix_clock_ns(CLOCK_MONOTONIC) + timeout_ns;
	struct timespec pause = {0, 100000};

	while (sdk_threads_get_contexts_in_tool_callbacks() & contexts) {
		if (read_posix_clock_ns(CLOCK_MONOTONIC) > deadline)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}
