/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Allocator threads: they keep mapped chunks ready and take full ones back (spool_refill). The
 * background thread is the first; a further one is made for every SAMPLING_ALLOCATOR_SIZE sampled
 * threads, up to the number of CPUs, beyond which more of them only compete. Writers wake all that
 * sleep; whoever is first does the work.
 */
#ifndef KYMO_CORE_ALLOCATORS_H
#define KYMO_CORE_ALLOCATORS_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/own_thread.h"
#include "core/threads.h"

#define ALLOCATORS_MAX 16

struct runtime;

struct allocator {
	struct own_thread thread;
	struct thread *own; /* its registry entry */
	struct runtime *runtime;
	int fd; /* the spool file in its own descriptor table */
};

struct allocators {
	_Atomic uint32_t wake; /* futex word: counts requests */
	_Atomic uint32_t stop;
	uint32_t count;
	struct allocator allocator[ALLOCATORS_MAX];
};

/* Background thread: makes as many as `sampled` threads ask for. */
void allocators_grow(struct runtime *runtime, uint32_t sampled);
/* Anywhere: chunks are running low. */
void allocators_wake(struct allocators *allocators);
/* CPU time of all of them. */
uint64_t allocators_cpu_ns(const struct allocators *allocators);

#endif
