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

#include "core/base/ticks.h"
#include "regions/fast_path.h"
#include "regions/frames.h"
#include "regions/names.h"
#include "regions/profile.h"
#include "regions/reentry_guard.h"
#include "regions/stream.h"

/* ---- the profile ---- */

static inline uint64_t *get_frame_start_values(const struct region_thread_state *thread,
					       uint32_t depth)
{
	return thread->starts + (size_t)depth * kymo_regions.component_bundle.count;
}

/* Apart, as all that is rare or long: what calls it needs less stack and saves fewer registers. */
__attribute__((noinline)) static void
read_component_start_values(struct region_thread_state *thread, uint64_t *starts, uint64_t ticks)
{
	struct component_readings_at_moment
		moment; /* what `have` says is there, and nothing else */

	moment.ticks = ticks;
	moment.thread = thread;
	moment.read_source_bits = 0;
	component_bundle_call_all_starts(&kymo_regions.component_bundle, starts, &moment);
}

__attribute__((noinline)) static void
compute_component_stop_values(struct region_thread_state *thread, uint64_t *values, uint64_t ticks)
{
	struct component_readings_at_moment
		moment; /* what `have` says is there, and nothing else */

	moment.ticks = ticks;
	moment.thread = thread;
	moment.read_source_bits = 0;
	component_bundle_call_all_stops(&kymo_regions.component_bundle, values, &moment);
}

static inline void start_frame_components(struct region_thread_state *thread, uint32_t depth,
					  uint64_t ticks)
{
	uint64_t *starts = get_frame_start_values(thread, depth);

	if (__builtin_expect(kymo_regions.profiles_ticks_only, 1))
		starts[0] = ticks;
	else
		read_component_start_values(thread, starts, ticks);
}

static inline void enter_profile_node_of_frame_in_tree(struct region_thread_state *thread,
						       uint32_t at)
{
	struct region_frame *frame = &thread->frames[at];

	frame->parent_profile_node = thread->node;
	frame->profile_node =
		profile_enter_node(thread->tree, thread->node, frame->region, frame->profile_begin);
	if (__builtin_expect(!frame->profile_node, 0))
		return;
	thread->node = frame->profile_node;
	frame->flags |= REGION_FRAME_PROFILED;
	start_frame_components(thread, at, frame->profile_begin);
}

/* Nodes for regions that are open: of the time before a fork, or before there was room for a tree.
 * Not for those that were left: they have ended unless their own ends come. */
static void reenter_open_profile_nodes(struct region_thread_state *thread)
{
	thread->node = 0;
	for (uint32_t i = 0; i < thread->depth; i++) {
		struct region_frame *frame = &thread->frames[i];

		frame->flags &= ~(uint32_t)REGION_FRAME_PROFILED;
		if ((frame->flags & (REGION_FRAME_RECORDED | REGION_FRAME_LEFT)) !=
		    REGION_FRAME_RECORDED)
			continue;
		enter_profile_node_of_frame_in_tree(thread, i);
	}
}

/* The thread's tree at its first profiled region, which is the innermost frame. */
__attribute__((noinline)) static bool
acquire_tree_and_reenter_open_nodes(struct region_thread_state *thread)
{
	thread->tree = profile_make_or_reuse_tree(thread);
	if (!thread->tree) {
		spool_count_loss(kymo_regions.spool, SPOOL_LOSS_PROFILE_NODES);
		return false;
	}
	thread->depth--; /* without the frame that is being made */
	reenter_open_profile_nodes(thread);
	thread->depth++;
	return true;
}

/* Enters the node of the innermost frame. */
static inline void enter_profile_node(struct region_thread_state *thread,
				      const struct region_frame *frame)
{
	if (__builtin_expect(!thread->tree, 0) && !acquire_tree_and_reenter_open_nodes(thread))
		return;
	if (__builtin_expect(thread->left_frame_count != 0, 0)) {
		thread->depth--;
		left_frames_leave_profile_node_for(thread, frame->region);
		thread->depth++;
	}
	enter_profile_node_of_frame_in_tree(thread, thread->depth - 1);
}

void region_enter_profile_node_of_frame(struct region_thread_state *thread, uint32_t at)
{
	if (!thread->tree)
		thread->tree = profile_make_or_reuse_tree(thread);
	if (thread->tree)
		enter_profile_node_of_frame_in_tree(thread, at);
	else
		spool_count_loss(kymo_regions.spool, SPOOL_LOSS_PROFILE_NODES);
}

static inline void stop_and_leave_profile_node(struct region_thread_state *thread,
					       const struct region_frame *frame, uint32_t depth,
					       uint64_t ticks)
{
	uint64_t *values = get_frame_start_values(thread, depth);

	if (!thread->tree)
		return;
	if (thread->node == frame->profile_node)
		thread->node = frame->parent_profile_node;
	ticks = region_window_clock(ticks);
	if (__builtin_expect(region_load_closed_reason_bits() & CONTROL_CLOSED_BY_WINDOW, 0)) {
		/* It goes on behind the window. */
		profile_stop_open_call(thread->tree, frame->profile_node, frame->profile_begin,
				       ticks);
		return;
	}
	if (__builtin_expect(kymo_regions.profiles_ticks_only, 1))
		values[0] = ticks > values[0] ? ticks - values[0] : 0;
	else
		compute_component_stop_values(thread, values, ticks);
	profile_leave_node(thread->tree, frame->profile_node, values, frame->profile_begin);
}

void region_add_whole_call_to_profile(struct region_thread_state *thread, region_id region,
				      uint64_t begin_ticks, uint64_t end_ticks)
{
	uint64_t values[COMPONENTS_PER_PROFILE_MAX] = {0};
	struct component_readings_at_moment moment = {.ticks = end_ticks, .thread = thread};
	uint32_t node;
	const struct component_bundle *bundle = &kymo_regions.component_bundle;

	if (!thread->tree) {
		thread->tree = profile_make_or_reuse_tree(thread);
		if (!thread->tree)
			return;
		reenter_open_profile_nodes(thread);
	}
	node = profile_enter_node(thread->tree, thread->node, region, begin_ticks);
	if (!node)
		return;
	component_bundle_call_all_samples(bundle, values,
					  &moment); /* levels are what they are now */
	for (uint32_t i = 0; i < bundle->count; i++) {
		if (bundle->components[i].description == &component_table[COMPONENT_WALL_CLOCK])
			values[i] = end_ticks - begin_ticks;
	}
	profile_leave_node(thread->tree, node, values, begin_ticks);
}

/* ---- begin ---- */

static inline void record_region_begin(struct region_thread_state *thread,
				       struct region_frame *frame, uint64_t ticks)
{
	if (kymo_regions.records_events) {
		if (stream_write_record(thread, SPOOL_RECORD_REGION_BEGIN, ticks,
					frame->region & REGION_NUMBER_MASK))
			frame->flags |= REGION_FRAME_TRACED;
		else
			spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_EVENTS);
	}
	if (kymo_regions.keeps_profile) {
		frame->profile_begin = region_window_clock(ticks);
		enter_profile_node(thread, frame);
	}
}

static bool skip_frame_unless_room_is_made(struct region_thread_state *thread)
{
	if (!thread->skipped && thread->depth < kymo_regions.max_depth &&
	    (thread->depth < thread->capacity || region_grow_frames(thread))) {
		thread->depth_check_limit =
			thread->waiting_frame_count || thread->left_frame_count ? 0
			: thread->capacity < kymo_regions.max_depth             ? thread->capacity
								    : kymo_regions.max_depth;
		return false;
	}
	thread->skipped++;
	thread->depth_check_limit = 0;
	spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_DEPTH);
	return true;
}

/* Is it nothing but the time that keeps the region from being recorded? */
static bool region_waits_for_window(const struct region_thread_state *thread, region_id region)
{
	uint32_t closed = region_load_closed_reason_bits();

	if (region & REGION_ID_USER_REGION_BIT)
		closed &= ~(uint32_t)CONTROL_CLOSED_BY_STOP;
	else if (thread->stopped)
		return false;
	return kymo_regions.has_windows && !(closed & ~(uint32_t)CONTROL_CLOSED_BY_WINDOW) &&
	       (!kymo_regions.select || thread->open_selecting_region_count);
}

/* For where not every region is. */
__attribute__((noinline)) static bool region_is_to_be_recorded(struct region_thread_state *thread,
							       struct region_frame *frame)
{
	region_id region = frame->region;

	if (!region_event_is_wanted(thread, region) &&
	    (!region_waits_for_window(thread, region) || waiting_frames_add(thread, frame)))
		return false;
	if (!kymo_regions.throttle_call_count || !names_region_is_throttled(region))
		return true;
	spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_THROTTLED);
	return false;
}

static inline __attribute__((always_inline)) void
begin_region(struct region_thread_state *thread, region_id region, const char *name, uint64_t scope)
{
	struct region_frame *frame;

	if (__builtin_expect(thread->depth >= thread->depth_check_limit, 0) &&
	    skip_frame_unless_room_is_made(thread))
		return;
	if (__builtin_expect(thread->waiting_frame_count != 0, 0))
		waiting_frames_begin_if_window_opened(thread);
	frame = &thread->frames[thread->depth++];
	frame->name = name;
	frame->region = region;
	frame->flags = 0;
	frame->scope = scope;
	thread->may_attach_values = false;
	if (__builtin_expect(region & REGION_ID_IS_THREAD_SELECTOR_BIT, 0))
		region_select_thread(thread, frame);
	if (__builtin_expect(region_load_closed_reason_bits() | thread->stopped |
				     kymo_regions.may_skip_regions,
			     0) &&
	    !region_is_to_be_recorded(thread, frame))
		return;
	frame->flags |= REGION_FRAME_RECORDED;
	frame->begin_ticks = region_get_event_ticks(thread);
	record_region_begin(thread, frame, frame->begin_ticks);
	thread->may_attach_values = frame->flags & REGION_FRAME_TRACED;
}

__attribute__((noinline)) static void begin_region_slow(region_id region)
{
	struct region_thread_state *thread;

	if (!region) {
		region_forbid_values_until_event();
		return;
	}
	if (region_thread_is_busy() && region_reserve_event(REGION_RESERVED_BEGIN, region, 0))
		return;
	thread = region_guard_try_enter();
	if (!thread)
		return;
	begin_region(thread, region, NULL, 0);
	region_guard_exit(thread);
}

void region_record_begin(struct region_thread_state *thread, region_id region)
{
	begin_region(thread, region, NULL, 0);
}

void region_begin(region_id region)
{
	struct region_thread_state *thread = region ? fast_path_mark_thread_busy_or_null() : NULL;
	bool begun = thread && fast_path_try_begin_region(thread, region, NULL);

	if (thread)
		region_guard_exit(thread);
	if (__builtin_expect(!begun, 0))
		begin_region_slow(region);
}

int region_begin_by_name(const char *category, const char *name)
{
	struct region_thread_state *thread = kymo_region_thread;
	region_id region;

	if (__builtin_expect(
		    thread && atomic_load_explicit(&thread->busy_state, memory_order_relaxed), 0) &&
	    region_reserve_named_event(REGION_RESERVED_NAMED_BEGIN, category, name))
		return 0;
	thread = region_guard_try_enter();
	if (!thread)
		return 0;
	region = names_find_or_add_through_cache(thread, category, name);
	thread->may_attach_values = false;
	if (region && __builtin_expect(!fast_path_try_begin_region(thread, region, name), 0))
		begin_region(thread, region, name, 0);
	region_guard_exit(thread);
	return 0;
}

/* ---- end ---- */

static void count_lost_event(struct region_thread_state *thread)
{
	thread->may_attach_values = false;
	spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_EVENTS);
}

static inline void write_region_end(struct region_thread_state *thread, uint64_t ticks)
{
	thread->may_attach_values = true;
	if (__builtin_expect(!stream_write_end_record(thread, ticks), 0))
		count_lost_event(thread);
}

/* Writes the end of a region that is not the innermost. */
void region_write_end_of_outer_region(struct region_thread_state *thread, uint64_t ticks,
				      region_id region, enum spool_region_end how)
{
	uint8_t *record = stream_reserve_record(thread, STREAM_RECORD_ROOM_BYTES, ticks), *at;

	if (!record) {
		count_lost_event(thread);
		return;
	}
	thread->may_attach_values = true;
	record[0] = SPOOL_RECORD_REGION_END_OTHER;
	at = leb128_write(record + 2, stream_advance_ticks_and_get_delta(&thread->stream, ticks));
	at = leb128_write(at, region & REGION_NUMBER_MASK);
	at = leb128_write(at, how);
	record[1] = (uint8_t)(at - record - 2);
	stream_commit_record(&thread->stream, at);
}

/* What an ending region leaves besides its record. */
static inline __attribute__((always_inline)) void
update_profile_and_throttle(struct region_thread_state *thread, const struct region_frame *frame,
			    uint32_t depth, uint64_t ticks)
{
	if (__builtin_expect(frame->flags & REGION_FRAME_LEFT, 0))
		left_frames_take_back(thread, &thread->frames[depth], ticks);
	if (frame->flags & REGION_FRAME_PROFILED)
		stop_and_leave_profile_node(thread, frame, depth, ticks);
	if (__builtin_expect(kymo_regions.throttle_call_count != 0, 0) &&
	    frame->flags & REGION_FRAME_RECORDED)
		names_count_call_and_throttle(frame->region, ticks - frame->begin_ticks);
}

void region_finish_frame(struct region_thread_state *thread, uint32_t at, uint64_t ticks)
{
	update_profile_and_throttle(thread, &thread->frames[at], at, ticks);
}

static void end_innermost_region(struct region_thread_state *thread)
{
	uint32_t depth = thread->depth - 1;
	struct region_frame *frame = &thread->frames[depth];
	uint64_t ticks;

	thread->may_attach_values = false;
	if (__builtin_expect(frame->flags & REGION_FRAME_SELECTS, 0))
		region_deselect_thread(thread);
	if (__builtin_expect(frame->flags & REGION_FRAME_WAITS, 0))
		thread->waiting_frame_count--;
	if (frame->flags & (REGION_FRAME_TRACED | REGION_FRAME_PROFILED)) {
		ticks = region_get_event_ticks(thread);
		update_profile_and_throttle(thread, frame, depth, ticks);
		/* While the stream is written, a new chunk must show the region as open. */
		if (frame->flags & REGION_FRAME_TRACED)
			write_region_end(thread, ticks);
	}
	thread->depth = depth;
}

/* Has the call of this frame been left, as seen from a call at `scope`? On one stack, the frames of
 * open calls lie above those of the calls that they make. */
static bool frame_was_left_by_longjmp(const struct region_thread_state *thread,
				      const struct region_frame *frame, uint64_t scope)
{
	const struct unwind_stack_bounds *bounds = &thread->thread->stack_bounds;

	return !(frame->flags & REGION_FRAME_LEFT) && frame->scope && frame->scope <= scope &&
	       frame->scope >= bounds->low && scope < bounds->high;
}

void region_begin_around_call(region_id region)
{
	uint64_t scope = (uint64_t)__builtin_frame_address(0);
	struct region_thread_state *thread;
	bool traced;

	if (!region) {
		region_forbid_values_until_event();
		return;
	}
	if (region_thread_is_busy() && region_reserve_event(REGION_RESERVED_BEGIN, region, 0))
		return;
	thread = region_guard_try_enter();
	if (!thread)
		return;
	while (thread->depth && !thread->skipped &&
	       frame_was_left_by_longjmp(thread, &thread->frames[thread->depth - 1], scope)) {
		end_innermost_region(thread);
		spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_UNBALANCED);
	}
	begin_region(thread, region, NULL, scope);
	traced = thread->may_attach_values;
	region_guard_exit(thread);
	if (traced)
		region_attach_interpreted_caller();
}

/* The innermost open frame of the region; depth when there is none. */
static uint32_t find_innermost_frame_of_region(const struct region_thread_state *thread,
					       region_id region)
{
	for (uint32_t i = thread->depth; i-- > 0;) {
		if (thread->frames[i].region == region)
			return i;
	}
	return thread->depth;
}

/* Ends frame `at` with all that is inside it. */
static void end_frame_with_inner_frames(struct region_thread_state *thread, uint32_t at)
{
	struct region_frame *outer = &thread->frames[at];
	uint64_t ticks = region_get_event_ticks(thread);

	if (outer->flags & REGION_FRAME_TRACED)
		region_write_end_of_outer_region(thread, ticks, outer->region,
						 SPOOL_REGION_END_WITH_INNER);
	while (thread->depth > at) {
		struct region_frame *frame = &thread->frames[thread->depth - 1];

		if (frame->flags & REGION_FRAME_SELECTS)
			region_deselect_thread(thread);
		if (frame->flags & REGION_FRAME_WAITS)
			thread->waiting_frame_count--;
		if (frame != outer && frame->flags & REGION_FRAME_LEFT)
			left_frames_drop(thread, frame); /* it ended before */
		else
			update_profile_and_throttle(thread, frame, thread->depth - 1, ticks);
		if (frame != outer) {
			if (!(outer->flags & REGION_FRAME_TRACED) &&
			    frame->flags & REGION_FRAME_TRACED)
				write_region_end(thread, ticks);
			spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_UNBALANCED);
		}
		thread->depth--;
	}
}

static bool is_innermost_region(const struct region_thread_state *thread, region_id region)
{
	return thread->depth && thread->frames[thread->depth - 1].region == region;
}

static bool count_unbalanced_region(void)
{
	spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_UNBALANCED);
	return false;
}

/* False, and counted, where it is not open. */
static bool find_and_end_region(struct region_thread_state *thread, region_id region,
				bool may_overlap)
{
	uint32_t at;

	if (__builtin_expect(thread->waiting_frame_count != 0, 0))
		waiting_frames_begin_if_window_opened(thread);
	if (__builtin_expect(thread->skipped != 0, 0)) {
		thread->skipped--;
		return true;
	}
	if (__builtin_expect(is_innermost_region(thread, region), 1)) {
		end_innermost_region(thread);
		return true;
	}
	at = find_innermost_frame_of_region(thread, region);
	if (at == thread->depth)
		return count_unbalanced_region();
	if (may_overlap)
		left_frames_end_outer_frame_alone(thread, at);
	else
		end_frame_with_inner_frames(thread, at);
	return true;
}

void region_record_end(struct region_thread_state *thread, region_id region, bool may_overlap)
{
	(void)find_and_end_region(thread, region, may_overlap);
}

__attribute__((noinline)) static bool end_region_slow(region_id region)
{
	struct region_thread_state *thread;
	bool found;

	if (!region)
		return true;
	if (region_thread_is_busy() && region_reserve_event(REGION_RESERVED_END, region, 0))
		return true;
	thread = kymo_region_thread ? region_guard_try_enter() : NULL;
	if (!thread)
		return false;
	found = find_and_end_region(thread, region, false);
	region_guard_exit(thread);
	return found;
}

bool region_end(region_id region)
{
	struct region_thread_state *thread = region ? fast_path_mark_thread_busy_or_null() : NULL;
	bool ended = thread && !thread->skipped && is_innermost_region(thread, region) &&
		     fast_path_try_end_region(thread, &thread->frames[thread->depth - 1]);

	if (thread)
		region_guard_exit(thread);
	return __builtin_expect(ended, 1) || end_region_slow(region);
}

static int find_and_end_region_by_name(struct region_thread_state *thread, const char *category,
				       const char *name)
{
	region_id region = names_find_or_add_through_cache(thread, category, name);

	if (!region) /* its category is off */
		return 0;
	return find_and_end_region(thread, region, true) ? 0 : -ENOENT;
}

__attribute__((noinline)) static int end_named_region_slow(const char *category, const char *name)
{
	struct region_thread_state *thread = kymo_region_thread;
	int result = 0;

	if (!thread)
		return 0;
	if (__builtin_expect(atomic_load_explicit(&thread->busy_state, memory_order_relaxed), 0) &&
	    region_reserve_named_event(REGION_RESERVED_NAMED_END, category, name))
		return 0;
	thread = region_guard_try_enter();
	if (!thread)
		return 0;
	if (!thread->waiting_frame_count && !thread->skipped && name && thread->depth &&
	    thread->frames[thread->depth - 1].name == name)
		end_innermost_region(thread);
	else
		result = find_and_end_region_by_name(thread, category, name);
	region_guard_exit(thread);
	return result;
}

int region_end_by_name(const char *category, const char *name)
{
	struct region_thread_state *thread = name ? fast_path_mark_thread_busy_or_null() : NULL;
	bool ended = thread && !thread->skipped && thread->depth &&
		     thread->frames[thread->depth - 1].name == name &&
		     fast_path_try_end_region(thread, &thread->frames[thread->depth - 1]);

	if (thread)
		region_guard_exit(thread);
	return __builtin_expect(ended, 1) ? 0 : end_named_region_slow(category, name);
}
