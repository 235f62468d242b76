/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See allocators.h.
 */
#include "core/allocators.h"

#include <fcntl.h>

#include "core/base/futex.h"
#include "core/base/ticks.h"
#include "core/runtime.h"

#define CHUNK_ALLOCATOR_IDLE_SLEEP_NS 1000000000ull

static void run_chunk_allocator_thread(void *argument)
{
	struct chunk_allocator_thread_state *allocator = argument;
	struct runtime *runtime = allocator->runtime;
	struct chunk_allocators *allocators = &runtime->chunk_allocators;
	uint32_t seen = 0;

	own_thread_announce_registry_block(&allocator->thread, &runtime->threads, allocator->own);
	allocator->fd = spool_reopen_file(&runtime->spool);
	while (allocator->fd >= 0 && !atomic_load(&allocators->stop)) {
		uint32_t wake = atomic_load(&allocators->wake);

		own_thread_apply_credentials_if_new(&allocator->thread);
		if (wake == seen)
			futex_wait(&allocators->wake, seen, CHUNK_ALLOCATOR_IDLE_SLEEP_NS);
		seen = wake;
		spool_refill_ready_chunks(&runtime->spool, allocator->fd);
	}
}

void chunk_allocators_start_if_needed(struct runtime *runtime, uint32_t sampled)
{
	struct chunk_allocators *allocators = &runtime->chunk_allocators;
	uint32_t wanted = (sampled + runtime->options.threads_per_allocator - 1) /
			  runtime->options.threads_per_allocator;

	if (wanted > runtime->background.cpus)
		wanted = runtime->background.cpus;
	/* the background thread is the first */
	while (allocators->count + 1 < wanted && allocators->count < CHUNK_ALLOCATORS_MAX) {
		struct chunk_allocator_thread_state *allocator =
			&allocators->allocator_threads[allocators->count];
		allocator->runtime = runtime;
		allocator->own = threads_allocate_block(&runtime->threads, THREAD_ORIGIN_INTERNAL,
							THREADS_NO_PARENT);
		if (!allocator->own ||
		    own_thread_start_with_registry_block(&allocator->thread, "kymo-alloc",
							 run_chunk_allocator_thread, allocator,
							 &runtime->threads))
			return;
		allocators->count++;
	}
}

void chunk_allocators_wake_all_threads(struct chunk_allocators *allocators)
{
	if (!allocators->count)
		return;
	atomic_fetch_add(&allocators->wake, 1);
	futex_wake_all_waiters(&allocators->wake);
}
