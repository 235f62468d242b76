/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is kept of each thread that tells something: its open calls, correlation ids in stock,
 * memory for work in flight, and whether a tool's function runs on it. A state is never given back
 * to the allocator; a new thread takes over that of one that has ended.
 */
#ifndef KYMO_LIBKYMO_SDK_THREAD_H
#define KYMO_LIBKYMO_SDK_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libkymo-sdk/pool.h"

struct sdk_call;
struct sdk_external;
struct ompt_thread;
struct range;

struct sdk_thread {
	/* Context (number + 1) whose function runs here; 0: none. Finalization waits for it. */
	_Atomic uint32_t in_callback;
	bool is_own; /* ours or a backend's: nothing that it does is told */
	bool busy; /* within the record path: what a signal handler tells now is counted as lost */
	uint64_t tid;
	struct sdk_call *call;                                 /* the innermost open one */
	uint64_t id_next, id_end, dispatch_next, dispatch_end; /* ids in stock */
	/* The payload that a tool is shown has no arguments: device_calls.c. */
	const void *without_arguments;
	struct sdk_external *external; /* its stacks of external ids; NULL: not looked for */
	struct sdk_pool plain_works, works, large_works, correlations, calls, ranges;
	struct range *range; /* innermost open one of the thread; ranges.c */
	uint32_t untold_ranges;
	_Atomic uint64_t work_begun, work_ended; /* by this thread; work.h */
	struct ompt_thread *ompt;                /* ompt.c */
	uint32_t number;
	_Atomic bool is_used;
	struct sdk_thread *next; /* all of them, never changed */
};

extern _Atomic(struct sdk_thread *) sdk_threads;
extern __thread struct sdk_thread *sdk_thread_current __attribute__((tls_model("initial-exec")));

struct sdk_thread *sdk_thread_make(void);

/* The calling thread's; NULL: no memory. */
static inline struct sdk_thread *sdk_thread_self(void)
{
	struct sdk_thread *thread = sdk_thread_current;

	return __builtin_expect(thread != NULL, 1) ? thread : sdk_thread_make();
}

/* What signal handlers told while the thread was within the record path. */
extern _Atomic uint64_t sdk_thread_lost;

/* In the child of a fork. */
void sdk_thread_forked(void);
/* Waits until no tool's function of these contexts (by bit) runs on another thread. false: it still
 * does after timeout_ns. */
bool sdk_thread_wait_callbacks(uint64_t contexts, uint64_t timeout_ns);

#endif
