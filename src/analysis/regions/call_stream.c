/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See call_stream.h. Nearly every event of a run may come through apply_call_word(), so it touches
 * little and has no way out of line but the visitor.
 */
#include "analysis/regions/call_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/regions/calls_private.h"
#include "analysis/regions/stack.h"
#include "analysis/regions/windows.h"

#define CALL_WORD_BYTES sizeof(uint64_t)

int call_stream_init(struct region_event_walk_state *walk)
{
	uint32_t limit = walk->process_calls->limit;

	walk->calls = (struct call_stream){0};
	if (limit == 0)
		return 0;
	walk->calls.open = calloc(limit, sizeof(*walk->calls.open));
	return walk->calls.open ? 0 : -ENOMEM;
}

void call_stream_deinit(struct region_event_walk_state *walk)
{
	free(walk->calls.open);
	free(walk->calls.buffer.bytes);
}

size_t call_stream_begin_thread(struct region_event_walk_state *walk, size_t first)
{
	const struct calls_of_process *calls = walk->process_calls;
	struct call_stream *stream = &walk->calls;

	stream->at = stream->end = NULL;
	stream->next_part_index = stream->end_part_index = first;
	while (stream->end_part_index < calls->part_count &&
	       calls->parts[stream->end_part_index].thread == walk->event.thread)
		stream->end_part_index++;
	return stream->end_part_index;
}

/* ---- words ---- */

/* Not a function that the scan saw: the file changed meanwhile. */
static inline bool call_id_is_unknown(const struct calls_of_process *calls, uint32_t id)
{
	return id >= calls->limit || calls->regions[id] == MODEL_ENTRY_INDEX_NONE;
}

static int visit_call_event(struct region_event_walk_state *walk, enum model_region_event_kind kind,
			    uint32_t region)
{
	walk->event.kind = kind;
	walk->event.region = region;
	walk->event.is_implied = false;
	walk->event.duration_ns = 0;
	walk->event.value_count = 0;
	return walk->visit(walk, walk->context);
}

static inline int walk_begin_instrumented_call(struct region_event_walk_state *walk, uint32_t id)
{
	struct region_stack_entry entry = {.begin_ns = walk->last_ns,
					   .region = walk->process_calls->regions[id],
					   .function = id};
	int result;

	if (walk->depth < walk->open_capacity && walk->depth < REGION_STACK_DEPTH_MAX) {
		walk->open[walk->depth++] = entry;
	} else {
		result = region_stack_push(&walk->open, &walk->depth, &walk->open_capacity, &entry);
		if (result != 0)
			return result == REGION_WALK_DAMAGED_RECORD ? 0 : result;
	}
	walk->calls.open[id]++;
	if (!walk->in_window)
		return 0;
	walk->position = walk->depth - 1;
	return visit_call_event(walk, MODEL_EVENT_REGION_BEGIN, entry.region);
}

/* Calls inside the one that ends did not return: they end with it. Regions inside it stay, they
 * end by records of their own. */
static int end_unreturned_calls_inside(struct region_event_walk_state *walk, uint32_t id,
				       size_t *position)
{
	size_t i = walk->depth;
	int result = 0;

	while (result == 0 && i-- > 0 && walk->open[i].function != id) {
		if (!walk->open[i].function)
			continue;
		walk->unwound_call_count++;
		result = region_stack_end_entry_without_record(walk, i, walk->last_ns);
	}
	*position = i;
	return result;
}

static inline int walk_end_instrumented_call(struct region_event_walk_state *walk, uint32_t id)
{
	size_t position = walk->depth - 1;
	int result = 0;

	if (walk->calls.open[id] == 0) {
		walk->unmatched_exit_count++;
		return 0;
	}
	if (walk->open[position].function != id)
		result = end_unreturned_calls_inside(walk, id, &position);
	if (result == 0 && walk->in_window) {
		walk->event.time_ns = walk->last_ns;
		walk->position = position;
		result =
			visit_call_event(walk, MODEL_EVENT_REGION_END, walk->open[position].region);
	}
	region_stack_remove(walk, position);
	return result;
}

/* The thread ended with all calls that are open. */
static int end_all_open_calls(struct region_event_walk_state *walk, uint64_t time_ns)
{
	int result = 0;

	for (size_t i = walk->depth; result == 0 && i-- > 0;) {
		if (walk->open[i].function)
			result = region_stack_end_entry_without_record(walk, i, time_ns);
	}
	return result;
}

static inline int apply_call_word(struct region_event_walk_state *walk, uint64_t word)
{
	uint32_t id = call_word_to_function_id(word);
	int result = 0;

	if (walk->pending)
		result = region_stack_visit_pending_event(walk);
	walk->event.time_ns = walk->last_ns = region_stack_ticks_to_time(walk, walk->calls.ticks);
	if (result == 0 && (!walk->in_window || walk->last_ns >= walk->to_ns)) {
		result = region_windows_advance(walk, walk->last_ns);
		walk->event.time_ns = walk->last_ns;
	}
	if (result != 0 || walk->done)
		return result;
	if (id == 0)
		return word & SPOOL_CALL_EXIT ? end_all_open_calls(walk, walk->last_ns) : 0;
	if (call_id_is_unknown(walk->process_calls, id))
		return 0;
	return word & SPOOL_CALL_EXIT ? walk_end_instrumented_call(walk, id)
				      : walk_begin_instrumented_call(walk, id);
}

static int apply_words_of_part_until(struct region_event_walk_state *walk, uint64_t until)
{
	struct call_stream *stream = &walk->calls;
	int result = 0;

	while (result == 0 && !walk->done && stream->at < stream->end) {
		uint64_t word, ticks;

		memcpy(&word, stream->at, CALL_WORD_BYTES);
		if (word) {
			ticks = call_word_to_ticks(word, stream->ticks);
			if (ticks > until)
				break;
			stream->ticks = ticks;
			result = apply_call_word(walk, word);
		}
		stream->at += CALL_WORD_BYTES;
	}
	return result;
}

/* ---- parts ---- */

static int read_calls_reported_open(struct region_event_walk_state *walk,
				    const struct spool_calls *head, uint64_t begin_ns)
{
	const struct calls_of_process *calls = walk->process_calls;
	int result;

	walk->open_at_start_depth = 0;
	result = region_stack_copy_open_to_reported(walk, true, head->open_left_out);
	for (uint32_t i = 0; result == 0 && i < head->open_count; i++) {
		struct region_stack_entry entry = {.begin_ns = begin_ns};

		memcpy(&entry.function, walk->calls.at + (size_t)i * 4, sizeof(entry.function));
		if (entry.function == 0 || call_id_is_unknown(calls, entry.function))
			continue;
		entry.region = calls->regions[entry.function];
		result = region_stack_push(&walk->open_at_start, &walk->open_at_start_depth,
					   &walk->open_at_start_capacity, &entry);
	}
	return result;
}

/* The next part: what it says is open is. */
static int read_next_call_part(struct region_event_walk_state *walk)
{
	struct call_stream *stream = &walk->calls;
	const struct call_record_part *part =
		&walk->process_calls->parts[stream->next_part_index++];
	struct spool_file *file = &walk->process->file;
	struct spool_chunk_record_cursor cursor;
	struct spool_calls head;
	uint64_t list;
	int result = spool_file_read_chunk_part_into(file, &stream->buffer, part->chunk, part->from,
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
	result = read_calls_reported_open(
		walk, &head, clock_map_ticks_to_boottime(&walk->process->clock, head.ticks));
	stream->at += list;
	stream->end = cursor.end - (size_t)(cursor.end - stream->at) % CALL_WORD_BYTES;
	if (result == 0)
		result = region_stack_sync_with_reported_open(walk, true);
	return result == REGION_WALK_DAMAGED_RECORD ? 0 : result;
}

bool call_stream_has_words_until(const struct region_event_walk_state *walk, uint64_t until)
{
	const struct call_stream *stream = &walk->calls;
	uint64_t word;

	if (stream->at == stream->end)
		return stream->next_part_index < stream->end_part_index &&
		       walk->process_calls->parts[stream->next_part_index].ticks <= until;
	memcpy(&word, stream->at, CALL_WORD_BYTES);
	return word == 0 || call_word_to_ticks(word, stream->ticks) <= until;
}

int call_stream_apply_words_until(struct region_event_walk_state *walk, uint64_t until)
{
	struct call_stream *stream = &walk->calls;
	int result = 0;

	while (result == 0 && !walk->done && call_stream_has_words_until(walk, until)) {
		if (stream->at == stream->end)
			result = read_next_call_part(walk);
		else
			result = apply_words_of_part_until(walk, until);
	}
	return result;
}
