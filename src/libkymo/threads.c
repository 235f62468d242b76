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
#include "core/runtime.h"
#include "libkymo/real.h"

/* Stack of a pthread: it ends at the thread control block (pthread_self is its address in glibc)
 * and is as long as the attributes say. */
static void set_bounds(struct thread *thread, uint64_t size)
{
	thread->bounds.high = (uint64_t)pthread_self();
	thread->bounds.low =
		thread->bounds.high > size ? (thread->bounds.high - size + 4095) & ~4095ull : 0;
}

static uint64_t stack_size(const pthread_attr_t *attributes)
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

static void begin(struct thread *thread)
{
	set_bounds(thread, thread->bounds.high);
	runtime_thread_begin(thread);
	threads_came(&kymo_runtime.threads);
}

static void *trampoline(void *argument)
{
	struct thread *thread = argument;
	void *(*routine)(void *) = thread->start_routine;
	void *routine_argument = thread->start_argument;

	begin(thread);
	return routine(routine_argument);
}

static int trampoline_c11(void *argument)
{
	struct thread *thread = argument;
	int (*routine)(void *) = (int (*)(void *))(void *)thread->start_routine;
	void *routine_argument = thread->start_argument;

	begin(thread);
	return routine(routine_argument);
}

static struct thread *prepare(const pthread_attr_t *attributes, void *(*routine)(void *),
			      void *argument)
{
	struct thread *parent, *thread;

	/* A thread in a sandbox of its own has children in the same one: they are left alone. */
	if (!runtime_active() || (kymo_runtime.sealed && (!kymo_thread || kymo_thread->sealed)))
		return NULL;
	parent = runtime_this_thread();
	thread = threads_allocate(&kymo_runtime.threads, THREAD_CREATED,
				  parent ? parent->internal_id : THREADS_NONE);
	if (!thread) { /* found by its tid later, if memory comes back */
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_NO_THREAD_BLOCK);
		return NULL;
	}
	thread->entry = (uint64_t)routine;
	thread->start_routine = routine;
	thread->start_argument = argument;
	thread->wants_blocked = parent && parent->wants_blocked;
	thread->bounds.high = stack_size(attributes); /* until the thread knows its address */
	causal_thread_created(thread);
	threads_come(&kymo_runtime.threads);
	return thread;
}

static void none_came(struct thread *thread)
{
	threads_came(&kymo_runtime.threads);
	threads_discard(&kymo_runtime.threads, thread);
}

EXPORTED int pthread_create(pthread_t *restrict id, const pthread_attr_t *restrict attributes,
			    void *(*routine)(void *), void *restrict argument)
{
	struct thread *thread = prepare(attributes, routine, argument);
	int error;

	if (!thread)
		return REAL(pthread_create)(id, attributes, routine, argument);
	error = REAL(pthread_create)(id, attributes, trampoline, thread);
	if (error)
		none_came(thread);
	return error;
}

EXPORTED int thrd_create(thrd_t *id, thrd_start_t routine, void *argument)
{
	struct thread *thread = prepare(NULL, (void *(*)(void *))(void *)routine, argument);
	int result;

	if (!thread)
		return REAL(thrd_create)(id, routine, argument);
	result = REAL(thrd_create)(id, trampoline_c11, thread);
	if (result != thrd_success)
		none_came(thread);
	return result;
}
