/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See fork_gate.h. The record path does not look at the gate: contexts do not let anybody in
 * (SDK_CONTEXT_CLOSED_BY_FORK), and who is turned away waits here.
 */
#include "libkymo-sdk/fork_gate.h"

#include <pthread.h>

#include "core/base/futex.h"
#include "core/base/ticks.h"
#include "libkymo-sdk/base/barrier.h"
#include "libkymo-sdk/base/thread.h"
#include "libkymo-sdk/context.h"

#define FORK_WAITS_FOR_TOOLS_NS ((uint64_t)1000000000u)
#define TOOLS_WAIT_FOR_FORK_NS  ((uint64_t)1000000000u)
#define GATE_RECHECK_WAIT_NS    20000000u

static pthread_mutex_t forks_one_by_one_mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t gate_is_closed; /* a futex */
/* The thread that forks passes: handlers of the program's that come after ours may call us. */
static __thread bool thread_closed_gate __attribute__((tls_model("initial-exec")));

static bool is_thread_in_tool_callback(void)
{
	const struct sdk_thread_state *thread = sdk_current_thread_state;

	return thread &&
	       atomic_load_explicit(&thread->callback_context_plus_one, memory_order_relaxed);
}

/* A fork within a tool's function does not wait for others, who may wait for it. */
void sdk_fork_gate_close(void)
{
	if (!sdk_contexts_get_known_count() || is_thread_in_tool_callback())
		return;
	pthread_mutex_lock(&forks_one_by_one_mutex);
	thread_closed_gate = true;
	atomic_store(&gate_is_closed, 1);
	sdk_contexts_set_closed_by_fork(true);
	sdk_fence_all_threads();
	sdk_threads_wait_for_tool_callbacks(UINT64_MAX, FORK_WAITS_FOR_TOOLS_NS);
}

static void open_gate(void)
{
	sdk_contexts_set_closed_by_fork(false);
	atomic_store(&gate_is_closed, 0);
	thread_closed_gate = false;
}

void sdk_fork_gate_open_in_parent(void)
{
	if (!thread_closed_gate)
		return;
	open_gate();
	futex_wake_all_waiters(&gate_is_closed);
	pthread_mutex_unlock(&forks_one_by_one_mutex);
}

/* Another thread may have closed it, which does not exist here. */
uint64_t sdk_fork_gate_open_in_child(void)
{
	open_gate();
	pthread_mutex_init(&forks_one_by_one_mutex, NULL);
	return sdk_threads_get_contexts_in_tool_callbacks();
}

void sdk_fork_gate_wait(void)
{
	uint64_t deadline = read_posix_clock_ns(CLOCK_MONOTONIC) + TOOLS_WAIT_FOR_FORK_NS;

	while (!thread_closed_gate && atomic_load(&gate_is_closed) &&
	       read_posix_clock_ns(CLOCK_MONOTONIC) < deadline)
		futex_wait(&gate_is_closed, 1, GATE_RECHECK_WAIT_NS);
}
