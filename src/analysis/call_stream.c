/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See call_stream.h. Nearly every event of a run may come through take_word(), so it touches little
 * and has no way out of line but the visitor.
 */
#include "analysis/call_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/region_stack.h"

#define WORD sizeof(uint64_t)

int call_stream_init(struct region_walk *walk)
{
	uint32_t limit = walk->process->calls.limit;

	walk->calls = (struct call_stream){0};
	if (limit == 0)
		return 0;
	walk->calls.open = calloc(limit, sizeof(*walk->calls.open));
	return walk->calls.open ? 0 : -ENOMEM;
}

void call_stream_deinit(struct region_walk *walk)
{
	free(walk->calls.open);
	free(walk->calls.buffer.bytes);
}

size_t call_stream_begin(struct region_walk *walk, size_t first)
{
	const struct process_calls *calls = &walk->process->calls;
	struct call_stream *stream = &walk->calls;

	stream->at = stream->end = NULL;
	stream->part = stream->part_end = first;
	while (stream->part_end < calls->part_count &&
	       calls->parts[stream->part_end].thread == walk->event.thread)
		stream->part_end++;
	return stream->part_end;
}

/* ---- words ---- */

/* Not a function that the scan saw: the file changed meanwhile. */
static inline bool is_unknown(const struct process_calls *calls, uint32_t id)
{
	return id >= calls->limit || calls->regions[id] == MODEL_NONE;
}

static int visit(struct region_walk *walk, enum model_event_kind kind, uint32_t region)
{
	walk->event.kind = kind;
	walk->event.region = region;
	walk->event.implied = false;
	walk->event.duration_ns = 0;
	walk->event.value_count = 0;
	return walk->visit(walk, walk->context);
}

static inline int take_entry(struct region_walk *walk, uint32_t id)
{
	struct region_open entry = {.begin_ns = walk->last_ns,
				    .region = walk->process->calls.regions[id],
				    .function = id};
	int result;

	if (walk->depth < walk->open_capacity && walk->depth < WALK_DEPTH_MAX) {
		walk->open[walk->depth++] = entry;
	} else {
		result = region_stack_push(&walk->open, &walk->depth, &walk->open_capacity, &entry);
		if (result != 0)
			return result == WALK_DAMAGED ? 0 : result;
	}
	walk->calls.open[id]++;
	if (!walk->in_window)
		return 0;
	walk->position = walk->depth - 1;
	return visit(walk, MODEL_REGION_BEGIN, entry.region);
}

/* Calls inside the one that ends did not return: they end with it. Regions inside it stay, they
 * end by records of their own. */
static int unwind_to(struct region_walk *walk, uint32_t id, size_t *position)
{
	size_t i = walk->depth;
	int result = 0;

	while (result == 0 && i-- > 0 && walk->open[i].function != id) {
		if (!walk->open[i].function)
			continue;
		walk->unwound++;
		result = region_stack_imply_end(walk, i, walk->last_ns);
	}
	*position = i;
	return result;
}

static inline int take_exit(struct region_walk *walk, uint32_t id)
{
	size_t position = walk->depth - 1;
	int result = 0;

	if (walk->calls.open[id] == 0) {
		walk->unmatched++;
		return 0;
	}
	if (walk->open[position].function != id)
		result = unwind_to(walk, id, &position);
	if (result == 0 && walk->in_window) {
		walk->event.time_ns = walk->last_ns;
		walk->position = position;
		result = visit(walk, MODEL_REGION_END, walk->open[position].region);
	}
	region_stack_remove(walk, position);
	return result;
}

int call_stream_end(struct region_walk *walk, uint64_t time_ns)
{
	int result = 0;

	for (size_t i = walk->depth; result == 0 && i-- > 0;) {
		if (walk->open[i].function)
			result = region_stack_imply_end(walk, i, time_ns);
	}
	return result;
}

static inline int take_word(struct region_walk *walk, uint64_t word)
{
	uint32_t id = call_word_id(word);
	int result = 0;

	if (walk->pending)
		result = region_stack_flush(walk);
	walk->event.time_ns = walk->last_ns = region_stack_time(walk, walk->calls.ticks);
	if (result == 0 && (!walk->in_window || walk->last_ns >= walk->to_ns)) {
		result = region_stack_cross_window(walk, walk->last_ns);
		walk->event.time_ns = walk->last_ns;
	}
	if (result != 0 || walk->done)
		return result;
	if (id == 0)
		return word & SPOOL_CALL_EXIT ? call_stream_end(walk, walk->last_ns) : 0;
	if (is_unknown(&walk->process->calls, id))
		return 0;
	return word & SPOOL_CALL_EXIT ? take_exit(walk, id) : take_entry(walk, id);
}

static int take_words(struct region_walk *walk, uint64_t until)
{
	struct call_stream *stream = &walk->calls;
	int result = 0;

	while (result == 0 && !walk->done && stream->at < stream->end) {
		uint64_t word, ticks;

		memcpy(&word, stream->at, WORD);
		if (word) {
			ticks = call_word_ticks(word, stream->ticks);
			if (ticks > until)
				break;
			stream->ticks = ticks;
			result = take_word(walk, word);
		}
		stream->at += WORD;
	}
	return result;
}

/* ---- parts ---- */

static int read_told(struct region_walk *walk, const struct spool_calls *head, uint64_t begin_ns)
{
	const struct process_calls *calls = &walk->process->calls;
	int result;

	walk->told_depth = 0;
	result = region_stack_tell(walk, true, head->open_left_out);
	for (uint32_t i = 0; result == 0 && i < head->open_count; i++) {
		struct region_open entry = {.begin_ns = begin_ns};

		memcpy(&entry.function, walk->calls.at + (size_t)i * 4, sizeof(entry.function));
		if (entry.function == 0 || is_unknown(calls, entry.function))
			continue;
		entry.region = calls->regions[entry.function];
		result = region_stack_push(&walk->told, &walk->told_depth, &walk->told_capacity,
					   &entry);
	}
	return result;
}

/* The next part: what it says is open is. */
static int begin_part(struct region_walk *walk)
{
	struct call_stream *stream = &walk->calls;
	const struct call_part *part = &walk->process->calls.parts[stream->part++];
	struct spool_file *file = &walk->process->file;
	struct spool_cursor cursor;
	struct spool_calls head;
	uint64_t list;
	int result = spool_file_read_into(file, &stream->buffer, part->chunk, part->from,
					  part->size, &cursor);

	stream->at = stream->end = NULL;
	if (result < 0 && result != -ENOMEM)
		problem_set(walk->problem, result, "cannot read %s: %s", file->path,
			    strerror(-result));
	if (result < 0 || (size_t)(cursor.end - cursor.at) < sizeof(head))
		return result;
	memcpy(&head, cursor.at, sizeof(head));
	list = ((uint64_t)head.open_count * 4 + 7) / 8 * 8;
	cursor.at += sizeof(head);
	if (list > (uint64_t)(cursor.end - cursor.at))
		return 0;
	stream->at = cursor.at;
	stream->ticks = head.ticks;
	result = read_told(walk, &head, clock_map_boottime(&walk->process->clock, head.ticks));
	stream->at += list;
	stream->end = cursor.end - (size_t)(cursor.end - stream->at) % WORD;
	if (result == 0)
		result = region_stack_reconcile(walk, true);
	return result == WALK_DAMAGED ? 0 : result;
}

bool call_stream_has(const struct region_walk *walk, uint64_t until)
{
	const struct call_stream *stream = &walk->calls;
	uint64_t word;

	if (stream->at == stream->end)
		return stream->part < stream->part_end &&
		       walk->process->calls.parts[stream->part].ticks <= until;
	memcpy(&word, stream->at, WORD);
	return word == 0 || call_word_ticks(word, stream->ticks) <= until;
}

int call_stream_take(struct region_walk *walk, uint64_t until)
{
	struct call_stream *stream = &walk->calls;
	int result = 0;

	while (result == 0 && !walk->done && call_stream_has(walk, until)) {
		if (stream->at == stream->end)
			result = begin_part(walk);
		else
			result = take_words(walk, until);
	}
	return result;
}
