/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Events of signal handlers that interrupt another event of their thread. That one has to be
 * finished first: it may be anywhere in a record. What the handler wants to record is kept with its
 * time, and the interrupted event records it at its own end, before the program goes on.
 *
 * A handler may itself be interrupted by another one, so a place is taken with one instruction and
 * filled then; all handlers have returned before places are read. Half of the places are for
 * begins, so that every begin that is kept has room for its end.
 */
#include <signal.h>

#include "common/syscalls.h"
#include "regions/names.h"
#include "regions/reentry_guard.h"

/* Whose memory may be a part of the thread's own stack. */
static bool runs_on_alternate_stack(void)
{
	stack_t stack = {0};

	return process_has_seccomp_thread() || sys_call2(SYS_sigaltstack, 0, (long)&stack) != 0 ||
	       stack.ss_flags & SS_ONSTACK;
}

/* A handler that interrupted the event was left by siglongjmp: the event is at no end, and one
 * comes that no handler can have made. Handlers' frames on other stacks may be anywhere. */
static bool event_was_abandoned(const struct region_thread_state *thread)
{
	return thread_no_handler_is_between(thread->thread, thread->busy_stack_pointer,
					    region_get_stack_pointer()) &&
	       !runs_on_alternate_stack();
}

static void end_abandoned_event(struct region_thread_state *thread)
{
	spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_REENTRY);
	thread->node = thread->depth ? thread->frames[thread->depth - 1].profile_node : 0;
	atomic_fetch_and_explicit(&thread->busy_state, REGION_BUSY_RESERVED_EVENTS,
				  memory_order_relaxed);
}

static bool thread_takes_reserved_event(struct region_thread_state *thread,
					enum region_reserved_event_kind kind)
{
	uint32_t busy;

	if (!thread || !process_is_where_runtime_started())
		return false;
	busy = atomic_load_explicit(&thread->busy_state, memory_order_relaxed) &
	       ~REGION_BUSY_RESERVED_EVENTS;
	if (busy == REGION_BUSY_IN_EVENT && event_was_abandoned(thread)) {
		end_abandoned_event(thread);
		return false;
	}
	/* What kymo's own code calls on its way is nothing of the program, but names are its own.
	 */
	return busy && (!kymo_region_own || kind == REGION_RESERVED_NAMED_END ||
			kind == REGION_RESERVED_NAMED_BEGIN);
}

static void count_unreserved_event(struct region_thread_state *thread,
				   enum region_reserved_event_kind kind)
{
	if (kind == REGION_RESERVED_BEGIN || kind == REGION_RESERVED_NAMED_BEGIN)
		thread->unreserved_open_count++;
	spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_REENTRY);
}

bool region_reserve_event(enum region_reserved_event_kind kind, region_id region, uint64_t number)
{
	struct region_thread_state *thread = kymo_region_thread;
	bool ends = kind == REGION_RESERVED_END || kind == REGION_RESERVED_NAMED_END;
	uint32_t place, limit = ends ? REGION_RESERVED_EVENTS_MAX : REGION_RESERVED_EVENTS_MAX / 2;

	if (!region || !thread_takes_reserved_event(thread, kind))
		return false;
	if (ends && thread->unreserved_open_count) {
		thread->unreserved_open_count--;
		spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_REENTRY);
		return true;
	}
	if (atomic_load_explicit(&thread->reserved_event_count, memory_order_relaxed) >= limit) {
		count_unreserved_event(thread, kind);
		return true;
	}
	place = atomic_fetch_add_explicit(&thread->reserved_event_count, 1, memory_order_relaxed);
	if (place >= REGION_RESERVED_EVENTS_MAX) {
		count_unreserved_event(thread, kind);
		return true;
	}
	thread->reserved_events[place] = (struct region_reserved_event){
		.ticks = ticks_now(), .number = number, .region = region, .kind = kind};
	atomic_fetch_or_explicit(&thread->busy_state, REGION_BUSY_RESERVED_EVENTS,
				 memory_order_relaxed);
	return true;
}

/* A name of the category "user" that is new while the interrupted event makes another one known:
 * its lock is that thread's own. Kept as text until then. 0: there is no room, or it is longer. */
static region_id keep_name_for_later(struct region_thread_state *thread, const char *name)
{
	uint32_t length = 0, i;

	while (length < REGION_RESERVED_NAME_SIZE && name[length])
		length++;
	if (length == REGION_RESERVED_NAME_SIZE)
		return 0;
	/* Events that are kept may have names by number. */
	if (!atomic_load_explicit(&thread->reserved_event_count, memory_order_relaxed))
		thread->reserved_name_count = 0;
	for (i = 0; i < thread->reserved_name_count; i++) {
		if (name_copy_equals_text(thread->reserved_names[i], name, length + 1))
			return i | REGION_ID_IS_RESERVED_NAME_BIT;
	}
	if (i == REGION_RESERVED_NAMES_MAX)
		return 0;
	for (uint32_t at = 0; at <= length; at++)
		thread->reserved_names[i][at] = name[at];
	thread->reserved_name_count = i + 1;
	return i | REGION_ID_IS_RESERVED_NAME_BIT;
}

bool region_reserve_named_event(enum region_reserved_event_kind kind, const char *category,
				const char *name)
{
	struct region_thread_state *thread = kymo_region_thread;
	region_id region;

	if (!name || !thread_takes_reserved_event(thread, REGION_RESERVED_NAMED_END))
		return false;
	region = names_find_or_add_if_unlocked(category, name);
	if (!region && !category && names_are_locked_by_this_thread())
		region = keep_name_for_later(thread, name);
	return region_reserve_event(kind, region, 0);
}

static region_id find_region_of_reserved_event(const struct region_thread_state *thread,
					       const struct region_reserved_event *event)
{
	if (!(event->region & REGION_ID_IS_RESERVED_NAME_BIT))
		return event->region;
	return region_find_or_add_name_in(
		NULL, thread->reserved_names[event->region & ~REGION_ID_IS_RESERVED_NAME_BIT]);
}

static void record_reserved_event(struct region_thread_state *thread,
				  const struct region_reserved_event *event)
{
	region_id region = find_region_of_reserved_event(thread, event);

	if (!region) /* counted */
		return;
	thread->reserved_ticks = event->ticks;
	switch ((enum region_reserved_event_kind)event->kind) {
	case REGION_RESERVED_BEGIN:
	case REGION_RESERVED_NAMED_BEGIN:
		region_record_begin(thread, region);
		break;
	case REGION_RESERVED_END:
	case REGION_RESERVED_NAMED_END:
		region_record_end(thread, region, event->kind == REGION_RESERVED_NAMED_END);
		break;
	case REGION_RESERVED_MARK:
		region_record_mark(thread, region);
		break;
	case REGION_RESERVED_COUNTER:
		region_record_counter(thread, region, event->number);
		break;
	case REGION_RESERVED_PROGRESS:
		region_record_progress(thread, region, (enum spool_progress)event->number);
		break;
	}
	thread->reserved_ticks = 0;
}

/* Further ones may come while these are recorded. */
static void record_all_reserved_events(struct region_thread_state *thread)
{
	uint32_t done = 0, count;

	do {
		count = atomic_load_explicit(&thread->reserved_event_count, memory_order_relaxed);
		for (; done < count && done < REGION_RESERVED_EVENTS_MAX; done++)
			record_reserved_event(thread, &thread->reserved_events[done]);
	} while (!atomic_compare_exchange_strong_explicit(&thread->reserved_event_count, &count, 0,
							  memory_order_relaxed,
							  memory_order_relaxed));
	thread->may_attach_values = false;
}

void region_record_reserved_events(struct region_thread_state *thread)
{
	uint32_t busy;

	do {
		thread->busy_stack_pointer = UINT64_MAX;
		atomic_store_explicit(&thread->busy_state, REGION_BUSY_IN_EVENT,
				      memory_order_relaxed);
		atomic_signal_fence(memory_order_seq_cst);
		record_all_reserved_events(thread);
		atomic_signal_fence(memory_order_seq_cst);
		busy = atomic_fetch_sub_explicit(&thread->busy_state, REGION_BUSY_IN_EVENT,
						 memory_order_relaxed);
	} while (busy != REGION_BUSY_IN_EVENT);
}

bool region_is_free_after_reserved_events(struct region_thread_state *thread)
{
	if (atomic_load_explicit(&thread->busy_state, memory_order_relaxed) !=
	    REGION_BUSY_RESERVED_EVENTS)
		return false;
	region_record_reserved_events(thread);
	return true;
}
