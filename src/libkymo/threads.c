/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Wrappers of thread creation: the new thread enters the registry before its first instruction of
 * the program.
 */
#include <pthread.h>
#include <threads.h>

#include "causal/causal.h"
#include "core/background.h"
#include "core/base/ticks.h"
#include "core/runtime.h"
#include "libkymo/dormant.h"
#include "libkymo/real.h"

/* Stack of a pthread: it ends at the thread control block (pthread_self is its address in glibc)
 * and is as long as the attributes say. */
static void set_thread_stack_bounds(struct thread *thread, uint64_t size)
{
	thread->stack_bounds.high = (uint64_t)pthread_self();
	thread->stack_bounds.low = thread->stack_bounds.high > size
					   ? (thread->stack_bounds.high - size + 4095) & ~4095ull
					   : 0;
}

static uint64_t read_thread_stack_size(const pthread_attr_t *attributes)
{
	pthread_attr_t standard;
	size_t size = 0;

	if (attributes) {
		pthread_attr_getstacksize(attributes, &size);
	} else if (!pthread_getattr_default_np(&standard)) {
		pthread_attr_getstacksize(&standard, &size);
		pthread_attr_destroy(&standard);
	}
	return size;
}

static struct threads *const runtime_threads = &kymo_runtime.threads;

static void register_created_thread(struct thread *thread)
{
	set_thread_stack_bounds(thread, thread->stack_bounds.high);
	runtime_register_this_thread(thread);
	threads_note_creation_end(runtime_threads);
}

static void *run_pthread_routine(void *argument)
{
	struct thread *thread = argument;
	void *(*routine)(void *) = thread->start_routine;
	void *routine_argument = thread->start_argument;

	register_created_thread(thread);
	return routine(routine_argument);
}

static int run_c11_routine(void *argument)
{
	struct thread *thread = argument;
	int (*routine)(void *) = (int (*)(void *))(void *)thread->start_routine;
	void *routine_argument = thread->start_argument;

	register_created_thread(thread);
	return routine(routine_argument);
}

static struct thread *prepare_thread_creation(const pthread_attr_t *attributes,
					      void *(*routine)(void *), void *argument)
{
	struct thread *parent, *thread;

	dormant_wake();
	dormant_install_pending_wrappers();
	/* A thread in a sandbox of its own has children in the same one: they are left alone. */
	if (!runtime_is_active() || is_calling_thread_off_limits())
		return NULL;
	parent = runtime_find_this_thread();
	thread = threads_allocate_block(runtime_threads, THREAD_ORIGIN_CREATED,
					parent ? parent->internal_id : THREADS_NO_PARENT);
	if (!thread) { /* found by its tid later, if memory comes back */
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_NO_THREAD_BLOCK);
		return NULL;
	}
	thread->start_ticks = ticks_now();
	thread->entry = (uint64_t)routine;
	thread->start_routine = routine;
	thread->start_argument = argument;
	thread->wants_signal_blocked = parent && parent->wants_signal_blocked;
	thread->stack_bounds.high =
		read_thread_stack_size(attributes); /* until the thread knows its address */
	causal_pay_delay_and_init_created_thread(thread);
	threads_note_creation_begin(runtime_threads);
	return thread;
}

static void discard_uncreated_thread(struct thread *thread)
{
	threads_note_creation_end(runtime_threads);
	threads_free_block(runtime_threads, thread);
}

EXPORTED int pthread_create(pthread_t *restrict id, const pthread_attr_t *restrict attributes,
			    void *(*routine)(void *), void *restrict argument)
{
	struct thread *thread = prepare_thread_creation(attributes, routine, argument);
	int error;

	if (!thread)
		return REAL(pthread_create)(id, attributes, routine, argument);
	error = REAL(pthread_create)(id, attributes, run_pthread_routine, thread);
	if (error)
		discard_uncreated_thread(thread);
	return error;
}

EXPORTED int thrd_create(thrd_t *id, thrd_start_t routine, void *argument)
{
	struct thread *thread =
		prepare_thread_creation(NULL, (void *(*)(void *))(void *)routine, argument);
	int result;

	if (!thread)
		return REAL(thrd_create)(id, routine, argument);
	result = REAL(thrd_create)(id, run_c11_routine, thread);
	if (result != thrd_success)
		discard_uncreated_thread(thread);
	return result;
}
