/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See ranges.h. The records of a process are gone through once, and launches and edges of ranges
 * noted; these are put in order by time; then time is walked with a stack of open
 * ranges for each thread.
 */
#include "analysis/gpu/ranges.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "analysis/gpu/gpu.h"
#include "common/array.h"
#include "common/text_hash.h"

enum range_event_kind { EVENT_RANGE_BEGIN, EVENT_RANGE_END, EVENT_LAUNCH };

struct range_event {
	uint64_t time_ns;
	uint64_t correlation; /* of the range, or the launching call */
	uint32_t tid;
	uint32_t number; /* in the file: what came first where the clock says the same */
	enum range_event_kind kind;
	union {
		const char *name;          /* of a range that begins */
		struct gpu_work_sums work; /* of a launch */
	};
};

/* What one process recorded, on its way to events in order. */
struct process_range_events {
	const struct gpu_records_of_process *process;
	struct range_event *list;
	size_t count, capacity;
	struct id_map range_begin_by_correlation, launch_by_correlation; /* to events */
	uint32_t record_number;
};

struct open_range {
	uint64_t correlation, begin_ns;
	uint32_t row; /* GPU_RANGE_NONE: it counts for the ones around it */
};

struct thread_open_ranges {
	struct open_range *open;
	size_t count, capacity;
};

/* All threads of a process, as time passes. */
struct range_walk {
	struct gpu_ranges *ranges;
	struct thread_open_ranges *threads;
	size_t thread_count, thread_capacity;
	struct id_map thread_by_tid;
	/* Threads in a range; the exclusive or of their numbers, which is the number of a single
	 * one. */
	uint32_t threads_in_range, numbers_of_threads_in_range;
};

/* ---- records ---- */

static int append_event(struct process_range_events *events, const struct range_event *event)
{
	if (events->count >= ID_MAP_NONE ||
	    array_reserve_one_more((void **)&events->list, &events->capacity, events->count,
				   sizeof(*events->list)) < 0)
		return -ENOMEM;
	events->list[events->count] = *event;
	events->list[events->count++].number = events->record_number;
	return 0;
}

/* The end of a range that began before the records do is no event. */
static int note_marker(struct process_range_events *events, const struct gpu_marker *marker)
{
	struct range_event event = {
		.time_ns = marker->time, .correlation = marker->correlation, .tid = marker->tid};
	uint32_t begin;

	if (marker->head.id == GPU_MARKER_BEGIN) {
		event.kind = EVENT_RANGE_BEGIN;
		event.name = gpu_get_interned_string(events->process, marker->message);
		if (id_map_set(&events->range_begin_by_correlation, marker->correlation,
			       (uint32_t)events->count) < 0)
			return -ENOMEM;
		return append_event(events, &event);
	}
	if (marker->head.id != GPU_MARKER_END)
		return 0;
	begin = id_map_get(&events->range_begin_by_correlation, marker->correlation);
	if (begin == ID_MAP_NONE)
		return 0;
	event.kind = EVENT_RANGE_END;
	event.tid = events->list[begin].tid;
	if (event.time_ns < events->list[begin].time_ns)
		event.time_ns = events->list[begin].time_ns;
	return append_event(events, &event);
}

static int note_call(struct process_range_events *events, const struct gpu_call *call)
{
	struct range_event event = {.time_ns = call->start,
				    .correlation = call->correlation,
				    .tid = call->tid,
				    .kind = EVENT_LAUNCH};

	if (call->correlation == 0)
		return 0;
	if (id_map_set(&events->launch_by_correlation, call->correlation, (uint32_t)events->count) <
	    0)
		return -ENOMEM;
	return append_event(events, &event);
}

static int note_edge_or_launch(const struct gpu_record_head *head, void *context)
{
	struct process_range_events *events = context;

	events->record_number++;
	if (head->kind == GPU_RECORD_MARKER)
		return note_marker(events, (const struct gpu_marker *)(const void *)head);
	if (head->kind == GPU_RECORD_CALL)
		return note_call(events, (const struct gpu_call *)(const void *)head);
	return 0;
}

void gpu_work_sums_add(struct gpu_work_sums *to, const struct gpu_work_sums *work)
{
	to->kernels += work->kernels;
	to->copies += work->copies;
	to->ns += work->ns;
}

struct launch_work_state {
	struct process_range_events *events;
	struct gpu_ranges *ranges;
};

/* Work is recorded before or after the call that launched it, so this is a second pass. */
static int add_work_to_launch(const struct gpu_record_head *head, void *context)
{
	struct launch_work_state *state = context;
	const struct gpu_kernel *kernel = (const void *)head;
	const struct gpu_copy *copy = (const void *)head;
	struct gpu_work_sums work = {0};
	uint64_t correlation;
	uint32_t launch;

	if (head->kind == GPU_RECORD_KERNEL && kernel->start != 0) {
		work = (struct gpu_work_sums){.kernels = 1, .ns = kernel->duration};
		correlation = kernel->correlation;
	} else if (head->kind == GPU_RECORD_COPY && copy->start != 0) {
		work = (struct gpu_work_sums){.copies = 1, .ns = copy->duration};
		correlation = copy->correlation;
	} else {
		return 0;
	}
	launch = correlation == 0 ? ID_MAP_NONE
				  : id_map_get(&state->events->launch_by_correlation, correlation);
	gpu_work_sums_add(launch == ID_MAP_NONE ? &state->ranges->unknown_launches
						: &state->events->list[launch].work,
			  &work);
	return 0;
}

static int compare_events(const void *left, const void *right)
{
	const struct range_event *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* ---- the tree ---- */

/* *ret: GPU_RANGE_NONE at the limit. */
static int find_or_add_row(struct gpu_ranges *ranges, const char *name, uint32_t parent,
			   uint32_t *ret)
{
	uint64_t key = text_hash_append(id_map_hash_key((uint64_t)parent + 1), name);
	uint32_t row;

	*ret = GPU_RANGE_NONE;
	while ((row = id_map_get(&ranges->row_by_name, key)) != ID_MAP_NONE) {
		if (ranges->rows[row].parent == parent &&
		    strcmp(ranges->rows[row].name, name) == 0) {
			*ret = row;
			return 0;
		}
		key++;
	}
	if (ranges->count >= GPU_RANGE_ROWS_MAX ||
	    (parent != GPU_RANGE_NONE && ranges->rows[parent].depth + 1 >= GPU_RANGE_DEPTH_MAX))
		return 0;
	if (array_reserve_one_more((void **)&ranges->rows, &ranges->capacity, ranges->count,
				   sizeof(*ranges->rows)) < 0 ||
	    id_map_set(&ranges->row_by_name, key, (uint32_t)ranges->count) < 0)
		return -ENOMEM;
	*ret = (uint32_t)ranges->count;
	ranges->rows[ranges->count++] = (struct gpu_range_row){
		.name = name,
		.parent = parent,
		.depth = parent == GPU_RANGE_NONE ? 0 : ranges->rows[parent].depth + 1};
	return 0;
}

/* ---- threads ---- */

static int find_or_add_thread(struct range_walk *walk, uint32_t tid, uint32_t *ret)
{
	*ret = id_map_get(&walk->thread_by_tid, tid);
	if (*ret != ID_MAP_NONE)
		return 0;
	if (array_reserve_one_more((void **)&walk->threads, &walk->thread_capacity,
				   walk->thread_count, sizeof(*walk->threads)) < 0 ||
	    id_map_set(&walk->thread_by_tid, tid, (uint32_t)walk->thread_count) < 0)
		return -ENOMEM;
	*ret = (uint32_t)walk->thread_count;
	walk->threads[walk->thread_count++] = (struct thread_open_ranges){0};
	return 0;
}

/* The innermost open range that has a row. */
static uint32_t get_innermost_row(const struct thread_open_ranges *thread)
{
	for (size_t i = thread->count; i-- > 0;) {
		if (thread->open[i].row != GPU_RANGE_NONE)
			return thread->open[i].row;
	}
	return GPU_RANGE_NONE;
}

static void note_thread_enters_or_leaves(struct range_walk *walk, uint32_t number, bool enters)
{
	walk->threads_in_range += enters ? 1 : -1u;
	walk->numbers_of_threads_in_range ^= number;
}

static int begin_range(struct range_walk *walk, uint32_t number, const struct range_event *event)
{
	struct thread_open_ranges *thread = &walk->threads[number];
	struct open_range range = {.correlation = event->correlation, .begin_ns = event->time_ns};
	int result =
		find_or_add_row(walk->ranges, event->name, get_innermost_row(thread), &range.row);

	if (result < 0 || array_reserve_one_more((void **)&thread->open, &thread->capacity,
						 thread->count, sizeof(*thread->open)) < 0)
		return -ENOMEM;
	if (range.row == GPU_RANGE_NONE) {
		walk->ranges->unnamed_count++;
	} else {
		walk->ranges->rows[range.row].count++;
		walk->ranges->rows[range.row].open++;
	}
	if (thread->count == 0)
		note_thread_enters_or_leaves(walk, number, true);
	thread->open[thread->count++] = range;
	return 0;
}

/* Ranges that are started and ended by number need not be nested. */
static void end_range(struct range_walk *walk, uint32_t number, const struct range_event *event)
{
	struct thread_open_ranges *thread = &walk->threads[number];
	size_t at = thread->count;

	while (at > 0 && thread->open[at - 1].correlation != event->correlation)
		at--;
	if (at == 0)
		return;
	at--;
	if (thread->open[at].row != GPU_RANGE_NONE) {
		struct gpu_range_row *row = &walk->ranges->rows[thread->open[at].row];

		row->open--;
		row->host_ns += event->time_ns - thread->open[at].begin_ns;
	}
	memmove(&thread->open[at], &thread->open[at + 1],
		(thread->count - at - 1) * sizeof(*thread->open));
	if (--thread->count == 0)
		note_thread_enters_or_leaves(walk, number, false);
}

static void add_launch(struct range_walk *walk, uint32_t number, const struct range_event *event)
{
	bool is_in_range = walk->threads[number].count != 0;
	uint32_t row = GPU_RANGE_NONE;

	if (is_in_range)
		row = get_innermost_row(&walk->threads[number]);
	else if (walk->threads_in_range == 1)
		row = get_innermost_row(&walk->threads[walk->numbers_of_threads_in_range]);
	if (row == GPU_RANGE_NONE)
		gpu_work_sums_add(&walk->ranges->outside, &event->work);
	else
		gpu_work_sums_add(is_in_range ? &walk->ranges->rows[row].own
					      : &walk->ranges->rows[row].from_other_threads,
				  &event->work);
}

static int walk_events(struct gpu_ranges *ranges, const struct process_range_events *events)
{
	struct range_walk walk = {.ranges = ranges};
	int result = 0;

	for (size_t i = 0; result == 0 && i < events->count; i++) {
		const struct range_event *event = &events->list[i];
		uint32_t number = 0;

		result = find_or_add_thread(&walk, event->tid, &number);
		if (result == 0 && event->kind == EVENT_RANGE_BEGIN)
			result = begin_range(&walk, number, event);
		else if (result == 0 && event->kind == EVENT_RANGE_END)
			end_range(&walk, number, event);
		else if (result == 0)
			add_launch(&walk, number, event);
	}
	for (size_t i = 0; i < walk.thread_count; i++)
		free(walk.threads[i].open);
	free(walk.threads);
	id_map_deinit(&walk.thread_by_tid);
	return result;
}

int gpu_ranges_add_process(struct gpu_ranges *ranges, const struct gpu_records_of_process *process)
{
	struct process_range_events events = {.process = process};
	struct launch_work_state state = {.events = &events, .ranges = ranges};
	int result = gpu_visit_records(process, note_edge_or_launch, &events);

	if (result == 0)
		result = gpu_visit_records(process, add_work_to_launch, &state);
	if (result == 0 && events.count != 0) {
		qsort(events.list, events.count, sizeof(*events.list), compare_events);
		result = walk_events(ranges, &events);
	}
	id_map_deinit(&events.range_begin_by_correlation);
	id_map_deinit(&events.launch_by_correlation);
	free(events.list);
	return result;
}

/* ---- sums and order ---- */

void gpu_ranges_sum_totals(struct gpu_ranges *ranges)
{
	for (size_t i = 0; i < ranges->count; i++) {
		struct gpu_range_row *row = &ranges->rows[i];

		row->total = row->own;
		gpu_work_sums_add(&row->total, &row->from_other_threads);
	}
	for (size_t i = ranges->count; i-- > 0;) {
		if (ranges->rows[i].parent != GPU_RANGE_NONE)
			gpu_work_sums_add(&ranges->rows[ranges->rows[i].parent].total,
					  &ranges->rows[i].total);
	}
}

static int compare_rows_by_total(const void *left, const void *right, void *context)
{
	const struct gpu_ranges *ranges = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	uint64_t a_ns = ranges->rows[a].total.ns, b_ns = ranges->rows[b].total.ns;

	if (a_ns != b_ns)
		return a_ns > b_ns ? -1 : 1;
	return a < b ? -1 : a > b;
}

uint32_t *gpu_ranges_sort_by_total(const struct gpu_ranges *ranges)
{
	uint32_t *order = calloc(ranges->count + 1, sizeof(*order));

	for (size_t i = 0; order != NULL && i < ranges->count; i++)
		order[i] = (uint32_t)i;
	if (order != NULL && ranges->count != 0)
		qsort_r(order, ranges->count, sizeof(*order), compare_rows_by_total,
			(void *)(uintptr_t)ranges);
	return order;
}

void gpu_range_write_path(const struct gpu_ranges *ranges, uint32_t row, char *text, size_t size)
{
	uint32_t path[GPU_RANGE_DEPTH_MAX];
	size_t depth = 0, used = 0;

	for (; row != GPU_RANGE_NONE && depth < ARRAY_SIZE(path); row = ranges->rows[row].parent)
		path[depth++] = row;
	text[0] = '\0';
	while (depth-- > 0 && used < size) {
		int length = snprintf(text + used, size - used, "%s%s", used != 0 ? " > " : "",
				      ranges->rows[path[depth]].name);

		used += length > 0 ? (size_t)length : 0;
	}
}

void gpu_ranges_deinit(struct gpu_ranges *ranges)
{
	free(ranges->rows);
	id_map_deinit(&ranges->row_by_name);
	*ranges = (struct gpu_ranges){0};
}
