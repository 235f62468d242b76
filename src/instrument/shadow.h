/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Shadow stacks: the true return addresses of the instrumented calls that are open on each thread.
 *
 * An entry is found by its *slot*, the stack address where the caller's return address was. While a
 * call is open its slot holds an address of the stub. Entries above `top` have slot 0; an entry
 * below it with slot 0 is being made by the code that a signal handler interrupted. The first entry
 * of every stack is a sentinel with the highest slot there is.
 *
 * Slots fall from entry to entry on one stack. They need not when a thread changes stacks
 * (coroutines, alternate stacks), and entries stay behind when calls are left by longjmp or an
 * exception: whether an entry above the current slot is still open is told by its slot's contents,
 * never guessed from addresses alone.
 *
 * Memory: a node a thread, handed on when a thread ends, never unmapped, since unwinders may walk
 * it at any time. General registers only, no libc; safe in signal handlers.
 */
#ifndef KYMO_INSTRUMENT_SHADOW_H
#define KYMO_INSTRUMENT_SHADOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/spool_writer.h"

#define SHADOW_ENTRIES 65536u /* calls that can be open on one thread */

struct shadow_entry {
	uint64_t return_address;
	uint64_t slot;
	uint32_t id; /* of the process: the arena's id_base + the number in the plan */
	uint32_t flags;
};

enum shadow_flags { SHADOW_REGION = 1 /* its end is region_end()'s */ };

/* What the gate code works with; thread-local, at thread_offset from %fs:0. Offsets are known to
 * gate.S. */
struct calls_thread {
	struct shadow_entry *top;   /* 0: first free one */
	struct shadow_entry *limit; /* 8: the slow way from here on */
	uint64_t *at, *end;         /* 16, 24: the next word; no room from `end` on */
	uint64_t *counts;           /* 32: by function id; NULL: none yet */
	struct shadow_node *node;   /* 40 */
	_Atomic uint32_t busy;      /* 48: in the slow way */
	uint32_t stopped;           /* 52: nothing new is recorded on this thread */
};

struct shadow_node {
	struct shadow_node *next;           /* of all; never changes */
	struct calls_thread *_Atomic calls; /* of the thread that has it; NULL: free */
	struct shadow_entry *entries;       /* SHADOW_ENTRIES and the sentinel */
	struct shadow_entry *end;
	struct shadow_entry *_Atomic left_top; /* while no thread has it: always the first one */
	uint64_t *counts;                      /* PLAN_ID_MAX + 1, or NULL */
	/* the call stream */
	struct spool_chunk *chunk;
	uint64_t chunk_ticks, retry_ticks;
	uint32_t internal_id, tid;
	bool large;
};

extern __thread struct calls_thread kymo_calls;
/* All nodes, newest first. */
extern struct shadow_node *_Atomic kymo_shadow_nodes;

/* The calling thread's node, made at its first call; false: none can be had. */
bool shadow_acquire(void);
/* The thread ends: its node is for the next one. */
void shadow_release(void);
/* The entry of a slot, this thread's first; NULL: there is none. */
struct shadow_entry *shadow_find(uint64_t slot);

#endif
