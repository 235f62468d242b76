/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What every event passes: is the runtime collecting, is this the process that it was started in,
 * is the thread in the midst of another event, is the region wanted now?
 */
#ifndef KYMO_REGIONS_REENTRY_GUARD_H
#define KYMO_REGIONS_REENTRY_GUARD_H

#include "core/base/ticks.h"
#include "regions/state.h"

/* What an event of a signal handler is that interrupts another event of its thread. */
enum region_reserved_event_kind {
	REGION_RESERVED_BEGIN,
	REGION_RESERVED_NAMED_BEGIN,
	REGION_RESERVED_END,       /* of a region that must be open */
	REGION_RESERVED_NAMED_END, /* that may overlap others */
	REGION_RESERVED_MARK,
	REGION_RESERVED_COUNTER,
	REGION_RESERVED_PROGRESS
};

/* reserve.c: True where the thread is in the midst of an event: this one is kept, or counted as
 * lost where there are too many. */
bool region_reserve_event(enum region_reserved_event_kind kind, region_id region, uint64_t number);
/* The same of a begin or end by name. */
bool region_reserve_named_event(enum region_reserved_event_kind kind, const char *category,
				const char *name);
/* Records what was kept; for a thread that is busy with nothing else. */
void region_record_reserved_events(struct region_thread_state *thread);
/* True where the thread is busy with nothing but those, which are recorded first. */
bool region_is_free_after_reserved_events(struct region_thread_state *thread);

static inline uint64_t region_get_stack_pointer(void)
{
	uint64_t pointer;

	__asm__("mov %%rsp, %0" : "=r"(pointer));
	return pointer;
}

static inline uint32_t region_load_closed_reason_bits(void)
{
	return atomic_load_explicit(&kymo_regions.control->closed_reasons, memory_order_relaxed);
}

/* The state of this thread, marked busy; NULL when nothing can be recorded now. */
static inline struct region_thread_state *region_guard_try_enter(void)
{
	struct region_thread_state *thread = kymo_region_thread;

	if (__builtin_expect(!thread, 0)) {
		if (region_load_closed_reason_bits() & CONTROL_CLOSED_NOT_STARTED)
			return NULL;
		thread = region_make_thread_state();
		if (!thread)
			return NULL;
	}
	/* A child of a raw fork (not through libc): the chunk is its parent's. */
	if (__builtin_expect(!process_is_where_runtime_started(), 0))
		return NULL;
	if (__builtin_expect(atomic_load_explicit(&thread->busy_state, memory_order_relaxed), 0) &&
	    !region_is_free_after_reserved_events(thread)) {
		if (!kymo_region_own)
			spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_REENTRY);
		return NULL;
	}
	thread->busy_stack_pointer = UINT64_MAX;
	atomic_store_explicit(&thread->busy_state, REGION_BUSY_IN_EVENT, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return thread;
}

/* False where region_record_reserved_events() is to be called. One instruction, so that what a
 * signal handler reserves is either seen here or finds the thread free. No lock prefix: handlers
 * run on this very thread. */
static inline bool region_guard_try_exit(struct region_thread_state *thread)
{
	bool left;

	__asm__ volatile("subl %2, %0"
			 : "+m"(*(volatile uint32_t *)&thread->busy_state), "=@ccnz"(left)
			 : "i"(REGION_BUSY_IN_EVENT)
			 : "memory");
	return __builtin_expect(!left, 1);
}

static inline void region_guard_exit(struct region_thread_state *thread)
{
	if (!region_guard_try_exit(thread))
		region_record_reserved_events(thread);
}

/* The time of the event that is being recorded. */
static inline uint64_t region_get_event_ticks(const struct region_thread_state *thread)
{
	return __builtin_expect(thread->reserved_ticks != 0, 0) ? thread->reserved_ticks
								: ticks_now();
}

/* Is the event to be recorded? The program's own regions pass a stop, not a window. */
static inline bool region_event_is_wanted(const struct region_thread_state *thread,
					  region_id region)
{
	uint32_t closed = region_load_closed_reason_bits();

	if (__builtin_expect(!(closed | thread->stopped | kymo_regions.select), 1))
		return true;
	if ((closed || thread->stopped) &&
	    (!(region & REGION_ID_USER_REGION_BIT) || closed & ~(uint32_t)CONTROL_CLOSED_BY_STOP))
		return false;
	return !kymo_regions.select || thread->open_selecting_region_count;
}

/* An event of a region that is off: values that follow belong to nothing. */
static inline void region_forbid_values_until_event(void)
{
	if (kymo_region_thread)
		kymo_region_thread->may_attach_values = false;
}

#endif
