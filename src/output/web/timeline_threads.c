/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Samples and regions of threads as slices. A sample stands for the time before it.
 */
#include <errno.h>

#include "analysis/regions/regions.h"
#include "output/region_intervals.h"
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

static int add_region_slice(const struct region_interval *interval, void *context)
{
	struct timeline *timeline = context;
	const struct model_regions *regions = session_get_regions(timeline->page->session);
	uint32_t track;

	if (!find_thread_track(timeline, TIMELINE_REGIONS, interval->thread, &track))
		return timeline->page->error;
	return timeline_add_span(
		timeline, track, interval->begin_ns, interval->end_ns,
		page_get_string_number(timeline->page, regions->regions[interval->region].name));
}

int timeline_collect_regions(struct timeline *timeline)
{
	return region_intervals_visit(timeline->page->session, add_region_slice, timeline,
				      timeline->page->problem);
}
