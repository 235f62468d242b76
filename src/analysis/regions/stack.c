/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See stack.h.
 */
#include "analysis/regions/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/regions/windows.h"

/* ---- delivery ---- */

int region_stack_visit_implied(struct region_event_walk_state *walk,
			       enum model_region_event_kind kind, size_t position, uint64_t time_ns)
{
	walk->position = position;
	walk->event.kind = kind;
	walk->event.region = walk->open[position].region;
	walk->event.time_ns = time_ns;
	walk->event.is_implied = true;
	walk->event.duration_ns = 0;
	walk->event.value_count = 0;
	return walk->visit(walk, walk->context);
}

void region_stack_remove(struct region_event_walk_state *walk, size_t position)
{
	uint32_t function = walk->open[position].function;

	if (function)
		walk->calls.open[function]--;
	walk->depth--;
	if (position < walk->depth)
		memmove(&walk->open[position], &walk->open[position + 1],
			(walk->depth - position) * sizeof(*walk->open));
}

int region_stack_end_entry_without_record(struct region_event_walk_state *walk, size_t position,
					  uint64_t time_ns)
{
	int result = walk->in_window && !walk->done && !walk->open[position].ended
			     ? region_stack_visit_implied(walk, MODEL_EVENT_REGION_END, position,
							  time_ns)
			     : 0;

	region_stack_remove(walk, position);
	return result;
}

int region_stack_end_all(struct region_event_walk_state *walk, uint64_t time_ns)
{
	int result = 0;

	walk->is_ended_by_data_end = true;
	while (result == 0 && walk->depth > 0)
		result = region_stack_end_entry_without_record(walk, walk->depth - 1, time_ns);
	walk->is_ended_by_data_end = false;
	return result;
}

int region_stack_visit_pending_event(struct region_event_walk_state *walk)
{
	int result;

	if (!walk->pending)
		return 0;
	walk->pending = false;
	region_values_set_text_pointers(&walk->values);
	walk->event.values = walk->values.items;
	walk->event.value_count = walk->values.count;
	result = walk->visit(walk, walk->context);
	if (walk->event.kind == MODEL_EVENT_REGION_END)
		region_stack_remove(walk, walk->position);
	return result;
}

/* ---- what the data says is open ---- */

/* A region whose end waits for its values is not open any more. */
static bool stack_entry_is_open_and_of_asked_stream(const struct region_event_walk_state *walk,
						    size_t i, bool calls)
{
	return (walk->open[i].function != 0) == calls &&
	       !(walk->pending && walk->event.kind == MODEL_EVENT_REGION_END &&
		 walk->position == i);
}

int region_stack_copy_open_to_reported(struct region_event_walk_state *walk, bool calls,
				       uint64_t count)
{
	int result = 0;

	for (size_t i = 0; result == 0 && count > 0 && i < walk->depth; i++) {
		if (!stack_entry_is_open_and_of_asked_stream(walk, i, calls))
			continue;
		result = region_stack_push(&walk->open_at_start, &walk->open_at_start_depth,
					   &walk->open_at_start_capacity, &walk->open[i]);
		count--;
	}
	return result;
}

/* When a call that is reported as open began is not known, so it is always the one that is known.
 */
static bool is_same_open_region(const struct region_event_walk_state *walk,
				const struct region_stack_entry *open,
				const struct region_stack_entry *told)
{
	return open->region == told->region && open->function == told->function &&
	       (told->function || told->begin_ns <= walk->last_ns);
}

/* Open regions that are those that the data tells of, from the outermost: how many; *position is
 * that of the first one that is not. */
static size_t find_common_open_depth(const struct region_event_walk_state *walk, bool calls,
				     size_t *position)
{
	size_t depth = 0, i;

	for (i = 0; i < walk->depth; i++) {
		if (!stack_entry_is_open_and_of_asked_stream(walk, i, calls))
			continue;
		if (depth == walk->open_at_start_depth ||
		    !is_same_open_region(walk, &walk->open[i], &walk->open_at_start[depth]))
			break;
		depth++;
	}
	*position = i;
	return depth;
}

int region_stack_begin_implied_region(struct region_event_walk_state *walk,
				      const struct region_stack_entry *entry)
{
	int result = region_stack_push(&walk->open, &walk->depth, &walk->open_capacity, entry);

	if (result != 0)
		return result;
	walk->open[walk->depth - 1].before = entry->function != 0;
	if (entry->function)
		walk->calls.open[entry->function]++;
	return walk->in_window ? region_stack_visit_implied(walk, MODEL_EVENT_REGION_BEGIN,
							    walk->depth - 1, entry->begin_ns)
			       : 0;
}

static int begin_implied_region_in_window(struct region_event_walk_state *walk,
					  struct region_stack_entry entry)
{
	int result = 0;

	if (entry.begin_ns < walk->last_ns)
		entry.begin_ns = walk->last_ns;
	walk->last_ns = entry.begin_ns;
	if (!walk->in_window || entry.begin_ns >= walk->to_ns)
		result = region_windows_advance(walk, entry.begin_ns);
	if (result != 0 || walk->done)
		return result;
	return region_stack_begin_implied_region(walk, &entry);
}

int region_stack_sync_with_reported_open(struct region_event_walk_state *walk, bool calls)
{
	size_t position, common = find_common_open_depth(walk, calls, &position);
	int result;

	if (position == walk->depth && common == walk->open_at_start_depth)
		return 0;
	result = region_stack_visit_pending_event(walk);
	/* What was told was copied, so it does not matter that the stack changes. */
	for (size_t i = walk->depth; result == 0 && i-- > position;) {
		if ((walk->open[i].function != 0) == calls)
			result = region_stack_end_entry_without_record(walk, i, walk->last_ns);
	}
	for (size_t i = common; result == 0 && !walk->done && i < walk->open_at_start_depth; i++)
		result = begin_implied_region_in_window(walk, walk->open_at_start[i]);
	return result;
}
