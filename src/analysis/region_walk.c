/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See region_walk.h. A record that cannot be decoded makes the rest of its span unreadable; the
 * next span says what is open.
 */
#include "analysis/region_walk.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Not an errno, so that no callback can mean it. */
#define WALK_DAMAGED INT_MIN

/* MAX_DEPTH is 65535 at most; more is damage. */
#define WALK_DEPTH_MAX 65536

/* ---- delivery ---- */

static int visit(struct region_walk *walk, enum model_event_kind kind, size_t position,
		 uint64_t time_ns)
{
	walk->position = position;
	walk->event.kind = kind;
	walk->event.region = walk->open[position].region;
	walk->event.time_ns = time_ns;
	walk->event.implied = true;
	walk->event.duration_ns = 0;
	walk->event.value_count = 0;
	return walk->visit(walk, walk->context);
}

static void remove_open(struct region_walk *walk, size_t position)
{
	walk->depth--;
	if (position < walk->depth)
		memmove(&walk->open[position], &walk->open[position + 1],
			(walk->depth - position) * sizeof(*walk->open));
}

/* Ends a region that no record ended. */
static int imply_end(struct region_walk *walk, size_t position, uint64_t time_ns)
{
	int result = walk->in_window && !walk->done
			     ? visit(walk, MODEL_REGION_END, position, time_ns)
			     : 0;

	remove_open(walk, position);
	return result;
}

static int imply_ends(struct region_walk *walk, uint64_t time_ns)
{
	int result = 0;

	walk->unfinished = true;
	while (result == 0 && walk->depth > 0)
		result = imply_end(walk, walk->depth - 1, time_ns);
	walk->unfinished = false;
	return result;
}

/* Before anything that happens at this time: the window may begin or end there. */
static int cross_window(struct region_walk *walk, uint64_t time_ns)
{
	int result = 0;

	if (!walk->in_window && time_ns >= walk->from_ns) {
		walk->in_window = true;
		for (size_t i = 0; result == 0 && i < walk->depth; i++) {
			walk->open[i].begin_ns = walk->from_ns;
			result = visit(walk, MODEL_REGION_BEGIN, i, walk->from_ns);
		}
	}
	if (result == 0 && time_ns >= walk->to_ns) {
		result = imply_ends(walk, walk->to_ns);
		walk->done = true;
	}
	return result;
}

/* Visits the event that waited for its values. */
static int flush(struct region_walk *walk)
{
	int result;

	if (!walk->pending)
		return 0;
	walk->pending = false;
	region_values_settle(&walk->values);
	walk->event.values = walk->values.items;
	walk->event.value_count = walk->values.count;
	result = walk->visit(walk, walk->context);
	if (walk->event.kind == MODEL_REGION_END)
		remove_open(walk, walk->position);
	return result;
}

/* The event is complete but for values, which can only follow at once. */
static inline int deliver(struct region_walk *walk)
{
	if (!walk->in_window) {
		if (walk->event.kind == MODEL_REGION_END)
			remove_open(walk, walk->position);
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
			remove_open(walk, walk->position);
		return result;
	}
	return 0;
}

/* ---- records ---- */

static inline uint64_t time_of(struct region_walk *walk, uint64_t ticks)
{
	uint64_t time_ns = clock_map_boottime(&walk->process->clock, ticks);

	if (time_ns < walk->last_ns)
		time_ns = walk->last_ns;
	return time_ns;
}

/* MODEL_NONE: damaged. The scan has seen to it that every region is known. */
static inline uint32_t take_region(struct region_walk *walk, struct spool_payload *payload)
{
	uint64_t id = spool_unsigned(payload);

	return payload->bad ? MODEL_NONE : region_of_id(&walk->process->regions, id);
}

static int open_push(struct region_open **open, size_t *depth, size_t *capacity,
		     struct region_open entry)
{
	if (*depth >= WALK_DEPTH_MAX)
		return WALK_DAMAGED;
	if (array_reserve((void **)open, capacity, *depth, sizeof(entry)) < 0)
		return -ENOMEM;
	(*open)[(*depth)++] = entry;
	return 0;
}

static int read_begin(struct region_walk *walk, struct spool_payload *payload)
{
	struct region_open entry = {.begin_ns = walk->event.time_ns,
				    .region = take_region(walk, payload)};
	int result = entry.region == MODEL_NONE
			     ? WALK_DAMAGED
			     : open_push(&walk->open, &walk->depth, &walk->open_capacity, entry);

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

static int read_end(struct region_walk *walk, const struct spool_payload *payload)
{
	if (payload->bad)
		return WALK_DAMAGED;
	if (walk->depth == 0) {
		walk->unbalanced++;
		return 0;
	}
	return end_at(walk, walk->depth - 1);
}

static int read_end_other(struct region_walk *walk, struct spool_payload *payload)
{
	uint32_t region = take_region(walk, payload);
	uint64_t time_ns = walk->event.time_ns, how = spool_unsigned(payload);
	size_t position = walk->depth;
	int result = 0;

	if (region == MODEL_NONE || payload->bad || how > 1)
		return WALK_DAMAGED;
	while (position > 0 && walk->open[position - 1].region != region)
		position--;
	if (position == 0) {
		walk->unbalanced++;
		return 0;
	}
	while (how == 1 && result == 0 && walk->depth > position) {
		walk->unbalanced++;
		result = imply_end(walk, walk->depth - 1, time_ns);
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

static int read_event(struct region_walk *walk, struct spool_payload *payload)
{
	uint64_t before_ns = walk->last_ns;
	int result = flush(walk);

	if (result != 0)
		return result;
	walk->ticks += spool_unsigned(payload);
	walk->event.time_ns = walk->last_ns = time_of(walk, walk->ticks);
	if (!walk->in_window || walk->last_ns >= walk->to_ns) {
		result = cross_window(walk, walk->last_ns);
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

/* A region whose end waits for its values is not open any more. */
static bool end_waits(const struct region_walk *walk)
{
	return walk->pending && walk->event.kind == MODEL_REGION_END;
}

static size_t open_depth(const struct region_walk *walk)
{
	return walk->depth - end_waits(walk);
}

static const struct region_open *open_at(const struct region_walk *walk, size_t i)
{
	return &walk->open[i + (end_waits(walk) && i >= walk->position)];
}

/* Of a deep stack the outermost regions are not told: they are those that are known already. */
static int take_untold(struct region_walk *walk, struct spool_payload *payload)
{
	size_t known = open_depth(walk);
	uint64_t untold;
	int result = 0;

	if (payload->at == payload->end || *payload->at != 0)
		return 0;
	(void)spool_unsigned(payload); /* region 0 */
	untold = spool_unsigned(payload);
	for (size_t i = 0; result == 0 && i < untold && i < known; i++)
		result = open_push(&walk->told, &walk->told_depth, &walk->told_capacity,
				   *open_at(walk, i));
	return result;
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
		result = open_push(&walk->told, &walk->told_depth, &walk->told_capacity, entry);
		if (result != 0)
			return result;
	}
	return 0;
}

/* Open regions that are those that the span tells of, from the outermost. */
static size_t common_depth(const struct region_walk *walk)
{
	size_t depth = 0, open = open_depth(walk);

	while (depth < open && depth < walk->told_depth &&
	       open_at(walk, depth)->region == walk->told[depth].region &&
	       walk->told[depth].begin_ns <= walk->last_ns)
		depth++;
	return depth;
}

static int imply_begin(struct region_walk *walk, struct region_open entry)
{
	int result = 0;

	if (entry.begin_ns < walk->last_ns)
		entry.begin_ns = walk->last_ns;
	walk->last_ns = entry.begin_ns;
	if (!walk->in_window || entry.begin_ns >= walk->to_ns)
		result = cross_window(walk, entry.begin_ns);
	if (result != 0 || walk->done)
		return result;
	result = open_push(&walk->open, &walk->depth, &walk->open_capacity, entry);
	if (result != 0 || !walk->in_window)
		return result;
	return visit(walk, MODEL_REGION_BEGIN, walk->depth - 1, entry.begin_ns);
}

static int reconcile(struct region_walk *walk)
{
	size_t common = common_depth(walk);
	int result = 0;

	if (common == open_depth(walk) && common == walk->told_depth)
		return 0;
	result = flush(walk);
	while (result == 0 && walk->depth > common)
		result = imply_end(walk, walk->depth - 1, walk->last_ns);
	for (size_t i = common; result == 0 && !walk->done && i < walk->told_depth; i++)
		result = imply_begin(walk, walk->told[i]);
	return result;
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
	return result == 0 ? reconcile(walk) : result;
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

static int walk_span(struct region_walk *walk, const struct region_span *span,
		     struct problem *problem)
{
	struct spool_file *file = &walk->process->file;
	int result = spool_file_read_part(file, span->chunk, span->from, span->to - span->from,
					  &walk->cursor);

	if (result == 0)
		return walk_records(walk);
	if (result != -ENOMEM)
		problem_set(problem, result, "cannot read %s: %s", file->path, strerror(-result));
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

/* Where the data of the thread ends. */
static int end_thread(struct region_walk *walk)
{
	const struct model_thread *thread = &walk->session->threads[walk->event.thread];
	uint64_t end_ns = walk->session->processes[walk->event.process].end_ns;
	int result = flush(walk);

	if (thread->end_ns < end_ns)
		end_ns = thread->end_ns;
	if (end_ns < walk->last_ns)
		end_ns = walk->last_ns;
	if (result == 0)
		result = cross_window(walk, end_ns);
	return result == 0 ? imply_ends(walk, end_ns) : result;
}

static int walk_threads(struct region_walk *walk, struct problem *problem)
{
	const struct process_regions *regions = &walk->process->regions;
	int result = 0;

	for (size_t i = 0; result == 0 && i < regions->span_count;) {
		uint32_t thread = regions->spans[i].thread;

		begin_thread(walk, thread);
		for (; result == 0 && i < regions->span_count; i++) {
			if (regions->spans[i].thread != thread)
				break;
			if (!walk->done)
				result = walk_span(walk, &regions->spans[i], problem);
		}
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
	walk->event.process = process;
	if (walk->process->regions.span_count == 0)
		return 0;
	walk->from_ns = options->from_ns ? session->start_ns + options->from_ns : 0;
	walk->to_ns = options->to_ns ? session->start_ns + options->to_ns : UINT64_MAX;
	result = spool_file_resume(&walk->process->file, problem);
	if (result == 0)
		result = walk_threads(walk, problem);
	spool_file_pause(&walk->process->file);
	free(walk->open);
	free(walk->told);
	region_values_deinit(&walk->values);
	if (result == -ENOMEM)
		return session_out_of_memory(problem);
	return result;
}
