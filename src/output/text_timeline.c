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
#include "analysis/regions.h"
#include "output/format.h"
#include "output/text_regions.h"

#define METRIC_WIDTH 10

struct call {
	uint64_t ns;
	uint64_t inside_ns; /* of what it called */
};

/* A call that is open, outermost first. */
struct open_call {
	size_t call;
	uint64_t begin_ns;
	uint32_t region;
};

struct timeline {
	struct session *session;
	FILE *stream;
	struct call *calls;
	struct open_call *open;
	size_t call_count, call_capacity, depth, open_capacity;
	uint32_t thread; /* whose heading was written last */
};

static int push(struct timeline *timeline, const struct model_event *event, size_t call)
{
	if (array_reserve((void **)&timeline->open, &timeline->open_capacity, timeline->depth,
			  sizeof(*timeline->open)) < 0)
		return -ENOMEM;
	timeline->open[timeline->depth++] = (struct open_call){call, event->time_ns, event->region};
	return 0;
}

/* The innermost open call of a region, taken out; there always is one. */
static struct open_call pop(struct timeline *timeline, uint32_t region)
{
	size_t at = timeline->depth - 1;
	struct open_call call;

	while (at > 0 && timeline->open[at].region != region)
		at--;
	call = timeline->open[at];
	timeline->depth--;
	memmove(&timeline->open[at], &timeline->open[at + 1],
		(timeline->depth - at) * sizeof(*timeline->open));
	return call;
}

/* ---- first: durations ---- */

static int add_call(struct timeline *timeline, uint64_t ns)
{
	if (array_reserve((void **)&timeline->calls, &timeline->call_capacity, timeline->call_count,
			  sizeof(*timeline->calls)) < 0)
		return -ENOMEM;
	timeline->calls[timeline->call_count++] = (struct call){ns, 0};
	return 0;
}

static void add_to_caller(struct timeline *timeline, uint64_t ns)
{
	if (timeline->depth)
		timeline->calls[timeline->open[timeline->depth - 1].call].inside_ns += ns;
}

static int measure_event(const struct model_event *event, void *context)
{
	struct timeline *timeline = context;
	struct open_call open;

	switch (event->kind) {
	case MODEL_REGION_BEGIN:
		if (push(timeline, event, timeline->call_count) < 0)
			return -ENOMEM;
		return add_call(timeline, 0);
	case MODEL_REGION_END:
		open = pop(timeline, event->region);
		timeline->calls[open.call].ns = event->time_ns - open.begin_ns;
		add_to_caller(timeline, timeline->calls[open.call].ns);
		return 0;
	case MODEL_REGION_WHOLE:
		add_to_caller(timeline, event->duration_ns);
		return add_call(timeline, event->duration_ns);
	default:
		return 0;
	}
}

/* ---- then: rows ---- */

static void begin_thread(struct timeline *timeline, const struct model_event *event)
{
	const struct session *session = timeline->session;
	const struct model_process *process = &session->processes[event->process];
	const struct model_thread *thread = &session->threads[event->thread];

	timeline->thread = event->thread;
	fputs("\nProcess ", timeline->stream);
	format_limited(timeline->stream, process->name, 60);
	fprintf(timeline->stream, " [%u], thread ", process->pid);
	format_limited(timeline->stream, thread->name, 60);
	fprintf(timeline->stream, " [%u]\n%14s ", thread->tid, "START");
	text_region_columns(timeline->stream, TEXT_REGION_LABEL_MIN, METRIC_WIDTH);
}

static void put_value(FILE *stream, const struct model_value *value)
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
		fprintf(stream, "%g", value->real);
		break;
	default:
		fputc('"', stream);
		format_limited(stream, value->text, 60);
		fputc('"', stream);
	}
}

/* A line of its own below the call: what came with its begin, and what came with its end where
 * that is. */
static void write_values(const struct timeline *timeline, const struct model_event *event,
			 uint32_t depth)
{
	if (event->value_count == 0)
		return;
	fprintf(timeline->stream, "%14s %*s", "",
		2 * (int)(depth < TEXT_REGION_INDENT ? depth : TEXT_REGION_INDENT) + 4, "");
	for (uint32_t i = 0; i < event->value_count; i++) {
		fputs(i ? ", " : "", timeline->stream);
		format_limited(timeline->stream, event->values[i].name, 60);
		fputs(" = ", timeline->stream);
		put_value(timeline->stream, &event->values[i]);
	}
	fputc('\n', timeline->stream);
}

static void write_call(struct timeline *timeline, const struct model_event *event,
		       uint64_t begin_ns)
{
	static const struct model_component wall = {.name = "wall_clock", .unit = "ns"};
	const struct call *call = &timeline->calls[timeline->call_count++];
	uint64_t self = call->ns > call->inside_ns ? call->ns - call->inside_ns : 0;
	struct text_region_row row = {.depth = (uint32_t)timeline->depth,
				      .count = 1,
				      .sum_known = true,
				      .calls_known = true,
				      .self_known = call->ns > 0,
				      .sum = (double)call->ns,
				      .mean = (double)call->ns,
				      .minimum = (double)call->ns,
				      .maximum = (double)call->ns};

	if (timeline->thread != event->thread)
		begin_thread(timeline, event);
	if (call->ns)
		row.self_percent = 100 * (double)self / (double)call->ns;
	text_region_label(&row, timeline->session->regions->regions[event->region].name);
	fprintf(timeline->stream, "%14.9f ",
		(double)(begin_ns - timeline->session->start_ns) / 1e9);
	text_region_row(timeline->stream, &wall, &row, TEXT_REGION_LABEL_MIN, METRIC_WIDTH);
	write_values(timeline, event, row.depth);
}

static int write_event(const struct model_event *event, void *context)
{
	struct timeline *timeline = context;

	switch (event->kind) {
	case MODEL_REGION_BEGIN:
		write_call(timeline, event, event->time_ns);
		return push(timeline, event, 0);
	case MODEL_REGION_END:
		(void)pop(timeline, event->region);
		write_values(timeline, event, (uint32_t)timeline->depth);
		return 0;
	case MODEL_REGION_WHOLE:
		write_call(timeline, event, event->time_ns - event->duration_ns);
		return 0;
	default:
		return 0;
	}
}

int text_timeline(struct session *session, FILE *stream, struct problem *problem)
{
	struct timeline timeline = {.session = session, .stream = stream, .thread = MODEL_NONE};
	int result = session_each_region_event(session, measure_event, &timeline, problem);

	if (result == 0) {
		fputs("\nREGIONS: timeline\nEach call when it began, in seconds since the start; "
		      "calls that had not ended last until the end of the data.\n",
		      stream);
		timeline.call_count = timeline.depth = 0;
		result = session_each_region_event(session, write_event, &timeline, problem);
	}
	free(timeline.calls);
	free(timeline.open);
	return result;
}
