/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What every event passes: is the runtime collecting, is this the process that it was started in,
 * is the thread in the midst of another event, is the region wanted now?
 */
#ifndef KYMO_REGIONS_GATE_H
#define KYMO_REGIONS_GATE_H

#include "regions/state.h"

static inline uint32_t region_closed_bits(void)
{
	return atomic_load_explicit(&kymo_runtime.control.closed, memory_order_relaxed);
}

/* The state of this thread, marked busy; NULL when nothing can be recorded now. */
static inline struct region_thread *region_enter(void)
{
	struct region_thread *thread = kymo_region_thread;

	if (__builtin_expect(!thread, 0)) {
		if (region_closed_bits() & CONTROL_CLOSED_START)
			return NULL;
		thread = region_thread_make();
		if (!thread)
			return NULL;
	}
	/* A child of a raw fork (not through libc): the chunk is its parent's. */
	if (__builtin_expect(!*kymo_runtime.same_process, 0))
		return NULL;
	if (__builtin_expect(atomic_load_explicit(&thread->busy, memory_order_relaxed), 0)) {
		if (!kymo_region_own)
			spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_REGION_REENTRY);
		return NULL;
	}
	atomic_store_explicit(&thread->busy, REGION_BUSY_EVENT, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return thread;
}

static inline void region_leave(struct region_thread *thread)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&thread->busy, 0, memory_order_relaxed);
}

/* Is the event to be recorded? The program's own regions pass a stop, not a window. */
static inline bool region_is_open(const struct region_thread *thread, region_id region)
{
	uint32_t closed = region_closed_bits();

	if (__builtin_expect(!(closed | thread->stopped | kymo_regions.select), 1))
		return true;
	if ((closed || thread->stopped) &&
	    (!(region & REGION_IS_USER) || closed & ~(uint32_t)CONTROL_CLOSED_STOPPED))
		return false;
	return !kymo_regions.select || thread->selected;
}

/* An event of a region that is off: values that follow belong to nothing. */
static inline void region_forbid_values(void)
{
	if (kymo_region_thread)
		kymo_region_thread->values_allowed = false;
}

#endif
