/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See allocators.h.
 */
#include "core/allocators.h"

#include <fcntl.h>

#include "core/futex.h"
#include "core/runtime.h"
#include "core/ticks.h"

#define PAUSE_NS 1000000000ull

static void run(void *argument)
{
	struct allocator *allocator = argument;
	struct runtime *runtime = allocator->runtime;
	struct allocators *allocators = &runtime->allocators;
	uint32_t seen = 0;

	own_thread_known(&allocator->thread, &runtime->threads, allocator->own);
	allocator->fd = spool_reopen(&runtime->spool);
	while (allocator->fd >= 0 && !atomic_load(&allocators->stop)) {
		uint32_t wake = atomic_load(&allocators->wake);

		own_thread_follow_credentials(&allocator->thread);
		if (wake == seen)
			futex_wait(&allocators->wake, seen, PAUSE_NS);
		seen = wake;
		spool_refill(&runtime->spool, allocator->fd);
	}
}

void allocators_grow(struct runtime *runtime, uint32_t sampled)
{
	struct allocators *allocators = &runtime->allocators;
	uint32_t wanted = (sampled + runtime->options.threads_per_allocator - 1) /
			  runtime->options.threads_per_allocator;

	if (wanted > runtime->background.cpus)
		wanted = runtime->background.cpus;
	/* the background thread is the first */
	while (allocators->count + 1 < wanted && allocators->count < ALLOCATORS_MAX) {
		struct allocator *allocator = &allocators->allocator[allocators->count];
		allocator->runtime = runtime;
		allocator->own = threads_allocate(&runtime->threads, THREAD_INTERNAL, THREADS_NONE);
		if (!allocator->own || own_thread_start_known(&allocator->thread, "kymo-alloc", run,
							      allocator, &runtime->threads))
			return;
		allocators->count++;
	}
}

void allocators_wake(struct allocators *allocators)
{
	if (!allocators->count)
		return;
	atomic_fetch_add(&allocators->wake, 1);
	futex_wake(&allocators->wake);
}

uint64_t allocators_cpu_ns(const struct allocators *allocators)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < allocators->count; i++)
		sum += ticks_thread_cpu_ns(allocators->allocator[i].thread.tid);
	return sum;
}
