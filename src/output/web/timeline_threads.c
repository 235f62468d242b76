/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Samples and regions of threads as slices. A sample stands for the time before it.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/regions/regions.h"
#include "output/web/timeline.h"

/* False: the thread has no row of its own. */
static bool find_thread_track(struct timeline *timeline, enum timeline_track_kind kind,
			      uint32_t thread, uint32_t *ret)
{
	const struct page_tree *tree = &timeline->page->tree;
	uint32_t of = tree->page_thread_of_thread[thread];

	if (tree->threads[of].is_rest) {
		timeline->slices_of_other_threads++;
		return false;
	}
	struct timeline_track *track = timeline_find_or_add_track(timeline, kind, of, ret);
	if (track == NULL) {
		timeline->page->error = -ENOMEM;
		return false;
	}
	track->process = tree->threads[of].process;
	track->thread = of;
	return true;
}

static int add_sample(const struct model_sample *sample, void *context)
{
	struct timeline *timeline = context;
	const struct page_tree *tree = &timeline->page->tree;
	bool is_time = sample->source != SPOOL_SOURCE_OVERFLOW;
	uint64_t length = is_time ? sample->weight : 0;
	struct timeline_slice slice = {.duration_ns = length,
				       .count = is_time ? !sample->blocked : sample->weight};
	uint32_t node = tree->page_node_of_node[sample->node];

	if (node == MODEL_ENTRY_INDEX_NONE ||
	    !find_thread_track(timeline, TIMELINE_SAMPLES, sample->thread, &slice.track))
		return timeline->page->error;
	slice.start_ns = sample->time_ns > length ? sample->time_ns - length : 0;
	slice.name = node * MODEL_SOURCE_COUNT + (uint32_t)sample->source;
	return timeline_add_slice(timeline, &timeline->samples, slice);
}

int timeline_collect_samples(struct timeline *timeline)
{
	return session_visit_samples(timeline->page->session, add_sample, timeline,
				     timeline->page->problem);
}

/* ---- regions ---- */

struct open_region {
	uint64_t begin_ns;
	uint32_t region;
};

struct region_collector {
	struct timeline *timeline;
	struct open_region *open;
	size_t open_count, open_capacity;
	uint32_t thread;
};

static int add_region_slice(struct region_collector *collector,
			    const struct model_region_event *event, uint64_t begin_ns)
{
	struct timeline *timeline = collector->timeline;
	const struct model_regions *regions = session_get_regions(timeline->page->session);
	uint32_t track;

	if (!find_thread_track(timeline, TIMELINE_REGIONS, event->thread, &track))
		return timeline->page->error;
	return timeline_add_span(
		timeline, track, begin_ns, event->time_ns,
		page_get_string_number(timeline->page, regions->regions[event->region].name));
}

static int open_region(struct region_collector *collector, const struct model_region_event *event)
{
	if (collector->open_count == collector->open_capacity) {
		size_t capacity = collector->open_capacity * 2 + 64;
		struct open_region *open = reallocarray(collector->open, capacity, sizeof(*open));
		if (open == NULL)
			return -ENOMEM;
		collector->open = open;
		collector->open_capacity = capacity;
	}
	collector->open[collector->open_count++] =
		(struct open_region){event->time_ns, event->region};
	return 0;
}

static int end_region(struct region_collector *collector, const struct model_region_event *event)
{
	size_t at = collector->open_count;

	while (at > 0 && collector->open[at - 1].region != event->region)
		at--;
	if (at == 0)
		return 0;
	uint64_t begin_ns = collector->open[at - 1].begin_ns;
	for (; at < collector->open_count; at++)
		collector->open[at - 1] = collector->open[at];
	collector->open_count--;
	return add_region_slice(collector, event, begin_ns);
}

static int add_region_event(const struct model_region_event *event, void *context)
{
	struct region_collector *collector = context;
	const struct model_regions *regions =
		session_get_regions(collector->timeline->page->session);

	if (event->region >= regions->region_count)
		return 0;
	if (event->thread != collector->thread)
		collector->open_count = 0;
	collector->thread = event->thread;
	switch (event->kind) {
	case MODEL_EVENT_REGION_BEGIN:
		return open_region(collector, event);
	case MODEL_EVENT_REGION_END:
		return end_region(collector, event);
	case MODEL_EVENT_REGION_COMPLETE:
		return add_region_slice(collector, event,
					event->time_ns > event->duration_ns
						? event->time_ns - event->duration_ns
						: 0);
	case MODEL_EVENT_MARK:
		return add_region_slice(collector, event, event->time_ns);
	default:
		return 0;
	}
}

int timeline_collect_regions(struct timeline *timeline)
{
	struct region_collector collector = {.timeline = timeline,
					     .thread = MODEL_ENTRY_INDEX_NONE};
	int error = 0;

	if (session_get_regions(timeline->page->session) != NULL)
		error = session_visit_region_events(timeline->page->session, add_region_event,
						    &collector, timeline->page->problem);
	free(collector.open);
	return error;
}
