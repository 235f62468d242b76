/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See attached.h.
 */
#include "instrument/attached.h"

#include <stdatomic.h>

#include "common/syscalls.h"
#include "core/own_thread.h"
#include "core/runtime.h"
#include "core/ticks.h"
#include "instrument/apply.h"

#define TURNS_TO_END 1000
#define COLLECT_NS   5000000000ull

static struct own_thread asking;
static _Atomic uint32_t asked_by; /* the process whose thread is at it; 0: none */

static void ask(void *argument)
{
	struct thread *own = argument;

	own_thread_known(&asking, &kymo_runtime.threads, own);
	/* All threads are stopped for what comes, ours too, and the other one begins with calls
	 * that nothing interrupts: the first perf event on a machine waits for a grace period of
	 * RCU (kernel, account_event() in kernel/events/core.c), 10 ms and more. */
	background_wait(&kymo_runtime.background, BACKGROUND_COLLECTING, COLLECT_NS);
	apply_noted(&kymo_runtime);
	atomic_store(&asked_by, 0);
}

void attached_begin(struct runtime *runtime)
{
	struct thread *own;

	/* That of an earlier time ends when whom it asks is gone. Its stack is used again. */
	if (atomic_load(&asked_by) == runtime->pid)
		return;
	for (int i = 0; i < TURNS_TO_END && !own_thread_is_gone(&asking); i++)
		sys_call0(SYS_sched_yield);
	own = threads_allocate(&runtime->threads, THREAD_INTERNAL, THREADS_NONE);
	if (!own)
		return;
	apply_note(runtime);
	atomic_store(&asked_by, runtime->pid);
	if (own_thread_start_known(&asking, "kymo-plan", ask, own, &runtime->threads))
		atomic_store(&asked_by, 0);
}
