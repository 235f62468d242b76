/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See frames.h. Regions of the user API may overlap: one ends while others that began in it go on.
 * A program that forgets an end, or leaves it out by an early return, looks the same until the end
 * never comes. So such frames stay on the stack, but no more than a bounded number of them: a loop
 * that loses an end in each round would fill it.
 */
#include "core/base/ticks.h"
#include "regions/frames.h"
#include "regions/profile.h"
#include "regions/reentry_guard.h"

static struct spool_profile_open *find_open_calls_of_frame(const struct region_thread_state *thread,
							   const struct region_frame *frame)
{
	if (!thread->tree || !(frame->flags & REGION_FRAME_PROFILED))
		return NULL;
	return profile_get_open_calls(thread->tree->entries[frame->profile_node].node);
}

static uint64_t compute_ticks_until_left(const struct region_frame *frame)
{
	return frame->left_ticks > frame->profile_begin ? frame->left_ticks - frame->profile_begin
							: 0;
}

static void mark_frame_as_left(struct region_thread_state *thread, struct region_frame *frame,
			       region_id by, uint64_t ticks)
{
	struct spool_profile_open *open = find_open_calls_of_frame(thread, frame);

	frame->flags |= REGION_FRAME_LEFT;
	frame->left_ticks = region_window_clock(ticks);
	frame->left_by = by;
	thread->left_frame_count++;
	thread->depth_check_limit = 0; /* begins look closer from here on */
	if (!open)
		return;
	open->begin_ticks_sum -= frame->profile_begin;
	open->left++;
	open->left_ticks += compute_ticks_until_left(frame);
}

/* What it began in was thought to have been left at that time, and ends only now. */
static void move_left_time(struct region_thread_state *thread, struct region_frame *frame,
			   region_id by, uint64_t ticks)
{
	struct spool_profile_open *open = find_open_calls_of_frame(thread, frame);
	uint64_t before = compute_ticks_until_left(frame);

	frame->left_ticks = region_window_clock(ticks);
	frame->left_by = by;
	if (open)
		open->left_ticks += compute_ticks_until_left(frame) - before;
}

void left_frames_take_back(struct region_thread_state *thread, struct region_frame *frame,
			   uint64_t ticks)
{
	struct spool_profile_open *open = find_open_calls_of_frame(thread, frame);
	uint64_t outside = region_window_clock(ticks) - frame->left_ticks;
	uint32_t began_in;

	frame->flags &= ~(uint32_t)REGION_FRAME_LEFT;
	thread->left_frame_count--;
	if (!open)
		return;
	open->left--;
	open->left_ticks -= compute_ticks_until_left(frame);
	open->begin_ticks_sum += frame->profile_begin;
	/* Of the sums it is inside the region that it began in, of the time inside another one. */
	began_in = thread->tree->entries[frame->profile_node].parent;
	if (began_in == frame->parent_profile_node)
		return;
	profile_get_open_calls(thread->tree->entries[began_in].node)->self_ticks += outside;
	profile_get_open_calls(thread->tree->entries[frame->parent_profile_node].node)
		->self_ticks -= outside;
}

void left_frames_drop(struct region_thread_state *thread, const struct region_frame *frame)
{
	thread->left_frame_count--;
	if (frame->flags & REGION_FRAME_PROFILED && thread->node == frame->profile_node)
		thread->node = frame->parent_profile_node;
}

static void remove_frame(struct region_thread_state *thread, uint32_t at)
{
	const struct region_frame removed = thread->frames[at];
	uint32_t components = kymo_regions.component_bundle.count;

	for (uint32_t i = at + 1; i < thread->depth; i++) {
		if (thread->frames[i].parent_profile_node == removed.profile_node)
			thread->frames[i].parent_profile_node = removed.parent_profile_node;
		thread->frames[i - 1] = thread->frames[i];
		for (uint32_t j = 0; thread->starts && j < components; j++)
			thread->starts[(size_t)(i - 1) * components + j] =
				thread->starts[(size_t)i * components + j];
	}
	thread->depth--;
}

/* The outermost one: its end is missing. */
static void give_up_one_left_frame(struct region_thread_state *thread)
{
	struct region_frame *frame = thread->frames;

	while (!(frame->flags & REGION_FRAME_LEFT))
		frame++;
	if (frame->flags & REGION_FRAME_SELECTS)
		region_deselect_thread(thread);
	if (frame->flags & REGION_FRAME_TRACED)
		region_write_end_of_outer_region(thread, region_get_event_ticks(thread),
						 frame->region, SPOOL_REGION_END_GIVEN_UP);
	spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_UNBALANCED);
	left_frames_drop(thread, frame);
	remove_frame(thread, (uint32_t)(frame - thread->frames));
}

void left_frames_end_outer_frame_alone(struct region_thread_state *thread, uint32_t at)
{
	struct region_frame *frame = &thread->frames[at];
	uint64_t ticks = region_get_event_ticks(thread);
	uint64_t left_ticks = frame->flags & REGION_FRAME_LEFT ? frame->left_ticks : 0;

	if (frame->flags & REGION_FRAME_SELECTS)
		region_deselect_thread(thread);
	region_finish_frame(thread, at, ticks);
	if (frame->flags & REGION_FRAME_TRACED)
		region_write_end_of_outer_region(thread, ticks, frame->region,
						 SPOOL_REGION_END_ALONE);
	for (uint32_t i = at + 1; i < thread->depth; i++) {
		struct region_frame *inner = &thread->frames[i];

		if (!(inner->flags & REGION_FRAME_LEFT))
			mark_frame_as_left(thread, inner, frame->region, ticks);
		else if (left_ticks && inner->left_ticks == left_ticks)
			move_left_time(thread, inner, frame->region, ticks);
	}
	remove_frame(thread, at);
	while (thread->left_frame_count > REGION_LEFT_FRAMES_MAX)
		give_up_one_left_frame(thread);
}

void left_frames_leave_profile_node_for(struct region_thread_state *thread, region_id region)
{
	uint32_t at = thread->depth;

	if (!at || !(thread->frames[at - 1].flags & REGION_FRAME_LEFT) ||
	    thread->frames[at - 1].left_by != region)
		return;
	while (at > 0 && (thread->frames[at - 1].flags &
			  (REGION_FRAME_LEFT | REGION_FRAME_PROFILED)) != REGION_FRAME_PROFILED)
		at--;
	thread->node = at ? thread->frames[at - 1].profile_node : 0;
}
