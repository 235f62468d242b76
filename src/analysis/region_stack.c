/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See region_stack.h.
 */
#include "analysis/region_stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

void region_stack_remove(struct region_walk *walk, size_t position)
{
	uint32_t function = walk->open[position].function;

	if (function)
		walk->calls.open[function]--;
	walk->depth--;
	if (position < walk->depth)
		memmove(&walk->open[position], &walk->open[position + 1],
			(walk->depth - position) * sizeof(*walk->open));
}

int region_stack_imply_end(struct region_walk *walk, size_t position, uint64_t time_ns)
{
	int result = walk->in_window && !walk->done
			     ? visit(walk, MODEL_REGION_END, position, time_ns)
			     : 0;

	region_stack_remove(walk, position);
	return result;
}

int region_stack_end_all(struct region_walk *walk, uint64_t time_ns)
{
	int result = 0;

	walk->unfinished = true;
	while (result == 0 && walk->depth > 0)
		result = region_stack_imply_end(walk, walk->depth - 1, time_ns);
	walk->unfinished = false;
	return result;
}

int region_stack_cross_window(struct region_walk *walk, uint64_t time_ns)
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
		result = region_stack_end_all(walk, walk->to_ns);
		walk->done = true;
	}
	return result;
}

int region_stack_flush(struct region_walk *walk)
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
		region_stack_remove(walk, walk->position);
	return result;
}

/* ---- what the data says is open ---- */

/* A region whose end waits for its values is not open any more. */
static bool counts(const struct region_walk *walk, size_t i, bool calls)
{
	return (walk->open[i].function != 0) == calls &&
	       !(walk->pending && walk->event.kind == MODEL_REGION_END && walk->position == i);
}

int region_stack_tell(struct region_walk *walk, bool calls, uint64_t count)
{
	int result = 0;

	for (size_t i = 0; result == 0 && count > 0 && i < walk->depth; i++) {
		if (!counts(walk, i, calls))
			continue;
		result = region_stack_push(&walk->told, &walk->told_depth, &walk->told_capacity,
					   &walk->open[i]);
		count--;
	}
	return result;
}

/* When a call began that is told of is not known, so it is always the one that is known. */
static bool same(const struct region_walk *walk, const struct region_open *open,
		 const struct region_open *told)
{
	return open->region == told->region && open->function == told->function &&
	       (told->function || told->begin_ns <= walk->last_ns);
}

/* Open regions that are those that the data tells of, from the outermost: how many; *position is
 * that of the first one that is not. */
static size_t common_depth(const struct region_walk *walk, bool calls, size_t *position)
{
	size_t depth = 0, i;

	for (i = 0; i < walk->depth; i++) {
		if (!counts(walk, i, calls))
			continue;
		if (depth == walk->told_depth || !same(walk, &walk->open[i], &walk->told[depth]))
			break;
		depth++;
	}
	*position = i;
	return depth;
}

int region_stack_begin(struct region_walk *walk, const struct region_open *entry)
{
	int result = region_stack_push(&walk->open, &walk->depth, &walk->open_capacity, entry);

	if (result != 0)
		return result;
	walk->open[walk->depth - 1].before = entry->function != 0;
	if (entry->function)
		walk->calls.open[entry->function]++;
	return walk->in_window ? visit(walk, MODEL_REGION_BEGIN, walk->depth - 1, entry->begin_ns)
			       : 0;
}

static int imply_begin(struct region_walk *walk, struct region_open entry)
{
	int result = 0;

	if (entry.begin_ns < walk->last_ns)
		entry.begin_ns = walk->last_ns;
	walk->last_ns = entry.begin_ns;
	if (!walk->in_window || entry.begin_ns >= walk->to_ns)
		result = region_stack_cross_window(walk, entry.begin_ns);
	if (result != 0 || walk->done)
		return result;
	return region_stack_begin(walk, &entry);
}

int region_stack_reconcile(struct region_walk *walk, bool calls)
{
	size_t position, common = common_depth(walk, calls, &position);
	int result;

	if (position == walk->depth && common == walk->told_depth)
		return 0;
	result = region_stack_flush(walk);
	/* What was told was copied, so it does not matter that the stack changes. */
	for (size_t i = walk->depth; result == 0 && i-- > position;) {
		if ((walk->open[i].function != 0) == calls)
			result = region_stack_imply_end(walk, i, walk->last_ns);
	}
	for (size_t i = common; result == 0 && !walk->done && i < walk->told_depth; i++)
		result = imply_begin(walk, walk->told[i]);
	return result;
}
