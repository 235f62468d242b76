/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See region_walk.h. A record that cannot be decoded makes the rest of its span unreadable; the
 * next span says what is open.
 */
#include "analysis/region_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/call_stream.h"
#include "analysis/region_stack.h"

/* The event is complete but for values, which can only follow at once. */
static inline int deliver(struct region_walk *walk)
{
	if (!walk->in_window) {
		if (walk->event.kind == MODEL_REGION_END)
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
		if (walk->event.kind == MODEL_REGION_END)
			region_stack_remove(walk, walk->position);
		return result;
	}
	return 0;
}

/* ---- records ---- */

/* MODEL_NONE: damaged. The scan has seen to it that every region is known. */
static inline uint32_t take_region(struct region_walk *walk, struct spool_payload *payload)
{
	uint64_t id = spool_unsigned(payload);

	return payload->bad ? MODEL_NONE : region_of_id(&walk->process->regions, id);
}

static int read_begin(struct region_walk *walk, struct spool_payload *payload)
{
	struct region_open entry = {.begin_ns = walk->event.time_ns,
				    .region = take_region(walk, payload)};
	int result = entry.region == MODEL_NONE ? WALK_DAMAGED
						: region_stack_push(&walk->open, &walk->depth,
								    &walk->open_capacity, &entry);

	if (result != 0)
		return result;
	walk->event.region = entry.region;
	walk->event.kind = MODEL_REGION_BEGIN;
	walk->position = walk->depth - 1;
	return deliver(walk);
}

static int end_at(struct region_walk *walk, size_t position)
{
	walk->event.kind = MODEL_REGION_END;
	walk->event.implied = false;
	walk->event.region = walk->open[position].region;
	walk->position = position;
	return deliver(walk);
}

/* Of the innermost region; calls inside it end by words of their own. */
static int end_innermost(struct region_walk *walk)
{
	size_t position = walk->depth;

	while (position > 0 && walk->open[position - 1].function)
		position--;
	if (position == 0) {
		walk->unbalanced++;
		return 0;
	}
	return end_at(walk, position - 1);
}

static int read_end(struct region_walk *walk, const struct spool_payload *payload)
{
	return payload->bad ? WALK_DAMAGED : end_innermost(walk);
}

static int read_end_other(struct region_walk *walk, struct spool_payload *payload)
{
	uint32_t region = take_region(walk, payload);
	uint64_t time_ns = walk->event.time_ns, how = spool_unsigned(payload);
	size_t position = walk->depth;
	int result = 0;

	if (region == MODEL_NONE || payload->bad || how > 1)
		return WALK_DAMAGED;
	while (position > 0 &&
	       (walk->open[position - 1].function || walk->open[position - 1].region != region))
		position--;
	if (position == 0) {
		walk->unbalanced++;
		return 0;
	}
	for (size_t i = walk->depth; how == 1 && result == 0 && i-- > position;) {
		if (walk->open[i].function)
			continue;
		walk->unbalanced++;
		result = region_stack_imply_end(walk, i, time_ns);
	}
	if (result != 0)
		return result;
	walk->event.time_ns = time_ns;
	return end_at(walk, position - 1);
}

/* Recorded at its end; what was open then, or recorded before, began or was earlier. */
static int read_whole(struct region_walk *walk, struct spool_payload *payload, uint64_t before_ns)
{
	uint64_t ticks = spool_unsigned(payload), begin_ns;

	walk->event.region = take_region(walk, payload);
	if (walk->event.region == MODEL_NONE)
		return WALK_DAMAGED;
	begin_ns = ticks < walk->ticks
			   ? clock_map_boottime(&walk->process->clock, walk->ticks - ticks)
			   : 0;
	if (begin_ns < before_ns)
		begin_ns = before_ns;
	if (begin_ns < walk->from_ns)
		begin_ns = walk->from_ns;
	if (begin_ns > walk->event.time_ns)
		begin_ns = walk->event.time_ns;
	walk->event.kind = MODEL_REGION_WHOLE;
	walk->event.duration_ns = walk->event.time_ns - begin_ns;
	return deliver(walk);
}

static int read_mark(struct region_walk *walk, struct spool_payload *payload)
{
	uint64_t bits;

	switch (payload->kind) {
	case SPOOL_RECORD_MARK:
		walk->event.kind = MODEL_MARK;
		break;
	case SPOOL_RECORD_COUNTER:
		walk->event.kind = MODEL_COUNTER;
		break;
	default:
		walk->event.kind = MODEL_PROGRESS;
		bits = spool_unsigned(payload);
		if (bits > SPOOL_PROGRESS_END)
			return WALK_DAMAGED;
		walk->event.progress = (enum spool_progress)bits;
	}
	walk->event.region = take_region(walk, payload);
	if (payload->kind == SPOOL_RECORD_COUNTER) {
		bits = spool_fixed(payload);
		memcpy(&walk->event.counter, &bits, sizeof(bits));
	}
	if (walk->event.region == MODEL_NONE || payload->bad)
		return WALK_DAMAGED;
	return deliver(walk);
}

/* A whole call in which functions were called after all: these are instrumented, and come from the
 * other stream. */
static int read_whole_with_calls(struct region_walk *walk, uint64_t begin_ticks,
				 struct region_open entry)
{
	int result;

	entry.begin_ns = walk->last_ns = region_stack_time(walk, begin_ticks);
	if (!walk->in_window || walk->last_ns >= walk->to_ns)
		result = region_stack_cross_window(walk, walk->last_ns);
	else
		result = 0;
	if (result != 0 || walk->done)
		return result;
	result = region_stack_begin(walk, &entry);
	if (result == 0)
		result = call_stream_take(walk, walk->ticks);
	if (result != 0 || walk->done)
		return result;
	walk->event.time_ns = walk->last_ns = region_stack_time(walk, walk->ticks);
	if (walk->last_ns >= walk->to_ns || !walk->in_window)
		result = region_stack_cross_window(walk, walk->last_ns);
	return result != 0 || walk->done ? result : end_innermost(walk);
}

/* The calls before this record, or while it went on. *done: it was read as well. */
static int take_calls(struct region_walk *walk, const struct spool_payload *payload, bool *done)
{
	struct spool_payload copy = *payload;
	uint64_t begin = walk->ticks;
	struct region_open entry = {0};
	int result;

	*done = false;
	if (payload->kind != SPOOL_RECORD_REGION_WHOLE)
		return call_stream_take(walk, walk->ticks);
	begin -= spool_unsigned(&copy);
	entry.region = take_region(walk, &copy);
	if (begin > walk->ticks || entry.region == MODEL_NONE)
		return call_stream_take(walk, walk->ticks);
	result = call_stream_take(walk, begin);
	if (result != 0 || walk->done || !call_stream_has(walk, walk->ticks))
		return result;
	*done = true;
	return read_whole_with_calls(walk, begin, entry);
}

static int read_event(struct region_walk *walk, struct spool_payload *payload)
{
	uint64_t before_ns;
	int result = region_stack_flush(walk);

	if (result != 0)
		return result;
	walk->ticks += spool_unsigned(payload);
	if (call_stream_has(walk, walk->ticks)) {
		bool done;

		result = take_calls(walk, payload, &done);
		if (result != 0 || done || walk->done)
			return result;
	}
	before_ns = walk->last_ns;
	walk->event.time_ns = walk->last_ns = region_stack_time(walk, walk->ticks);
	if (!walk->in_window || walk->last_ns >= walk->to_ns) {
		result = region_stack_cross_window(walk, walk->last_ns);
		if (result != 0 || walk->done)
			return result;
		walk->event.time_ns = walk->last_ns;
	}
	walk->event.duration_ns = 0;
	walk->event.implied = false;
	switch (payload->kind) {
	case SPOOL_RECORD_REGION_BEGIN:
		return read_begin(walk, payload);
	case SPOOL_RECORD_REGION_END:
		return read_end(walk, payload);
	case SPOOL_RECORD_REGION_END_OTHER:
		return read_end_other(walk, payload);
	case SPOOL_RECORD_REGION_WHOLE:
		return read_whole(walk, payload, before_ns);
	default:
		return read_mark(walk, payload);
	}
}

/* ---- spans ---- */

/* Of a deep stack the outermost regions are not told: they are those that are known already. */
static int take_untold(struct region_walk *walk, struct spool_payload *payload)
{
	if (payload->at == payload->end || *payload->at != 0)
		return 0;
	(void)spool_unsigned(payload); /* region 0 */
	return region_stack_tell(walk, false, spool_unsigned(payload));
}

static int read_told(struct region_walk *walk, struct spool_payload *payload)
{
	uint64_t count = spool_unsigned(payload);
	uint64_t start_ns = walk->session->processes[walk->event.process].start_ns;

	const uint8_t *first = payload->at;
	int result;

	walk->told_depth = 0;
	result = take_untold(walk, payload);
	if (result != 0)
		return result;
	for (uint64_t i = payload->at != first; i < count; i++) {
		struct region_open entry = {.region = take_region(walk, payload)};
		uint64_t since = spool_unsigned(payload);

		if (entry.region == MODEL_NONE || payload->bad)
			return WALK_DAMAGED;
		if (since < walk->ticks)
			entry.begin_ns =
				clock_map_boottime(&walk->process->clock, walk->ticks - since);
		if (entry.begin_ns < start_ns)
			entry.begin_ns = start_ns;
		result = region_stack_push(&walk->told, &walk->told_depth, &walk->told_capacity,
					   &entry);
		if (result != 0)
			return result;
	}
	return 0;
}

static int read_span(struct region_walk *walk, struct spool_payload *payload)
{
	int result;

	(void)spool_unsigned(payload); /* internal id and tid, used by the scan */
	(void)spool_unsigned(payload);
	walk->ticks = spool_fixed(payload);
	if (payload->bad)
		return WALK_DAMAGED;
	result = read_told(walk, payload);
	return result == 0 ? region_stack_reconcile(walk, false) : result;
}

static int read_value(struct region_walk *walk, struct spool_payload *payload)
{
	int result = 0;

	if (walk->pending) /* else they are of a record that was left out */
		result = region_values_add(&walk->values, payload);
	return result == -EBADMSG ? WALK_DAMAGED : result;
}

static int walk_records(struct region_walk *walk)
{
	struct spool_payload payload;
	int result = 0;

	while (result == 0 && !walk->done && spool_next(&walk->cursor, &payload)) {
		if (payload.kind == SPOOL_RECORD_REGION_SPAN)
			result = read_span(walk, &payload);
		else if (payload.kind == SPOOL_RECORD_ANNOTATION)
			result = read_value(walk, &payload);
		else if (payload.kind >= SPOOL_RECORD_REGION_BEGIN &&
			 payload.kind <= SPOOL_RECORD_REGION_WHOLE)
			result = read_event(walk, &payload);
	}
	return result == WALK_DAMAGED ? 0 : result;
}

static int walk_span(struct region_walk *walk, const struct region_span *span)
{
	struct spool_file *file = &walk->process->file;
	int result = spool_file_read_part(file, span->chunk, span->from, span->to - span->from,
					  &walk->cursor);

	if (result == 0)
		return walk_records(walk);
	if (result != -ENOMEM)
		problem_set(walk->problem, result, "cannot read %s: %s", file->path,
			    strerror(-result));
	return result;
}

static void begin_thread(struct region_walk *walk, uint32_t thread)
{
	walk->event.thread = thread;
	walk->depth = 0;
	walk->last_ns = 0;
	walk->in_window = walk->from_ns == 0;
	walk->done = walk->pending = false;
}

/* Where the data of the thread ends. Calls ended with the thread, or with the process where that
 * called exit(); else they were open when the data ended. */
static int end_thread(struct region_walk *walk)
{
	const struct model_thread *thread = &walk->session->threads[walk->event.thread];
	const struct model_process *process = &walk->session->processes[walk->event.process];
	bool ended = thread->end_ns != UINT64_MAX || process->state == SPOOL_STATE_EXITED;
	uint64_t end_ns = process->end_ns;
	int result = region_stack_flush(walk);

	if (thread->end_ns < end_ns)
		end_ns = thread->end_ns;
	if (end_ns < walk->last_ns)
		end_ns = walk->last_ns;
	if (result == 0)
		result = region_stack_cross_window(walk, end_ns);
	if (result == 0 && ended)
		result = call_stream_end(walk, end_ns);
	return result == 0 ? region_stack_end_all(walk, end_ns) : result;
}

/* The thread whose spans or calls come next; both are sorted by thread. */
static uint32_t next_thread(const struct region_walk *walk, size_t span, size_t part)
{
	const struct process_regions *regions = &walk->process->regions;
	const struct process_calls *calls = &walk->process->calls;
	uint32_t thread = MODEL_NONE;

	if (span < regions->span_count)
		thread = regions->spans[span].thread;
	if (part < calls->part_count && calls->parts[part].thread < thread)
		thread = calls->parts[part].thread;
	return thread;
}

static int walk_threads(struct region_walk *walk)
{
	const struct process_regions *regions = &walk->process->regions;
	size_t span = walk->calls_only ? regions->span_count : 0, part = 0;
	uint32_t thread;
	int result = 0;

	while (result == 0 && (thread = next_thread(walk, span, part)) != MODEL_NONE) {
		begin_thread(walk, thread);
		part = call_stream_begin(walk, part);
		for (; result == 0 && span < regions->span_count; span++) {
			if (regions->spans[span].thread != thread)
				break;
			if (!walk->done)
				result = walk_span(walk, &regions->spans[span]);
		}
		if (result == 0)
			result = call_stream_take(walk, UINT64_MAX);
		if (result == 0)
			result = end_thread(walk);
	}
	return result;
}

int region_walk_process(struct region_walk *walk, struct session *session, uint32_t process,
			struct problem *problem)
{
	struct session_private *private = session_private(session);
	const struct session_options *options = &private->options;
	int result;

	walk->session = session;
	walk->process = &private->processes[process];
	walk->problem = problem;
	walk->event.process = process;
	if (next_thread(walk, walk->calls_only ? SIZE_MAX : 0, 0) == MODEL_NONE)
		return 0;
	walk->from_ns = options->from_ns ? session->start_ns + options->from_ns : 0;
	walk->to_ns = options->to_ns ? session->start_ns + options->to_ns : UINT64_MAX;
	result = spool_file_resume(&walk->process->file, problem);
	if (result == 0)
		result = call_stream_init(walk);
	if (result == 0)
		result = walk_threads(walk);
	spool_file_pause(&walk->process->file);
	free(walk->open);
	free(walk->told);
	region_values_deinit(&walk->values);
	call_stream_deinit(walk);
	if (result == -ENOMEM)
		return session_out_of_memory(problem);
	return result;
}
