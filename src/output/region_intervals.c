/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See region_intervals.h.
 */
#include "output/region_intervals.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/regions/regions.h"

struct open_region {
	uint64_t begin_ns;
	uint32_t region;
};

struct interval_visitor {
	uint32_t region_count;
	int (*each)(const struct region_interval *interval, void *context);
	void *context;
	struct open_region *open;
	size_t open_count, open_capacity;
	uint32_t thread;
};

static int emit_interval(const struct interval_visitor *visitor,
			 const struct model_region_event *event, uint64_t begin_ns)
{
	return visitor->each(&(struct region_interval){.thread = event->thread,
						       .region = event->region,
						       .begin_ns = begin_ns,
						       .end_ns = event->time_ns,
						       .is_mark = event->kind == MODEL_EVENT_MARK},
			     visitor->context);
}

static int open_region(struct interval_visitor *visitor, const struct model_region_event *event)
{
	if (visitor->open_count == visitor->open_capacity) {
		size_t capacity = visitor->open_capacity * 2 + 64;
		struct open_region *open = reallocarray(visitor->open, capacity, sizeof(*open));
		if (open == NULL)
			return -ENOMEM;
		visitor->open = open;
		visitor->open_capacity = capacity;
	}
	visitor->open[visitor->open_count++] = (struct open_region){event->time_ns, event->region};
	return 0;
}

static int end_region(struct interval_visitor *visitor, const struct model_region_event *event)
{
	size_t at = visitor->open_count;

	while (at > 0 && visitor->open[at - 1].region != event->region)
		at--;
	if (at == 0)
		return 0;
	uint64_t begin_ns = visitor->open[at - 1].begin_ns;
	for (; at < visitor->open_count; at++)
		visitor->open[at - 1] = visitor->open[at];
	visitor->open_count--;
	return emit_interval(visitor, event, begin_ns);
}

static int visit_event(const struct model_region_event *event, void *context)
{
	struct interval_visitor *visitor = context;

	if (event->region >= visitor->region_count)
		return 0;
	if (event->thread != visitor->thread)
		visitor->open_count = 0;
	visitor->thread = event->thread;
	switch (event->kind) {
	case MODEL_EVENT_REGION_BEGIN:
		return open_region(visitor, event);
	case MODEL_EVENT_REGION_END:
		return end_region(visitor, event);
	case MODEL_EVENT_REGION_COMPLETE:
		return emit_interval(visitor, event,
				     event->time_ns > event->duration_ns
					     ? event->time_ns - event->duration_ns
					     : 0);
	case MODEL_EVENT_MARK:
		return emit_interval(visitor, event, event->time_ns);
	default:
		return 0;
	}
}

int region_intervals_visit(struct session *session,
			   int (*each)(const struct region_interval *, void *), void *context,
			   struct problem *problem)
{
	const struct model_regions *regions = session_get_regions(session);
	struct interval_visitor visitor = {.region_count =
						   regions != NULL ? regions->region_count : 0,
					   .each = each,
					   .context = context,
					   .thread = MODEL_ENTRY_INDEX_NONE};
	int error = 0;

	if (regions != NULL)
		error = session_visit_region_events(session, visit_event, &visitor, problem);
	free(visitor.open);
	return error;
}
