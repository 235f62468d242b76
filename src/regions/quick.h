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
#ifndef KYMO_REGIONS_QUICK_H
#define KYMO_REGIONS_QUICK_H

#include "regions/gate.h"
#include "regions/profile.h"
#include "regions/stream.h"

/* The state of this thread, marked busy; NULL where something has to be looked at first. */
static inline struct region_thread *quick_enter(void)
{
	struct region_thread *thread = kymo_region_thread;

	if (__builtin_expect(!thread || !*kymo_runtime.same_process ||
				     atomic_load_explicit(&thread->busy, memory_order_relaxed),
			     0))
		return NULL;
	atomic_store_explicit(&thread->busy, REGION_BUSY_EVENT, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return thread;
}

/* A node that the thread entered from here last time, or NULL. */
static inline struct spool_profile_node *quick_node(const struct region_thread *thread,
						    region_id region, uint32_t *ret_number)
{
	const struct profile_entry *entries = thread->tree ? thread->tree->entries : NULL;

	if (__builtin_expect(!entries, 0))
		return NULL;
	*ret_number = entries[thread->node].hint;
	return *ret_number && entries[*ret_number].region == (region & REGION_NUMBER)
		       ? entries[*ret_number].node
		       : NULL;
}

static inline __attribute__((always_inline)) bool quick_begin(struct region_thread *thread,
							      region_id region, const char *name)
{
	struct region_stream *stream = &thread->stream;
	bool trace = kymo_regions.quick == REGIONS_QUICK_TRACE;
	uint32_t depth = thread->depth, number = 0;
	struct spool_profile_node *node = NULL;
	struct region_frame *frame;
	uint64_t ticks, delta;

	/* Above the number there is REGION_IS_USER at most. */
	if (__builtin_expect((region_closed_bits() | thread->stopped) || depth >= thread->limit ||
				     !kymo_regions.quick ||
				     (region & ~REGION_IS_USER) >= STREAM_SHORT_NUMBER,
			     0))
		return false;
	if (!trace && !(node = quick_node(thread, region, &number)))
		return false;
	ticks = __rdtsc();
	delta = ticks - stream->last_ticks;
	if (trace && __builtin_expect(!stream_is_quick(stream, delta), 0))
		return false;
	thread->depth = depth + 1;
	frame = &thread->frames[depth];
	frame->name = name;
	frame->begin_ticks = ticks;
	frame->scope = 0;
	frame->region = region;
	frame->flags = FRAME_RECORDED | (trace ? FRAME_TRACED : FRAME_PROFILED);
	if (trace) {
		stream_put(stream, SPOOL_RECORD_REGION_BEGIN, ticks, delta, region & REGION_NUMBER);
	} else {
		node->open++;
		frame->parent_node = thread->node;
		frame->node = number;
		thread->node = number;
		thread->starts[depth] = ticks;
	}
	thread->values_allowed = trace;
	return true;
}

/* Of the innermost frame, which is the one asked for. */
static inline __attribute__((always_inline)) bool quick_end(struct region_thread *thread,
							    const struct region_frame *frame)
{
	struct region_stream *stream = &thread->stream;
	bool trace = kymo_regions.quick == REGIONS_QUICK_TRACE;
	struct spool_profile_node *node;
	uint64_t ticks, delta, spent;

	if (__builtin_expect(
		    frame->flags != (FRAME_RECORDED | (trace ? FRAME_TRACED : FRAME_PROFILED)) ||
			    !kymo_regions.quick || (!trace && !thread->tree),
		    0))
		return false;
	ticks = __rdtsc();
	if (trace) {
		delta = ticks - stream->last_ticks;
		if (__builtin_expect(!stream_is_quick(stream, delta), 0))
			return false;
		stream_put_end(stream, ticks, delta);
	} else {
		node = thread->tree->entries[frame->node].node;
		spent = ticks > frame->begin_ticks ? ticks - frame->begin_ticks : 0;
		profile_add_value((struct spool_profile_value *)(node + 1), spent, !node->count);
		node->count++;
		node->open--;
		if (thread->node == frame->node)
			thread->node = frame->parent_node;
	}
	thread->values_allowed = trace;
	thread->depth--;
	return true;
}

#endif
