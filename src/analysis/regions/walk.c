/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See walk.h. A record that cannot be decoded makes the rest of its span unreadable; the
 * next span says what is open.
 */
#include "analysis/regions/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/regions/call_stream.h"
#include "analysis/regions/calls_private.h"
#include "analysis/regions/left_regions.h"
#include "analysis/regions/stack.h"
#include "analysis/regions/windows.h"

/* The event is complete but for values, which can only follow at once. */
static inline int visit_event_or_wait_for_values(struct region_event_walk_state *walk)
{
	if (!walk->in_window) {
		if (walk->event.kind == MODEL_EVENT_REGION_END)
			region_stack_remove(walk, walk->position);
		return 0;
	}
	walk->event.value_count = 0;
	region_values_clear(&walk->values);
	walk->pending = true;
	if (walk->cursor.at < walk->cursor.end && *walk->cursor.at != SPOOL_RECORD_ANNOTATION) {
		int result;

		walk->pending = false;
		result = walk->visit(walk, walk->context);
		if (walk->event.kind == MODEL_EVENT_REGION_END)
			region_stack_remove(walk, walk->position);
		return result;
	}
	return 0;
}

/* ---- records ---- */

/* MODEL_ENTRY_INDEX_NONE: damaged. The scan has seen to it that every region is known. */
static inline uint32_t read_region_index(struct region_event_walk_state *walk,
					 struct spool_record_payload_cursor *payload)
{
	uint64_t id = spool_read_unsigned(payload);

	return payload->bad ? MODEL_ENTRY_INDEX_NONE
			    : region_find_index_by_id(walk->process_regions, id);
}

static int read_begin_event(struct region_event_walk_state *walk,
			    struct spool_record_payload_cursor *payload)
{
	struct region_stack_entry entry = {.begin_ns = walk->event.time_ns,
					   .region = read_region_index(walk, payload)};
	int result = entry.region == MODEL_ENTRY_INDEX_NONE
			     ? REGION_WALK_DAMAGED_RECORD
			     : region_stack_push(&walk->open, &walk->depth, &walk->open_capacity,
						 &entry);

	if (result != 0)
		return result;
	walk->event.region = entry.region;
	walk->event.kind = MODEL_EVENT_REGION_BEGIN;
	walk->position = walk->depth - 1;
	return visit_event_or_wait_for_values(walk);
}

static int end_region_at_stack_position(struct region_event_walk_state *walk, size_t position)
{
	walk->event.kind = MODEL_EVENT_REGION_END;
	walk->event.is_implied = false;
	walk->event.region = walk->open[position].region;
	walk->position = position;
	left_regions_note_own_end(walk, &walk->open[position]);
	return visit_event_or_wait_for_values(walk);
}

static bool is_open_region(const struct region_stack_entry *entry)
{
	return !entry->function && !entry->ended;
}

/* Ends the innermost region; calls inside it end by words of their own. */
static int end_innermost_region(struct region_event_walk_state *walk)
{
	size_t position = walk->depth;

	while (position > 0 && !is_open_region(&walk->open[position - 1]))
		position--;
	if (position == 0) {
		walk->unbalanced_region_count++;
		return 0;
	}
	return end_region_at_stack_position(walk, position - 1);
}

static int read_end_event(struct region_event_walk_state *walk,
			  const struct spool_record_payload_cursor *payload)
{
	return payload->bad ? REGION_WALK_DAMAGED_RECORD : end_innermost_region(walk);
}

static int read_end_of_named_region_event(struct region_event_walk_state *walk,
					  struct spool_record_payload_cursor *payload)
{
	uint32_t region = read_region_index(walk, payload);
	uint64_t time_ns = walk->event.time_ns, how = spool_read_unsigned(payload);
	size_t position = walk->depth;
	int result = 0;

	if (region == MODEL_ENTRY_INDEX_NONE || payload->bad || how > SPOOL_REGION_END_GIVEN_UP)
		return REGION_WALK_DAMAGED_RECORD;
	if (how == SPOOL_REGION_END_GIVEN_UP)
		return left_regions_forget(walk, region);
	while (position > 0 && (!is_open_region(&walk->open[position - 1]) ||
				walk->open[position - 1].region != region))
		position--;
	if (position == 0) {
		walk->unbalanced_region_count++;
		return 0;
	}
	if (how == SPOOL_REGION_END_ALONE)
		result = left_regions_end_lost_ones(walk, position - 1, time_ns);
	for (size_t i = walk->depth;
	     how == SPOOL_REGION_END_WITH_INNER && result == 0 && i-- > position;) {
		if (walk->open[i].function)
			continue;
		walk->unbalanced_region_count += !walk->open[i].ended;
		result = region_stack_end_entry_without_record(walk, i, time_ns);
	}
	if (result != 0)
		return result;
	walk->event.time_ns = time_ns;
	return end_region_at_stack_position(walk, position - 1);
}

/* Recorded at its end; what was open then, or recorded before, began or was earlier. */
static int read_complete_region_event(struct region_event_walk_state *walk,
				      struct spool_record_payload_cursor *payload,
				      uint64_t before_ns)
{
	uint64_t ticks = spool_read_unsigned(payload), begin_ns;

	walk->event.region = read_region_index(walk, payload);
	if (walk->event.region == MODEL_ENTRY_INDEX_NONE)
		return REGION_WALK_DAMAGED_RECORD;
	begin_ns = ticks < walk->ticks
			   ? clock_map_ticks_to_boottime(&walk->process->clock, walk->ticks - ticks)
			   : 0;
	if (begin_ns < before_ns)
		begin_ns = before_ns;
	if (begin_ns < walk->from_ns)
		begin_ns = walk->from_ns;
	if (begin_ns > walk->event.time_ns)
		begin_ns = walk->event.time_ns;
	walk->event.kind = MODEL_EVENT_REGION_COMPLETE;
	walk->event.duration_ns = walk->event.time_ns - begin_ns;
	return visit_event_or_wait_for_values(walk);
}

static int read_mark_counter_or_progress(struct region_event_walk_state *walk,
					 struct spool_record_payload_cursor *payload)
{
	uint64_t bits;

	switch (payload->kind) {
	case SPOOL_RECORD_MARK:
		walk->event.kind = MODEL_EVENT_MARK;
		break;
	case SPOOL_RECORD_COUNTER:
		walk->event.kind = MODEL_EVENT_COUNTER;
		break;
	default:
		walk->event.kind = MODEL_EVENT_PROGRESS;
		bits = spool_read_unsigned(payload);
		if (bits > SPOOL_PROGRESS_END)
			return REGION_WALK_DAMAGED_RECORD;
		walk->event.progress = (enum spool_progress)bits;
	}
	walk->event.region = read_region_index(walk, payload);
	if (payload->kind == SPOOL_RECORD_COUNTER) {
		bits = spool_read_fixed_u64(payload);
		memcpy(&walk->event.counter, &bits, sizeof(bits));
	}
	if (walk->event.region == MODEL_ENTRY_INDEX_NONE || payload->bad)
		return REGION_WALK_DAMAGED_RECORD;
	return visit_event_or_wait_for_values(walk);
}

/* A whole call in which functions were called after all: these are instrumented, and come from the
 * other stream. */
static int read_complete_region_with_calls(struct region_event_walk_state *walk,
					   uint64_t begin_ticks, struct region_stack_entry entry)
{
	int result;

	entry.begin_ns = walk->last_ns = region_stack_ticks_to_time(walk, begin_ticks);
	if (!walk->in_window || walk->last_ns >= walk->to_ns)
		result = region_windows_advance(walk, walk->last_ns);
	else
		result = 0;
	if (result != 0 || walk->done)
		return result;
	result = region_stack_begin_implied_region(walk, &entry);
	if (result == 0)
		result = call_stream_apply_words_until(walk, walk->ticks);
	if (result != 0 || walk->done)
		return result;
	walk->event.time_ns = walk->last_ns = region_stack_ticks_to_time(walk, walk->ticks);
	if (walk->last_ns >= walk->to_ns || !walk->in_window)
		result = region_windows_advance(walk, walk->last_ns);
	return result != 0 || walk->done ? result : end_innermost_region(walk);
}

/* Does a window open or close while the call goes on? */
static bool call_crosses_window_edge(const struct region_event_walk_state *walk,
				     uint64_t begin_ticks)
{
	uint64_t edge_ns = walk->in_window ? walk->to_ns : walk->from_ns;

	return edge_ns != UINT64_MAX &&
	       clock_map_ticks_to_boottime(&walk->process->clock, walk->ticks) >= edge_ns &&
	       (!walk->in_window ||
		clock_map_ticks_to_boottime(&walk->process->clock, begin_ticks) < edge_ns);
}

/* The calls before this record, or while it went on. *done: it was read as well. */
static int apply_calls_before_record(struct region_event_walk_state *walk,
				     const struct spool_record_payload_cursor *payload, bool *done)
{
	struct spool_record_payload_cursor copy = *payload;
	uint64_t begin = walk->ticks;
	struct region_stack_entry entry = {0};
	int result;

	*done = false;
	if (payload->kind != SPOOL_RECORD_REGION_WHOLE)
		return call_stream_apply_words_until(walk, walk->ticks);
	begin -= spool_read_unsigned(&copy);
	entry.region = read_region_index(walk, &copy);
	if (begin > walk->ticks || entry.region == MODEL_ENTRY_INDEX_NONE)
		return call_stream_apply_words_until(walk, walk->ticks);
	result = call_stream_apply_words_until(walk, begin);
	if (result != 0 || walk->done ||
	    (!call_stream_has_words_until(walk, walk->ticks) &&
	     !call_crosses_window_edge(walk, begin)))
		return result;
	*done = true;
	return read_complete_region_with_calls(walk, begin, entry);
}

static int read_region_event(struct region_event_walk_state *walk,
			     struct spool_record_payload_cursor *payload)
{
	uint64_t before_ns;
	int result = region_stack_visit_pending_event(walk);

	if (result != 0)
		return result;
	walk->ticks += spool_read_unsigned(payload);
	if (payload->kind == SPOOL_RECORD_REGION_WHOLE ||
	    call_stream_has_words_until(walk, walk->ticks)) {
		bool done;

		result = apply_calls_before_record(walk, payload, &done);
		if (result != 0 || done || walk->done)
			return result;
	}
	before_ns = walk->last_ns;
	walk->event.time_ns = walk->last_ns = region_stack_ticks_to_time(walk, walk->ticks);
	if (!walk->in_window || walk->last_ns >= walk->to_ns) {
		result = region_windows_advance(walk, walk->last_ns);
		if (result != 0 || walk->done)
			return result;
		walk->event.time_ns = walk->last_ns;
	}
	walk->event.duration_ns = 0;
	walk->event.is_implied = false;
	switch (payload->kind) {
	case SPOOL_RECORD_REGION_BEGIN:
		return read_begin_event(walk, payload);
	case SPOOL_RECORD_REGION_END:
		return read_end_event(walk, payload);
	case SPOOL_RECORD_REGION_END_OTHER:
		return read_end_of_named_region_event(walk, payload);
	case SPOOL_RECORD_REGION_WHOLE:
		return read_complete_region_event(walk, payload, before_ns);
	default:
		return read_mark_counter_or_progress(walk, payload);
	}
}

/* ---- spans ---- */

/* The outermost regions of a deep stack are not recorded: they are those that are known already. */
static int copy_unreported_outer_regions(struct region_event_walk_state *walk,
					 struct spool_record_payload_cursor *payload)
{
	if (payload->at == payload->end || *payload->at != 0)
		return 0;
	(void)spool_read_unsigned(payload); /* region 0 */
	return region_stack_copy_open_to_reported(walk, false, spool_read_unsigned(payload));
}

static int read_regions_reported_open(struct region_event_walk_state *walk,
				      struct spool_record_payload_cursor *payload)
{
	uint64_t count = spool_read_unsigned(payload);
	uint64_t start_ns = walk->session->processes[walk->event.process].start_ns;

	const uint8_t *first = payload->at;
	int result;

	walk->open_at_start_depth = 0;
	result = copy_unreported_outer_regions(walk, payload);
	if (result != 0)
		return result;
	for (uint64_t i = payload->at != first; i < count; i++) {
		struct region_stack_entry entry = {.region = read_region_index(walk, payload)};
		uint64_t since = spool_read_unsigned(payload);

		if (entry.region == MODEL_ENTRY_INDEX_NONE || payload->bad)
			return REGION_WALK_DAMAGED_RECORD;
		if (since < walk->ticks)
			entry.begin_ns = clock_map_ticks_to_boottime(&walk->process->clock,
								     walk->ticks - since);
		if (entry.begin_ns < start_ns)
			entry.begin_ns = start_ns;
		result = region_stack_push(&walk->open_at_start, &walk->open_at_start_depth,
					   &walk->open_at_start_capacity, &entry);
		if (result != 0)
			return result;
	}
	return 0;
}

static int read_span_header(struct region_event_walk_state *walk,
			    struct spool_record_payload_cursor *payload)
{
	int result;

	(void)spool_read_unsigned(payload); /* internal id and tid, used by the scan */
	(void)spool_read_unsigned(payload);
	walk->ticks = spool_read_fixed_u64(payload);
	if (payload->bad)
		return REGION_WALK_DAMAGED_RECORD;
	result = read_regions_reported_open(walk, payload);
	return result == 0 ? region_stack_sync_with_reported_open(walk, false) : result;
}

static int read_event_value(struct region_event_walk_state *walk,
			    struct spool_record_payload_cursor *payload)
{
	int result = 0;

	if (walk->pending) /* else they are of a record that was left out */
		result = region_values_read_annotation(walk->session, walk->event.process,
						       &walk->values, payload);
	return result == -EBADMSG ? REGION_WALK_DAMAGED_RECORD : result;
}

static int read_span_records(struct region_event_walk_state *walk)
{
	struct spool_record_payload_cursor payload;
	int result = 0;

	while (result == 0 && !walk->done && spool_read_next_record(&walk->cursor, &payload)) {
		if (payload.kind == SPOOL_RECORD_REGION_SPAN)
			result = read_span_header(walk, &payload);
		else if (payload.kind == SPOOL_RECORD_ANNOTATION)
			result = read_event_value(walk, &payload);
		else if (payload.kind >= SPOOL_RECORD_REGION_BEGIN &&
			 payload.kind <= SPOOL_RECORD_REGION_WHOLE)
			result = read_region_event(walk, &payload);
	}
	return result == REGION_WALK_DAMAGED_RECORD ? 0 : result;
}

static int read_region_records_range(struct region_event_walk_state *walk,
				     struct thread_region_records_range *span)
{
	struct spool_file *file = &walk->process->file;
	int result = spool_file_read_chunk_part(file, span->chunk, span->from,
						span->to - span->from, &walk->cursor);

	if (walk->is_left_survey)
		span->left_count = walk->left_count;
	else
		walk->left_count = span->left_count;
	if (result == 0)
		return read_span_records(walk);
	if (result != -ENOMEM)
		problem_set(walk->problem, result, "cannot read %s: %s", file->path,
			    strerror(-result));
	return result;
}

static void reset_walk_for_thread(struct region_event_walk_state *walk, uint32_t thread)
{
	walk->event.thread = thread;
	walk->depth = 0;
	walk->last_ns = 0;
	walk->done = walk->pending = false;
	region_windows_begin_thread(walk);
}

/* Calls of instrumented functions are words of the other stream, or regions where a region has what
 * a word has no room for. */
static int end_open_calls_of_thread(struct region_event_walk_state *walk, uint64_t time_ns)
{
	const struct model_region *regions = session_get_regions(walk->session)->regions;
	int result = 0;

	for (size_t i = walk->depth; result == 0 && i-- > 0;) {
		if (walk->open[i].function ||
		    regions[walk->open[i].region].kind == SPOOL_REGION_FUNCTION)
			result = region_stack_end_entry_without_record(walk, i, time_ns);
	}
	return result;
}

/* Where the data of the thread ends. Calls ended with the thread, or with the process where that
 * called exit(); else they were open when the data ended. */
static int end_open_regions_of_thread(struct region_event_walk_state *walk)
{
	const struct model_thread *thread = &walk->session->threads[walk->event.thread];
	const struct model_process *process = &walk->session->processes[walk->event.process];
	bool ended = thread->end_ns != UINT64_MAX || process->state == SPOOL_STATE_EXITED;
	uint64_t end_ns = process->end_ns;
	int result = region_stack_visit_pending_event(walk);

	if (thread->end_ns < end_ns)
		end_ns = thread->end_ns;
	if (end_ns < walk->last_ns)
		end_ns = walk->last_ns;
	if (result == 0)
		result = region_windows_advance(walk, end_ns);
	if (result == 0 && ended)
		result = end_open_calls_of_thread(walk, end_ns);
	return result == 0 ? region_stack_end_all(walk, end_ns) : result;
}

/* The thread whose spans or calls come next; both are sorted by thread. */
static uint32_t find_next_thread_with_data(const struct region_event_walk_state *walk, size_t span,
					   size_t part)
{
	const struct process_regions_data *regions = walk->process_regions;
	const struct calls_of_process *calls = walk->process_calls;
	uint32_t thread = MODEL_ENTRY_INDEX_NONE;

	if (span < regions->record_range_count)
		thread = regions->record_ranges[span].thread;
	if (part < calls->part_count && calls->parts[part].thread < thread)
		thread = calls->parts[part].thread;
	return thread;
}

static int walk_all_threads(struct region_event_walk_state *walk)
{
	const struct process_regions_data *regions = walk->process_regions;
	size_t span = walk->calls_only ? regions->record_range_count : 0, part = 0;
	uint32_t thread;
	int result = 0;

	while (result == 0 &&
	       (thread = find_next_thread_with_data(walk, span, part)) != MODEL_ENTRY_INDEX_NONE) {
		reset_walk_for_thread(walk, thread);
		part = call_stream_begin_thread(walk, part);
		for (; result == 0 && span < regions->record_range_count; span++) {
			if (regions->record_ranges[span].thread != thread)
				break;
			if (!walk->done)
				result = read_region_records_range(walk,
								   &regions->record_ranges[span]);
		}
		if (result == 0)
			result = call_stream_apply_words_until(walk, UINT64_MAX);
		if (result == 0)
			result = end_open_regions_of_thread(walk);
	}
	return result;
}

int region_walk_process_events(struct region_event_walk_state *walk, struct session *session,
			       uint32_t process, struct problem *problem)
{
	struct session_private *private = session_get_private(session);
	int result =
		walk->is_left_survey ? 0 : left_regions_survey_process(session, process, problem);

	if (result != 0)
		return result;
	walk->session = session;
	walk->process = &private->processes[process];
	walk->process_regions = process_get_regions(session, process);
	walk->process_calls = process_get_calls(session, process);
	walk->problem = problem;
	walk->event.process = process;
	if (find_next_thread_with_data(walk, walk->calls_only ? SIZE_MAX : 0, 0) ==
	    MODEL_ENTRY_INDEX_NONE)
		return 0;
	result = spool_file_reopen(&walk->process->file, problem);
	if (result == 0)
		result = region_windows_init(walk);
	if (result == 0)
		result = call_stream_init(walk);
	if (result == 0)
		result = walk_all_threads(walk);
	spool_file_close_temporarily(&walk->process->file);
	free(walk->open);
	free(walk->open_at_start);
	region_windows_deinit(walk);
	region_values_deinit(&walk->values);
	call_stream_deinit(walk);
	if (result == -ENOMEM)
		return session_set_out_of_memory_problem(problem);
	return result;
}
