/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See regions.h: what is recorded at all.
 */
#include "regions/frames.h"
#include "regions/reentry_guard.h"

bool region_category_is_recorded(enum region_category category)
{
	const struct region_thread_state *thread = kymo_region_thread;
	uint32_t closed = region_load_closed_reason_bits();

	if (closed || kymo_regions.category_off_bits & 1u << category || kymo_region_own ||
	    !kymo_regions.started || !process_is_where_runtime_started())
		return false;
	return !thread ||
	       (!thread->stopped && (!kymo_regions.select || thread->open_selecting_region_count));
}

void region_enter_kymo_code(void)
{
	kymo_region_own++;
	if (kymo_region_thread)
		kymo_region_thread->busy_state += REGION_BUSY_PER_KYMO_LEVEL;
}

void region_leave_kymo_code(void)
{
	kymo_region_own--;
	if (kymo_region_thread &&
	    atomic_fetch_sub(&kymo_region_thread->busy_state, REGION_BUSY_PER_KYMO_LEVEL) ==
		    REGION_BUSY_PER_KYMO_LEVEL + REGION_BUSY_RESERVED_EVENTS)
		region_record_reserved_events(kymo_region_thread);
}

bool region_thread_is_in_kymo_code(void)
{
	return kymo_region_own != 0;
}

void regions_add_closed_reason(enum regions_closed_reason why)
{
	control_add_closed_reason(kymo_regions.control, (enum control_closed_reason)why);
}

void regions_remove_closed_reason(enum regions_closed_reason why)
{
	control_remove_closed_reason(kymo_regions.control, (enum control_closed_reason)why);
}

uint32_t regions_get_closed_reason_bits(void)
{
	return region_load_closed_reason_bits();
}

static void set_this_thread_stopped(bool stopped)
{
	struct region_thread_state *thread = region_guard_try_enter();

	if (!thread)
		return;
	thread->stopped = stopped;
	if (stopped)
		control_exclude_this_thread(kymo_regions.control, thread->thread,
					    THREAD_EXCLUDED_BY_STOP);
	else
		control_include_this_thread(kymo_regions.control, thread->thread,
					    THREAD_EXCLUDED_BY_STOP);
	region_guard_exit(thread);
}

void regions_stop_in_this_thread(void)
{
	set_this_thread_stopped(true);
}

void regions_start_in_this_thread(void)
{
	set_this_thread_stopped(false);
}

void region_select_thread(struct region_thread_state *thread, struct region_frame *frame)
{
	frame->flags |= REGION_FRAME_SELECTS;
	if (!thread->open_selecting_region_count++)
		control_include_this_thread(kymo_regions.control, thread->thread,
					    THREAD_EXCLUDED_BY_SELECTION);
}

void region_deselect_thread(struct region_thread_state *thread)
{
	if (!--thread->open_selecting_region_count)
		control_exclude_this_thread(kymo_regions.control, thread->thread,
					    THREAD_EXCLUDED_BY_SELECTION);
}

bool regions_thread_is_selected(void)
{
	const struct region_thread_state *thread = kymo_region_thread;

	return !kymo_regions.select || (thread && thread->open_selecting_region_count);
}
