/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The timeline of regions: a row a call in the order in which they began, each thread by itself.
 * A row needs how long the call took, which is known only at its end, so the events are read twice:
 * first for the durations of a thread's calls in the order of their begins, then to write the rows.
 * Memory: 16 bytes a call.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "analysis/regions/regions.h"
#include "output/format.h"
#include "output/text/regions.h"

#define METRIC_COLUMNS 10

struct timeline_call_duration {
	uint64_t ns;
	uint64_t self_ns; /* while nothing was open that began after it */
};

/* A call that is open, outermost first. */
struct unfinished_call {
	size_t call;
	uint64_t begin_ns;
	uint32_t region;
};

struct timeline_writer {
	struct session *session;
	FILE *stream;
	struct timeline_call_duration *calls;
	struct unfinished_call *open;
	size_t call_count, call_capacity, depth, open_capacity;
	uint32_t thread;  /* whose heading was written last, whose calls are measured */
	uint64_t last_ns; /* until when these are */
};

static int push_open_call(struct timeline_writer *timeline, const struct model_region_event *event,
			  size_t call)
{
	if (array_reserve_one_more((void **)&timeline->open, &timeline->open_capacity,
				   timeline->depth, sizeof(*timeline->open)) < 0)
		return -ENOMEM;
	timeline->open[timeline->depth++] =
		(struct unfinished_call){call, event->time_ns, event->region};
	return 0;
}

/* The innermost open call of a region, taken out; there always is one. */
static struct unfinished_call take_innermost_open_call_of_region(struct timeline_writer *timeline,
								 uint32_t region)
{
	size_t at = timeline->depth - 1;
	struct unfinished_call call;

	while (at > 0 && timeline->open[at].region != region)
		at--;
	call = timeline->open[at];
	timeline->depth--;
	memmove(&timeline->open[at], &timeline->open[at + 1],
		(timeline->depth - at) * sizeof(*timeline->open));
	return call;
}

/* ---- first: durations ---- */

static int append_call_duration(struct timeline_writer *timeline, uint64_t ns)
{
	if (array_reserve_one_more((void **)&timeline->calls, &timeline->call_capacity,
				   timeline->call_count, sizeof(*timeline->calls)) < 0)
		return -ENOMEM;
	timeline->calls[timeline->call_count++] = (struct timeline_call_duration){ns, ns};
	return 0;
}

/* The time until then is that of the innermost call. */
static void add_time_to_innermost_call(struct timeline_writer *timeline, uint64_t until_ns)
{
	if (timeline->depth && until_ns > timeline->last_ns)
		timeline->calls[timeline->open[timeline->depth - 1].call].self_ns +=
			until_ns - timeline->last_ns;
	if (until_ns > timeline->last_ns)
		timeline->last_ns = until_ns;
}

static int record_call_durations_from_event(const struct model_region_event *event, void *context)
{
	struct timeline_writer *timeline = context;
	struct unfinished_call open;

	if (timeline->thread != event->thread) {
		timeline->thread = event->thread;
		timeline->last_ns = 0;
	}
	switch (event->kind) {
	case MODEL_EVENT_REGION_BEGIN:
		add_time_to_innermost_call(timeline, event->time_ns);
		if (push_open_call(timeline, event, timeline->call_count) < 0)
			return -ENOMEM;
		return append_call_duration(timeline, 0);
	case MODEL_EVENT_REGION_END:
		add_time_to_innermost_call(timeline, event->time_ns);
		open = take_innermost_open_call_of_region(timeline, event->region);
		timeline->calls[open.call].ns = event->time_ns - open.begin_ns;
		return 0;
	case MODEL_EVENT_REGION_COMPLETE:
		add_time_to_innermost_call(timeline, event->time_ns - event->duration_ns);
		timeline->last_ns = event->time_ns;
		return append_call_duration(timeline, event->duration_ns);
	default:
		return 0;
	}
}

/* ---- then: rows ---- */

static void write_thread_heading(struct timeline_writer *timeline,
				 const struct model_region_event *event)
{
	const struct session *session = timeline->session;
	const struct model_process *process = &session->processes[event->process];
	const struct model_thread *thread = &session->threads[event->thread];

	timeline->thread = event->thread;
	fputs("\nProcess ", timeline->stream);
	format_write_cut_to_width(timeline->stream, process->name, 60);
	fprintf(timeline->stream, " [%u], thread ", process->pid);
	format_write_cut_to_width(timeline->stream, thread->name, 60);
	fprintf(timeline->stream, " [%u]\n%14s ", thread->tid, "START");
	text_write_region_column_titles(timeline->stream, TEXT_REGION_LABEL_WIDTH_MIN,
					METRIC_COLUMNS);
}

static void write_event_value(FILE *stream, const struct model_event_value *value)
{
	switch (value->type) {
	case SPOOL_VALUE_SIGNED:
		fprintf(stream, "%" PRId64, value->number);
		break;
	case SPOOL_VALUE_UNSIGNED:
		fprintf(stream, "%" PRIu64, (uint64_t)value->number);
		break;
	case SPOOL_VALUE_ADDRESS:
		fprintf(stream, "0x%" PRIx64, (uint64_t)value->number);
		break;
	case SPOOL_VALUE_REAL:
		fprintf(stream, "%g", value->real_number);
		break;
	default:
		fputc('"', stream);
		format_write_cut_to_width(stream, value->text, 60);
		fputc('"', stream);
	}
}

/* A line of its own below the call: what came with its begin, and what came with its end where
 * that is. */
static void write_event_values(const struct timeline_writer *timeline,
			       const struct model_region_event *event, uint32_t depth)
{
	if (event->value_count == 0)
		return;
	fprintf(timeline->stream, "%14s %*s", "",
		2 * (int)(depth < TEXT_REGION_INDENT_LEVELS_MAX ? depth
								: TEXT_REGION_INDENT_LEVELS_MAX) +
			4,
		"");
	for (uint32_t i = 0; i < event->value_count; i++) {
		fputs(i ? ", " : "", timeline->stream);
		format_write_cut_to_width(timeline->stream, event->values[i].name, 60);
		fputs(" = ", timeline->stream);
		write_event_value(timeline->stream, &event->values[i]);
	}
	fputc('\n', timeline->stream);
}

static void write_call_row(struct timeline_writer *timeline, const struct model_region_event *event,
			   uint64_t begin_ns)
{
	static const struct model_region_component wall = {.name = "wall_clock", .unit = "ns"};
	const struct timeline_call_duration *call = &timeline->calls[timeline->call_count++];
	struct text_region_row row = {.depth = (uint32_t)timeline->depth,
				      .count = 1,
				      .has_sum = true,
				      .has_call_statistics = true,
				      .has_self_percent = call->ns > 0,
				      .sum = (double)call->ns,
				      .mean = (double)call->ns,
				      .minimum = (double)call->ns,
				      .maximum = (double)call->ns};

	if (timeline->thread != event->thread)
		write_thread_heading(timeline, event);
	if (call->ns)
		row.self_percent = 100 * (double)call->self_ns / (double)call->ns;
	text_set_region_row_label(
		&row, session_get_regions(timeline->session)->regions[event->region].name);
	fprintf(timeline->stream, "%14.9f ",
		(double)(begin_ns - timeline->session->start_ns) / 1e9);
	text_write_region_row(timeline->stream, &wall, &row, TEXT_REGION_LABEL_WIDTH_MIN,
			      METRIC_COLUMNS);
	write_event_values(timeline, event, row.depth);
}

static int write_call_row_of_event(const struct model_region_event *event, void *context)
{
	struct timeline_writer *timeline = context;

	switch (event->kind) {
	case MODEL_EVENT_REGION_BEGIN:
		write_call_row(timeline, event, event->time_ns);
		return push_open_call(timeline, event, 0);
	case MODEL_EVENT_REGION_END:
		(void)take_innermost_open_call_of_region(timeline, event->region);
		write_event_values(timeline, event, (uint32_t)timeline->depth);
		return 0;
	case MODEL_EVENT_REGION_COMPLETE:
		write_call_row(timeline, event, event->time_ns - event->duration_ns);
		return 0;
	default:
		return 0;
	}
}

int text_write_timeline(struct session *session, FILE *stream, struct problem *problem)
{
	struct timeline_writer timeline = {
		.session = session, .stream = stream, .thread = MODEL_ENTRY_INDEX_NONE};
	int result = session_visit_region_events(session, record_call_durations_from_event,
						 &timeline, problem);

	if (result == 0) {
		fputs("\nREGIONS: timeline\nEach call when it began, in seconds since the start; "
		      "calls that had not ended last until the end of the data.\n",
		      stream);
		timeline.call_count = timeline.depth = 0;
		timeline.thread = MODEL_ENTRY_INDEX_NONE;
		result = session_visit_region_events(session, write_call_row_of_event, &timeline,
						     problem);
	}
	free(timeline.calls);
	free(timeline.open);
	return result;
}
