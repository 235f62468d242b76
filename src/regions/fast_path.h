/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Begin and end of a region in the usual case, without a call, so that no register needs saving:
 * beside two time stamps, every instruction counts. That is: either the trace alone is recorded or
 * a profile of the wall clock alone, nothing is left out, and there is room. Anything else is
 * declined before anything is changed, and regions.c takes it.
 *
 * For a thread that is marked busy.
 */
#ifndef KYMO_REGIONS_FAST_PATH_H
#define KYMO_REGIONS_FAST_PATH_H

#include "regions/profile.h"
#include "regions/reentry_guard.h"
#include "regions/stream.h"

/* The state of this thread, marked busy; NULL where something has to be looked at first. */
static inline struct region_thread_state *fast_path_mark_thread_busy_or_null(void)
{
	struct region_thread_state *thread = kymo_region_thread;

	if (__builtin_expect(
		    !thread || !process_is_where_runtime_started() ||
			    atomic_load_explicit(&thread->busy_state, memory_order_relaxed),
		    0))
		return NULL;
	thread->busy_stack_pointer = kymo_regions.fast_path_kind == REGIONS_FAST_PATH_PROFILE
					     ? region_get_stack_pointer()
					     : UINT64_MAX;
	atomic_store_explicit(&thread->busy_state, REGION_BUSY_IN_EVENT, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return thread;
}

/* The node of the region below the one that the thread is at, or NULL. */
static inline struct spool_profile_node *
fast_path_find_node(const struct region_thread_state *thread, region_id region,
		    uint32_t *ret_number)
{
	struct profile_node_lookup_entry *entries = thread->tree ? thread->tree->entries : NULL;
	uint32_t wanted = region & REGION_NUMBER_MASK;

	if (__builtin_expect(!entries, 0))
		return NULL;
	*ret_number = entries[thread->node].hint;
	if (*ret_number && entries[*ret_number].region == wanted)
		return entries[*ret_number].node;
	*ret_number = profile_find_node(thread->tree, thread->node, wanted);
	return *ret_number ? entries[*ret_number].node : NULL;
}

static inline __attribute__((always_inline)) bool
fast_path_try_begin_region_as(enum regions_fast_path_kind kind, struct region_thread_state *thread,
			      region_id region, const char *name)
{
	struct region_record_stream *stream = &thread->stream;
	bool trace = kind == REGIONS_FAST_PATH_TRACE;
	uint32_t depth = thread->depth, number = 0;
	struct spool_profile_node *node = NULL;
	struct region_frame *frame;
	uint64_t ticks, delta;

	/* Above the number there is REGION_ID_USER_REGION_BIT at most. */
	if (__builtin_expect((region_load_closed_reason_bits() | thread->stopped) ||
				     depth >= thread->depth_check_limit || !kind ||
				     kind != kymo_regions.fast_path_kind ||
				     (region & ~REGION_ID_USER_REGION_BIT) >=
					     STREAM_SHORT_NUMBER_LIMIT,
			     0))
		return false;
	if (!trace && !(node = fast_path_find_node(thread, region, &number)))
		return false;
	ticks = __builtin_ia32_rdtsc();
	delta = ticks - stream->last_record_ticks;
	if (trace && __builtin_expect(!stream_has_room_for_short_record(stream, delta), 0))
		return false;
	frame = &thread->frames[depth];
	if (trace) {
		thread->depth = depth + 1;
	} else {
		profile_count_call_as_open(node, ticks);
		frame->parent_profile_node = thread->node;
		frame->profile_node = number;
		thread->starts[depth] = frame->profile_begin = ticks;
	}
	frame->name = name;
	frame->begin_ticks = ticks;
	frame->scope = 0;
	frame->region = region;
	frame->flags =
		REGION_FRAME_RECORDED | (trace ? REGION_FRAME_TRACED : REGION_FRAME_PROFILED);
	if (trace) {
		stream_put_short_record(stream, SPOOL_RECORD_REGION_BEGIN, ticks, delta,
					region & REGION_NUMBER_MASK);
	} else {
		/* Left in the midst of this (reserve.c), the call is open, or was never there. */
		atomic_signal_fence(memory_order_seq_cst);
		thread->depth = depth + 1;
		thread->node = number;
	}
	thread->may_attach_values = trace;
	return true;
}

static inline __attribute__((always_inline)) bool
fast_path_try_begin_region(struct region_thread_state *thread, region_id region, const char *name)
{
	return fast_path_try_begin_region_as(kymo_regions.fast_path_kind, thread, region, name);
}

/* Ends the innermost frame, which is the one asked for. */
static inline __attribute__((always_inline)) bool
fast_path_try_end_region_as(enum regions_fast_path_kind kind, struct region_thread_state *thread,
			    const struct region_frame *frame)
{
	struct region_record_stream *stream = &thread->stream;
	bool trace = kind == REGIONS_FAST_PATH_TRACE;
	struct spool_profile_node *node;
	uint64_t ticks, delta, spent;

	if (__builtin_expect(
		    frame->flags != (REGION_FRAME_RECORDED |
				     (trace ? REGION_FRAME_TRACED : REGION_FRAME_PROFILED)) ||
			    !kind || kind != kymo_regions.fast_path_kind ||
			    (!trace && !thread->tree),
		    0))
		return false;
	ticks = __builtin_ia32_rdtsc();
	if (trace) {
		delta = ticks - stream->last_record_ticks;
		if (__builtin_expect(!stream_has_room_for_short_record(stream, delta), 0))
			return false;
		stream_put_end_record(stream, ticks, delta);
	} else {
		/* Left in the midst of this, the call counts as open, and not twice. */
		if (thread->node == frame->profile_node)
			thread->node = frame->parent_profile_node;
		thread->depth--;
		atomic_signal_fence(memory_order_seq_cst);
		node = thread->tree->entries[frame->profile_node].node;
		spent = ticks > frame->begin_ticks ? ticks - frame->begin_ticks : 0;
		profile_add_to_value_statistics((struct spool_profile_value *)(node + 1), spent,
						!node->count);
		profile_count_call_as_ended(node, frame->profile_begin);
	}
	thread->may_attach_values = trace;
	thread->depth -= trace;
	return true;
}

static inline __attribute__((always_inline)) bool
fast_path_try_end_region(struct region_thread_state *thread, const struct region_frame *frame)
{
	return fast_path_try_end_region_as(kymo_regions.fast_path_kind, thread, frame);
}

#endif
