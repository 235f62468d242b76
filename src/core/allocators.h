/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Allocator threads: they keep mapped chunks ready and take full ones back
 * (spool_refill_ready_chunks). The background thread is the first; a further one is made for every
 * SAMPLING_ALLOCATOR_SIZE sampled threads, up to the number of CPUs, beyond which more of them only
 * compete. Writers wake all that sleep; whoever is first does the work.
 */
#ifndef KYMO_CORE_ALLOCATORS_H
#define KYMO_CORE_ALLOCATORS_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/own_thread.h"
#include "core/threads.h"

#define CHUNK_ALLOCATORS_MAX 16

struct runtime;

struct chunk_allocator_thread_state {
	struct own_thread thread;
	struct thread *own; /* its registry entry */
	struct runtime *runtime;
	int fd; /* the spool file in its own descriptor table */
};

struct chunk_allocators {
	_Atomic uint32_t wake; /* futex word: counts requests */
	_Atomic uint32_t stop;
	uint32_t count;
	struct chunk_allocator_thread_state allocator_threads[CHUNK_ALLOCATORS_MAX];
};

/* Background thread: makes as many as `sampled` threads ask for. */
void chunk_allocators_start_if_needed(struct runtime *runtime, uint32_t sampled);
/* Anywhere: chunks are running low. */
void chunk_allocators_wake_all_threads(struct chunk_allocators *allocators);

#endif
