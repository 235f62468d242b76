/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See frames.h. A region that begins between collection windows is not recorded, but when a window
 * opens while it is open, its part in there counts. The thread itself sees to that at its next
 * event, be it in the window or behind it: a span says what is open and since when, and readers,
 * who know the windows, cut off what is outside.
 */
#include "regions/frames.h"
#include "regions/reentry_guard.h"
#include "regions/stream.h"

static uint32_t load_opened_window_count(void)
{
	return atomic_load_explicit(&kymo_regions.control->opened_window_count,
				    memory_order_acquire);
}

bool waiting_frames_add(struct region_thread_state *thread, struct region_frame *frame)
{
	/* The number first: a window that opens after it was read is seen by the next event. */
	uint32_t opened = load_opened_window_count();

	if (!(atomic_load_explicit(&kymo_regions.control->closed_reasons, memory_order_acquire) &
	      CONTROL_CLOSED_BY_WINDOW))
		return false;
	if (!thread->waiting_frame_count++)
		thread->seen_window_count = opened;
	thread->depth_check_limit = 0; /* begins look closer from here on */
	frame->flags |= REGION_FRAME_WAITS;
	frame->begin_ticks = region_get_event_ticks(thread);
	frame->profile_begin = region_window_clock(frame->begin_ticks);
	return true;
}

void waiting_frames_begin_if_window_opened(struct region_thread_state *thread)
{
	if (thread->seen_window_count == load_opened_window_count())
		return;
	for (uint32_t i = 0; i < thread->depth; i++) {
		struct region_frame *frame = &thread->frames[i];

		if (!(frame->flags & REGION_FRAME_WAITS))
			continue;
		frame->flags &= ~(uint32_t)REGION_FRAME_WAITS;
		frame->flags |= REGION_FRAME_RECORDED |
				(kymo_regions.records_events ? REGION_FRAME_TRACED : 0);
		if (kymo_regions.keeps_profile)
			region_enter_profile_node_of_frame(thread, i);
	}
	thread->waiting_frame_count = 0;
	if (kymo_regions.records_events &&
	    !stream_write_span(thread, region_get_event_ticks(thread)))
		spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_EVENTS);
}
