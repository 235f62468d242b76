/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is kept of each thread that tells something: its open calls, memory for work in flight, and
 * whether a tool's function runs on it. A state is never given back to the allocator; a new thread
 * takes over that of one that has ended.
 */
#ifndef KYMO_LIBKYMO_SDK_BASE_THREAD_H
#define KYMO_LIBKYMO_SDK_BASE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libkymo-sdk/base/pool.h"

struct sdk_call_state;
struct sdk_thread_external_id_stacks;
struct ompt_thread_state;
struct marker_range;

struct sdk_thread_state {
	/* Context (number + 1) whose function runs here; 0: none. Finalization waits for it. */
	_Atomic uint32_t callback_context_plus_one;
	bool is_profiler_thread; /* ours or a backend's: nothing that it does is reported */
	bool busy; /* within the record path: what a signal handler tells now is counted as lost */
	uint64_t tid;
	struct sdk_call_state *call;   /* the innermost open one */
	_Atomic bool is_taking_own_id; /* of a source that it owns; id_source.h */
	/* The payload that a tool is shown has no arguments: device_calls.c. */
	const void *payload_without_arguments;
	struct sdk_thread_external_id_stacks
		*external_id_stacks; /* its stacks of external ids; NULL: not looked for */
	void (*external_id_stacks_release)(struct sdk_thread_external_id_stacks
						   *); /* at the thread's end; set with external */
	struct sdk_object_pool fast_dispatch_pool, work_pool, large_work_pool, correlation_pool,
		call_pool, range_pool;
	struct marker_range *range; /* innermost open one of the thread; ranges.c */
	uint32_t unreported_range_depth;
	_Atomic uint64_t work_begun_count, work_ended_count; /* by this thread; work.h */
	struct ompt_thread_state *ompt_state;                /* ompt.c */
	uint32_t number;
	_Atomic bool is_in_use;
	struct sdk_thread_state *next; /* all of them, never changed */
};

extern _Atomic(struct sdk_thread_state *) sdk_threads;
extern __thread struct sdk_thread_state *sdk_current_thread_state
	__attribute__((tls_model("initial-exec")));

struct sdk_thread_state *sdk_thread_create_state(void);

/* The calling thread's; NULL: no memory. */
static inline struct sdk_thread_state *sdk_thread_get_or_create_own_state(void)
{
	struct sdk_thread_state *thread = sdk_current_thread_state;

	return __builtin_expect(thread != NULL, 1) ? thread : sdk_thread_create_state();
}

/* What signal handlers told while the thread was within the record path. */
extern _Atomic uint64_t sdk_signal_handler_lost_event_count;

/* In the child of a fork. */
void sdk_threads_reset_after_fork(void);
/* Those (by bit) whose functions run on other threads. */
uint64_t sdk_threads_get_contexts_in_tool_callbacks(void);
/* Waits until no tool's function of these contexts (by bit) runs on another thread. false: it still
 * does after timeout_ns. */
bool sdk_threads_wait_for_tool_callbacks(uint64_t contexts, uint64_t timeout_ns);

#endif
