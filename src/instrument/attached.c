/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See attached.h.
 */
#include "instrument/attached.h"

#include <stdatomic.h>

#include "common/syscalls.h"
#include "core/base/ticks.h"
#include "core/own_thread.h"
#include "instrument/apply.h"
#include "instrument/state.h"

#define YIELD_TURNS_MAX                1000
#define WAIT_FOR_COLLECTING_TIMEOUT_NS 5000000000ull

static struct own_thread thread_asking_for_plans;
static _Atomic uint32_t plan_asking_process_id; /* the process whose thread is at it; 0: none */

static void ask_and_apply_plans(void *argument)
{
	struct thread *own = argument;

	own_thread_announce_registry_block(&thread_asking_for_plans, kymo_instrument.threads, own);
	/* All threads are stopped for what comes, ours too, and the other one begins with calls
	 * that nothing interrupts: the first perf event on a machine waits for a grace period of
	 * RCU (kernel, account_event() in kernel/events/core.c), 10 ms and more. */
	background_wait_for_stage(kymo_instrument.background, BACKGROUND_STAGE_COLLECTING,
				  WAIT_FOR_COLLECTING_TIMEOUT_NS);
	apply_plans_to_queued_objects();
	atomic_store(&plan_asking_process_id, 0);
}

void attached_start_instrumenting(void)
{
	struct thread *own;

	/* That of an earlier time ends when whom it asks is gone. Its stack is used again. */
	if (atomic_load(&plan_asking_process_id) == kymo_process.pid)
		return;
	for (int i = 0; i < YIELD_TURNS_MAX && !own_thread_is_gone(&thread_asking_for_plans); i++)
		sys_call0(SYS_sched_yield);
	own = threads_allocate_block(kymo_instrument.threads, THREAD_ORIGIN_INTERNAL,
				     THREADS_NO_PARENT);
	if (!own)
		return;
	apply_queue_new_objects();
	atomic_store(&plan_asking_process_id, kymo_process.pid);
	own_thread_request_start(&thread_asking_for_plans, "kymo-plan", ask_and_apply_plans, own,
				 kymo_instrument.threads);
	background_wake(kymo_instrument.background);
}
