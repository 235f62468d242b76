/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The stack of a call that allocates, by the sampler's unwinder outside of its handler.
 *
 * The view of the modules is pinned by the thread's `walking`, as the handler's is by `in_handler`.
 * What the unwinder remembers between walks is apart from the handler's, which may come at any
 * time.
 */
#include <sys/mman.h>

#include "common/syscalls.h"
#include "core/runtime.h"
#include "wrappers/memory_private.h"

#define SCRATCHES (1u << 20) /* by index of a thread's block; others walk without */

static _Atomic(struct unwind_scratch *) *scratches;

static struct unwind_scratch *scratch_of(const struct thread *thread)
{
	struct unwind_scratch *scratch;

	if (!scratches) { /* two threads may make it at once: one mapping is lost */
		void *memory =
			sys_mmap(NULL, SCRATCHES * sizeof(*scratches), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (sys_failed(memory))
			return NULL;
		scratches = memory;
	}
	if (thread->index >= SCRATCHES)
		return NULL;
	scratch = atomic_load_explicit(&scratches[thread->index], memory_order_relaxed);
	if (!scratch) {
		void *memory = sys_mmap(NULL, sizeof(*scratch), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (sys_failed(memory))
			return NULL;
		scratch = memory;
		atomic_store_explicit(&scratches[thread->index], scratch, memory_order_relaxed);
	}
	return scratch;
}

/* Is the thread on the background thread's list, so that its own pin is looked at? Others (in a
 * child that was just forked) share one. */
static _Atomic uint32_t *pin_of(struct thread *thread)
{
	return __atomic_load_n(&thread->started, __ATOMIC_ACQUIRE) ? &thread->walking
								   : &kymo_runtime.walkers;
}

uint32_t memory_walk(const struct unwind_registers *caller, uint64_t *frames, uint32_t maximum)
{
	struct thread *thread = kymo_thread;
	enum spool_stack_end end;
	_Atomic uint32_t *pin;
	uint32_t count;

	frames[0] = caller->ip;
	if (!thread || maximum < 2)
		return 1;
	pin = pin_of(thread);
	/* seq_cst: before the view is read; the background thread replaces it, then looks here */
	atomic_fetch_add_explicit(pin, 1, memory_order_seq_cst);
	count = unwind_stack(modules_view(&kymo_runtime.modules), kymo_runtime.sampling.cache,
			     caller, &thread->bounds, scratch_of(thread), frames, maximum, &end);
	atomic_fetch_sub_explicit(pin, 1, memory_order_release);
	if (end == SPOOL_STACK_NO_TABLE || end == SPOOL_STACK_BAD_PC)
		modules_want_refresh(&kymo_runtime.modules);
	return count;
}
