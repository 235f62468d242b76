/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The thread registry: one block of state a thread, found by tid or through a thread-local pointer.
 *
 * Life of a block: threads_allocate() (in pthread_create's caller, or the background thread that
 * found the thread) → NEW; threads_announce() puts it on the list that the background thread works
 * off: it arms the sampling source and writes the THREAD_START record → LIVE; at the end the thread
 * (or the background thread, when the thread vanished) marks it ENDED and announces it again:
 * THREAD_END record, source closed, block recycled. Blocks never move and their memory is never
 * unmapped, so a late signal finds valid memory whatever happens. There is no maximum.
 *
 * Ids: `internal` counts every thread; `sequent` counts application threads in creation order,
 * threads of kymo or of a runtime it hosts start at THREADS_SEQUENT_INTERNAL.
 */
#ifndef KYMO_CORE_THREADS_H
#define KYMO_CORE_THREADS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/spool_writer.h"
#include "core/unwind.h"

#define THREADS_SEQUENT_INTERNAL (1u << 30)
#define THREADS_NONE             UINT32_MAX
#define THREAD_NAME_SIZE         16 /* TASK_COMM_LEN: prctl(2), PR_SET_NAME */
#define THREAD_COUNTERS          8

enum thread_state { THREAD_FREE, THREAD_NEW, THREAD_LIVE, THREAD_ENDED };
enum thread_announcement { THREAD_NOT_ANNOUNCED, THREAD_ANNOUNCED_NEW, THREAD_ANNOUNCED_END };
enum thread_how { THREAD_MAIN, THREAD_CREATED, THREAD_FOUND, THREAD_INTERNAL };
/* Why a thread is not sampled; set by the thread itself. */
enum thread_excluded { THREAD_EXCLUDED_STOPPED = 1, THREAD_EXCLUDED_UNSELECTED = 2 };
enum thread_source { THREAD_SOURCE_NONE, THREAD_SOURCE_PERF, THREAD_SOURCE_TIMER };

/* Written by the thread itself (in its handler, or with our signal blocked), except where noted. */
struct thread {
	/* Stay readable by anybody while the block is free; `index` comes after them. */
	_Atomic uint32_t state;
	_Atomic uint32_t next; /* block index + 1 in the announce or free list */
	_Atomic uint32_t announcement;
	uint32_t index, tid, internal_id, sequent_id, parent;
	enum thread_how how;
	_Atomic uint32_t walking;    /* its stack is walked outside of the handler: pins the view */
	_Atomic uint32_t in_handler; /* guards against re-entry; also pins the unwind view */
	bool wants_blocked;          /* the program believes that our signal is blocked */
	bool foreign_pending; /* a signal of our number came for the program while it had it blocked
			       */
	_Atomic uint32_t leaving;  /* about to exec, or in a sandbox: its sources are off */
	_Atomic uint32_t arming;   /* the background thread is opening its sources */
	_Atomic uint32_t excluded; /* not 0: no samples of this thread; thread_excluded bits */
	bool sealed; /* in a seccomp filter of its own: no system call of ours in it */
	uint64_t start_ticks, end_ticks, entry;
	char name[THREAD_NAME_SIZE];     /* as last recorded */
	char end_name[THREAD_NAME_SIZE]; /* as the thread had it at its end */
	struct unwind_bounds bounds;
	uint64_t stack_seen;  /* where a sample was taken while the bounds are not known */
	bool stack_looked_up; /* by the background thread, with or without success */
	void *(*start_routine)(void *);
	void *start_argument;

	/* sampling stream */
	struct spool_chunk *chunk;
	uint32_t used;
	bool large_chunks;
	uint64_t chunk_ticks; /* when the chunk was taken */
	uint64_t sample_time, sample_weight, covered_ns, cpu_ns, samples, signals;
	uint64_t metric_time;
	uint64_t metrics[SPOOL_METRIC_COUNT];
	uint32_t previous_count;
	uint64_t *previous, *current; /* max_depth each, swapped after every sample */
	uint64_t handler_ticks, throttle_start, throttle_handler;

	/* background thread only */
	enum thread_source source;
	int perf_fd, overflow_fd, timer;
	bool armed, overflow_armed, started;
	uint64_t period, random;
	uint64_t jitter_samples, jitter_cpu_ns; /* at the last change of the period */
	uint64_t end_cpu_ns;
	int counter_fd[THREAD_COUNTERS];
	void *counter_page[THREAD_COUNTERS];             /* read by the thread's handler */
	_Atomic uint64_t counter_value[THREAD_COUNTERS]; /* as last read; for the handler as well */
	uint64_t counter_samples;                        /* when that was */
	uint64_t armed_cpu_ns,
		collected_ns; /* CPU time at the last arming; while armed, before that */
	/* CPU time when the thread excluded itself, and all of it that passed so (by the thread) */
	uint64_t excluded_cpu_ns, passed_over_ns;
	uint64_t seen; /* scan that last saw it */
	struct thread *live_next, *live_previous;

	void *regions; /* of the room of regions */
	void *causal;  /* of the room of causal profiling */
	struct unwind_scratch scratch;
};

struct threads {
	_Atomic uint64_t free_list, announced; /* tagged indexes */
	_Atomic uint32_t block_count, next_internal, next_sequent, next_own;
	_Atomic uint32_t live, registered;
	_Atomic uint32_t coming; /* being created; they have not run yet */
	_Atomic uint32_t grow_lock;
	_Atomic(struct thread *) *slabs; /* THREADS_SLAB blocks each */
	_Atomic uint32_t *by_tid; /* block index + 1; direct by tid, reserved address space */
	uint32_t max_depth, depth_room;
	uint32_t block_size;
	bool select; /* SELECTED_REGIONS: threads begin outside of them */
};

int threads_init(struct threads *threads, uint32_t max_depth);
/* The depth of stacks from here on, at most what threads_init() was told. */
void threads_limit_depth(struct threads *threads, uint32_t max_depth);
/* In a forked child: forgets all threads; memory is reused. */
void threads_reset(struct threads *threads);
/* Forgets all threads, but blocks stay where they are: some threads still point to them. */
void threads_forget_all(struct threads *threads);
/* What was announced is not to be worked off any more. */
void threads_forget_announced(struct threads *threads);

/* A block with fresh ids, or NULL when memory is short. Not for handlers. */
struct thread *threads_allocate(struct threads *threads, enum thread_how how, uint32_t parent);
/* A thread is about to be created with such a block; it runs, or will not. Between the two nobody
 * else is to take it for a thread that was found. */
void threads_come(struct threads *threads);
void threads_came(struct threads *threads);
/* Gives back a block that no thread came of. */
void threads_discard(struct threads *threads, struct thread *thread);
/* Makes the block findable by tid; called by the thread itself or on its behalf. Returns the block
 * that counts: when the other side was faster that is its block, and the caller discards or adopts.
 */
struct thread *threads_bind(struct threads *threads, struct thread *thread, uint32_t tid);
/* Hands the block to the background thread: a new thread, or one that has ended and whose block is
 * not touched by it any more. A block that is on the list already is not put there twice.
 * Signal-safe. */
void threads_announce(struct threads *threads, struct thread *thread,
		      enum thread_announcement what);
/* Takes all announced blocks, oldest first; NULL when there are none. */
struct thread *threads_take_announced(struct threads *threads);
/* The block after this one in what was taken; *ret_what says why this one was on the list. After
 * the call the block may be announced again at any time. */
struct thread *threads_next_announced(struct threads *threads, struct thread *thread,
				      enum thread_announcement *ret_what);
/* Background thread: block back on the free list. */
void threads_recycle(struct threads *threads, struct thread *thread);
/* Signal-safe; NULL when unknown. */
struct thread *threads_by_tid(struct threads *threads, uint32_t tid);
struct thread *threads_at(struct threads *threads, uint32_t index);

#endif
