/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See regions.h: begin and end.
 *
 * A begin always puts a frame on the thread's stack, recorded or not, so that its end finds it
 * whatever was switched in between.
 */
#include "regions/regions.h"

#include <errno.h>

#include "core/ticks.h"
#include "regions/gate.h"
#include "regions/names.h"
#include "regions/profile.h"
#include "regions/quick.h"
#include "regions/stream.h"

/* ---- selected regions ---- */

static void select_begin(struct region_thread *thread, struct region_frame *frame)
{
	frame->flags |= FRAME_SELECTS;
	if (!thread->selected++)
		control_include_thread(thread->thread, THREAD_EXCLUDED_UNSELECTED);
}

static void select_end(struct region_thread *thread)
{
	if (!--thread->selected)
		control_exclude_thread(thread->thread, THREAD_EXCLUDED_UNSELECTED);
}

/* ---- the profile ---- */

static inline uint64_t *starts_of(const struct region_thread *thread, uint32_t depth)
{
	return thread->starts + (size_t)depth * kymo_regions.bundle.count;
}

/* Apart, as all that is rare or long: what calls it needs less stack and saves fewer registers. */
__attribute__((noinline)) static void start_bundle(struct region_thread *thread, uint64_t *starts,
						   uint64_t ticks)
{
	struct moment moment; /* what `have` says is there, and nothing else */

	moment.ticks = ticks;
	moment.thread = thread;
	moment.have = 0;
	bundle_start(&kymo_regions.bundle, starts, &moment);
}

__attribute__((noinline)) static void stop_bundle(struct region_thread *thread, uint64_t *values,
						  uint64_t ticks)
{
	struct moment moment; /* what `have` says is there, and nothing else */

	moment.ticks = ticks;
	moment.thread = thread;
	moment.have = 0;
	bundle_stop(&kymo_regions.bundle, values, &moment);
}

static inline void start_components(struct region_thread *thread, uint32_t depth, uint64_t ticks)
{
	uint64_t *starts = starts_of(thread, depth);

	if (__builtin_expect(kymo_regions.ticks_only, 1))
		starts[0] = ticks;
	else
		start_bundle(thread, starts, ticks);
}

/* Nodes for regions that are open: of the time before a fork, or before there was room for a tree.
 */
static void rebuild_nodes(struct region_thread *thread, uint64_t ticks)
{
	thread->node = 0;
	for (uint32_t i = 0; i < thread->depth; i++) {
		struct region_frame *frame = &thread->frames[i];

		frame->flags &= ~(uint32_t)FRAME_PROFILED;
		if (!(frame->flags & FRAME_RECORDED))
			continue;
		frame->parent_node = thread->node;
		frame->node = profile_enter(thread->tree, thread->node, frame->region);
		if (!frame->node)
			continue;
		thread->node = frame->node;
		frame->flags |= FRAME_PROFILED;
		start_components(thread, i, ticks);
	}
}

/* The thread's tree at its first profiled region, which is the innermost frame. */
__attribute__((noinline)) static bool acquire_tree(struct region_thread *thread, uint64_t ticks)
{
	thread->tree = profile_acquire(thread);
	if (!thread->tree) {
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_PROFILE_NODES);
		return false;
	}
	thread->depth--; /* without the frame that is being made */
	rebuild_nodes(thread, ticks);
	thread->depth++;
	return true;
}

/* Of the innermost frame. */
static inline void profile_begin(struct region_thread *thread, struct region_frame *frame,
				 uint64_t ticks)
{
	if (__builtin_expect(!thread->tree, 0) && !acquire_tree(thread, ticks))
		return;
	frame->parent_node = thread->node;
	frame->node = profile_enter(thread->tree, thread->node, frame->region);
	if (__builtin_expect(!frame->node, 0))
		return;
	thread->node = frame->node;
	frame->flags |= FRAME_PROFILED;
	start_components(thread, thread->depth - 1, ticks);
}

static inline void profile_end(struct region_thread *thread, const struct region_frame *frame,
			       uint32_t depth, uint64_t ticks)
{
	uint64_t *values = starts_of(thread, depth);

	if (!thread->tree)
		return;
	if (__builtin_expect(kymo_regions.ticks_only, 1))
		values[0] = ticks > values[0] ? ticks - values[0] : 0;
	else
		stop_bundle(thread, values, ticks);
	profile_leave(thread->tree, frame->node, values);
	if (thread->node == frame->node)
		thread->node = frame->parent_node;
}

void region_profile_whole(struct region_thread *thread, region_id region, uint64_t begin_ticks,
			  uint64_t end_ticks)
{
	uint64_t values[COMPONENTS_MAX] = {0};
	struct moment moment = {.ticks = end_ticks, .thread = thread};
	uint32_t node;
	const struct bundle *bundle = &kymo_regions.bundle;

	if (!thread->tree) {
		thread->tree = profile_acquire(thread);
		if (!thread->tree)
			return;
		rebuild_nodes(thread, begin_ticks);
	}
	node = profile_enter(thread->tree, thread->node, region);
	if (!node)
		return;
	bundle_sample(bundle, values, &moment); /* levels are what they are now */
	for (uint32_t i = 0; i < bundle->count; i++) {
		if (bundle->components[i].description == &component_table[COMPONENT_WALL_CLOCK])
			values[i] = end_ticks - begin_ticks;
	}
	profile_leave(thread->tree, node, values);
}

/* ---- begin ---- */

static inline void record_begin(struct region_thread *thread, struct region_frame *frame,
				uint64_t ticks)
{
	if (kymo_regions.trace) {
		if (stream_write(thread, SPOOL_RECORD_REGION_BEGIN, ticks,
				 frame->region & REGION_NUMBER))
			frame->flags |= FRAME_TRACED;
		else
			spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_REGION_EVENTS);
	}
	if (kymo_regions.profile)
		profile_begin(thread, frame, ticks);
}

static bool has_no_room(struct region_thread *thread)
{
	if (!thread->skipped && thread->depth < kymo_regions.max_depth &&
	    (thread->depth < thread->capacity || region_frames_grow(thread))) {
		thread->limit = thread->capacity < kymo_regions.max_depth ? thread->capacity
									  : kymo_regions.max_depth;
		return false;
	}
	thread->skipped++;
	thread->limit = 0;
	spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_REGION_DEPTH);
	return true;
}

/* For where not every region is. */
__attribute__((noinline)) static bool is_recorded(const struct region_thread *thread,
						  region_id region)
{
	if (!region_is_open(thread, region))
		return false;
	if (!kymo_regions.throttle_count || !names_is_throttled(region))
		return true;
	spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_REGION_THROTTLED);
	return false;
}

static inline __attribute__((always_inline)) void
begin(struct region_thread *thread, region_id region, const char *name, uint64_t scope)
{
	struct region_frame *frame;

	if (__builtin_expect(thread->depth >= thread->limit, 0) && has_no_room(thread))
		return;
	frame = &thread->frames[thread->depth++];
	frame->name = name;
	frame->region = region;
	frame->flags = 0;
	frame->scope = scope;
	thread->values_allowed = false;
	if (__builtin_expect(region & REGION_IS_SELECT, 0))
		select_begin(thread, frame);
	if (__builtin_expect(region_closed_bits() | thread->stopped | kymo_regions.careful, 0) &&
	    !is_recorded(thread, region))
		return;
	frame->flags |= FRAME_RECORDED;
	frame->begin_ticks = ticks_now();
	record_begin(thread, frame, frame->begin_ticks);
	thread->values_allowed = frame->flags & FRAME_TRACED;
}

__attribute__((noinline)) static void begin_other(region_id region)
{
	struct region_thread *thread;

	if (!region) {
		region_forbid_values();
		return;
	}
	thread = region_enter();
	if (!thread)
		return;
	begin(thread, region, NULL, 0);
	region_leave(thread);
}

void region_begin(region_id region)
{
	struct region_thread *thread = region ? quick_enter() : NULL;
	bool begun = thread && quick_begin(thread, region, NULL);

	if (thread)
		region_leave(thread);
	if (__builtin_expect(!begun, 0))
		begin_other(region);
}

int region_begin_name(const char *category, const char *name)
{
	struct region_thread *thread = region_enter();
	region_id region;

	if (!thread)
		return 0;
	region = names_find_cached(thread, category, name);
	thread->values_allowed = false;
	if (region && __builtin_expect(!quick_begin(thread, region, name), 0))
		begin(thread, region, name, 0);
	region_leave(thread);
	return 0;
}

/* ---- end ---- */

static void count_lost_event(struct region_thread *thread)
{
	thread->values_allowed = false;
	spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_REGION_EVENTS);
}

static inline void write_end(struct region_thread *thread, uint64_t ticks)
{
	thread->values_allowed = true;
	if (__builtin_expect(!stream_write_end(thread, ticks), 0))
		count_lost_event(thread);
}

/* Of a region that is not the innermost. */
static void write_end_other(struct region_thread *thread, uint64_t ticks, region_id region,
			    uint64_t how)
{
	uint8_t *record = stream_record(thread, STREAM_ROOM, ticks), *at;

	if (!record) {
		count_lost_event(thread);
		return;
	}
	thread->values_allowed = true;
	record[0] = SPOOL_RECORD_REGION_END_OTHER;
	at = leb128_put(record + 2, stream_delta(&thread->stream, ticks));
	at = leb128_put(at, region & REGION_NUMBER);
	at = leb128_put(at, how);
	record[1] = (uint8_t)(at - record - 2);
	stream_commit(&thread->stream, at);
}

/* What an ending region leaves besides its record. */
static inline __attribute__((always_inline)) void finish(struct region_thread *thread,
							 const struct region_frame *frame,
							 uint32_t depth, uint64_t ticks)
{
	if (frame->flags & FRAME_PROFILED)
		profile_end(thread, frame, depth, ticks);
	if (__builtin_expect(kymo_regions.throttle_count != 0, 0) && frame->flags & FRAME_RECORDED)
		names_throttle(frame->region, ticks - frame->begin_ticks);
}

static void end_innermost(struct region_thread *thread)
{
	uint32_t depth = thread->depth - 1;
	struct region_frame *frame = &thread->frames[depth];
	uint64_t ticks;

	thread->values_allowed = false;
	if (__builtin_expect(frame->flags & FRAME_SELECTS, 0))
		select_end(thread);
	if (frame->flags & (FRAME_TRACED | FRAME_PROFILED)) {
		ticks = ticks_now();
		finish(thread, frame, depth, ticks);
		/* While the stream is written, a new chunk must show the region as open. */
		if (frame->flags & FRAME_TRACED)
			write_end(thread, ticks);
	}
	thread->depth = depth;
}

/* Has the call of this frame been left, as seen from a call at `scope`? On one stack, the frames of
 * open calls lie above those of the calls that they make. */
static bool is_left(const struct region_thread *thread, const struct region_frame *frame,
		    uint64_t scope)
{
	const struct unwind_bounds *bounds = &thread->thread->bounds;

	return frame->scope && frame->scope <= scope && frame->scope >= bounds->low &&
	       scope < bounds->high;
}

void region_begin_call(region_id region)
{
	uint64_t scope = (uint64_t)__builtin_frame_address(0);
	struct region_thread *thread;

	if (!region) {
		region_forbid_values();
		return;
	}
	thread = region_enter();
	if (!thread)
		return;
	while (thread->depth && !thread->skipped &&
	       is_left(thread, &thread->frames[thread->depth - 1], scope)) {
		end_innermost(thread);
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_REGION_UNBALANCED);
	}
	begin(thread, region, NULL, scope);
	region_leave(thread);
}

/* The innermost open frame of the region; depth when there is none. */
static uint32_t find(const struct region_thread *thread, region_id region)
{
	for (uint32_t i = thread->depth; i-- > 0;) {
		if (thread->frames[i].region == region)
			return i;
	}
	return thread->depth;
}

/* Ends frame `at` with all that is inside it. */
static void end_with_inner(struct region_thread *thread, uint32_t at)
{
	struct region_frame *outer = &thread->frames[at];
	uint64_t ticks = ticks_now();

	if (outer->flags & FRAME_TRACED)
		write_end_other(thread, ticks, outer->region, 1);
	while (thread->depth > at) {
		struct region_frame *frame = &thread->frames[thread->depth - 1];

		if (frame->flags & FRAME_SELECTS)
			select_end(thread);
		finish(thread, frame, thread->depth - 1, ticks);
		if (frame != outer) {
			if (!(outer->flags & FRAME_TRACED) && frame->flags & FRAME_TRACED)
				write_end(thread, ticks);
			spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_REGION_UNBALANCED);
		}
		thread->depth--;
	}
}

/* Ends frame `at` alone: regions of the user API may overlap. */
static void end_alone(struct region_thread *thread, uint32_t at)
{
	const struct region_frame *frame = &thread->frames[at], ended = *frame;
	uint32_t components = kymo_regions.bundle.count;
	uint64_t ticks = ticks_now();

	if (frame->flags & FRAME_SELECTS)
		select_end(thread);
	finish(thread, frame, at, ticks);
	if (frame->flags & FRAME_TRACED)
		write_end_other(thread, ticks, frame->region, 0);
	for (uint32_t i = at + 1; i < thread->depth; i++) {
		if (thread->frames[i].parent_node == ended.node)
			thread->frames[i].parent_node = ended.parent_node;
		thread->frames[i - 1] = thread->frames[i];
		for (uint32_t j = 0; thread->starts && j < components; j++)
			starts_of(thread, i - 1)[j] = starts_of(thread, i)[j];
	}
	thread->depth--;
}

static bool is_innermost(const struct region_thread *thread, region_id region)
{
	return thread->depth && thread->frames[thread->depth - 1].region == region;
}

static bool count_unbalanced(void)
{
	spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_REGION_UNBALANCED);
	return false;
}

__attribute__((noinline)) static bool end_other(region_id region)
{
	struct region_thread *thread;
	bool found = true;
	uint32_t at;

	if (!region)
		return true;
	thread = kymo_region_thread ? region_enter() : NULL;
	if (!thread)
		return false;
	if (__builtin_expect(thread->skipped != 0, 0)) {
		thread->skipped--;
	} else if (__builtin_expect(is_innermost(thread, region), 1)) {
		end_innermost(thread);
	} else {
		at = find(thread, region);
		found = at < thread->depth;
		if (found)
			end_with_inner(thread, at);
		else
			count_unbalanced();
	}
	region_leave(thread);
	return found;
}

bool region_end(region_id region)
{
	struct region_thread *thread = region ? quick_enter() : NULL;
	bool ended = thread && !thread->skipped && is_innermost(thread, region) &&
		     quick_end(thread, &thread->frames[thread->depth - 1]);

	if (thread)
		region_leave(thread);
	return __builtin_expect(ended, 1) || end_other(region);
}

static int end_by_name(struct region_thread *thread, const char *category, const char *name)
{
	region_id region = names_find_cached(thread, category, name);
	uint32_t at;

	if (!region) /* its category is off */
		return 0;
	at = find(thread, region);
	if (at == thread->depth) {
		count_unbalanced();
		return -ENOENT;
	}
	if (at == thread->depth - 1)
		end_innermost(thread);
	else
		end_alone(thread, at);
	return 0;
}

__attribute__((noinline)) static int end_name_other(const char *category, const char *name)
{
	struct region_thread *thread = kymo_region_thread ? region_enter() : NULL;
	int result = 0;

	if (!thread)
		return 0;
	if (__builtin_expect(thread->skipped != 0, 0))
		thread->skipped--;
	else if (__builtin_expect(thread->depth && thread->frames[thread->depth - 1].name == name &&
					  name,
				  1))
		end_innermost(thread);
	else
		result = end_by_name(thread, category, name);
	region_leave(thread);
	return result;
}

int region_end_name(const char *category, const char *name)
{
	struct region_thread *thread = name ? quick_enter() : NULL;
	bool ended = thread && !thread->skipped && thread->depth &&
		     thread->frames[thread->depth - 1].name == name &&
		     quick_end(thread, &thread->frames[thread->depth - 1]);

	if (thread)
		region_leave(thread);
	return __builtin_expect(ended, 1) ? 0 : end_name_other(category, name);
}
