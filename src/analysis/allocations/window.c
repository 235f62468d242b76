/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See window.h. A record has sums up to its time. What happened in a window is the last record
 * before its end less the last one before its begin: exact to within a record at both edges.
 */
#include "analysis/allocations/window.h"

#include <stdlib.h>

#include "analysis/session_private.h"

bool allocations_have_window(const struct session *session)
{
	const struct session_options *options = &session_get_private(session)->options;

	return options->from_ns || options->to_ns;
}

static uint64_t get_window_begin(const struct session *session)
{
	return session->start_ns + session_get_private(session)->options.from_ns;
}

static uint64_t get_window_end(const struct session *session)
{
	uint64_t to_ns = session_get_private(session)->options.to_ns;

	return to_ns ? session->start_ns + to_ns : UINT64_MAX;
}

void allocation_site_set_sums(struct model_allocation_site *site,
			      const struct allocation_site_sums *sums)
{
	site->allocations = sums->allocations;
	site->frees = sums->frees;
	site->allocated_bytes = sums->allocated_bytes;
	site->freed_bytes = sums->freed_bytes;
	site->peak_bytes = sums->peak_bytes;
	site->temporary_allocations = sums->temporary_allocations;
}

static int compare_totals_by_time(const void *left, const void *right)
{
	const struct allocation_totals *a = left, *b = right;

	if (a->point.time_ns != b->point.time_ns)
		return a->point.time_ns < b->point.time_ns ? -1 : 1;
	return a->point.allocations < b->point.allocations
		       ? -1
		       : a->point.allocations > b->point.allocations;
}

static int compare_sums_by_site_and_time(const void *left, const void *right)
{
	const struct allocation_site_sums *a = left, *b = right;

	if (a->site != b->site)
		return a->site < b->site ? -1 : 1;
	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->allocations < b->allocations ? -1 : a->allocations > b->allocations;
}

void allocation_scan_convert_times(struct process_allocation_scan_state *scan,
				   struct clock_map *clock)
{
	for (size_t i = 0; i < scan->totals_count; i++)
		scan->totals[i].point.time_ns =
			clock_map_ticks_to_boottime(clock, scan->totals[i].point.time_ns);
	for (size_t i = 0; i < scan->site_sums_count; i++)
		scan->site_sums[i].time =
			clock_map_ticks_to_boottime(clock, scan->site_sums[i].time);
	if (scan->totals_count > 1)
		qsort(scan->totals, scan->totals_count, sizeof(*scan->totals),
		      compare_totals_by_time);
	if (scan->site_sums_count > 1)
		qsort(scan->site_sums, scan->site_sums_count, sizeof(*scan->site_sums),
		      compare_sums_by_site_and_time);
	scan->model.peak_ns =
		scan->peak_ticks ? clock_map_ticks_to_boottime(clock, scan->peak_ticks) : 0;
}

/* ---- sites ---- */

static uint64_t get_live_bytes(const struct allocation_site_sums *sums)
{
	return sums->allocated_bytes > sums->freed_bytes ? sums->allocated_bytes - sums->freed_bytes
							 : 0;
}

/* The site's sums from one record to a later one. A peak that rose between them was reached there;
 * else the most that a record shows. */
static void set_sums_of_window(struct model_allocation_site *site,
			       const struct allocation_site_sums *before,
			       const struct allocation_site_sums *last, uint64_t most_live_bytes)
{
	struct allocation_site_sums sums = {
		.allocations = last->allocations - before->allocations,
		.frees = last->frees - before->frees,
		.allocated_bytes = last->allocated_bytes - before->allocated_bytes,
		.freed_bytes = last->freed_bytes - before->freed_bytes,
		.temporary_allocations =
			last->temporary_allocations - before->temporary_allocations,
		.peak_bytes =
			last->peak_bytes > before->peak_bytes ? last->peak_bytes : most_live_bytes};

	allocation_site_set_sums(site, &sums);
}

/* Records [first, end) are those of one site, in order. */
static void cut_site_to_window(struct session *session, const struct allocation_site_sums *first,
			       const struct allocation_site_sums *end)
{
	struct model_allocation_site *site = &session_get_allocations(session)->sites[first->site];
	struct allocation_site_sums before = {0}, last;
	uint64_t most_live_bytes;

	for (; first < end && first->time <= get_window_begin(session); first++)
		before = *first;
	last = before;
	most_live_bytes = get_live_bytes(&before);
	for (; first < end && first->time <= get_window_end(session); first++) {
		last = *first;
		if (get_live_bytes(first) > most_live_bytes)
			most_live_bytes = get_live_bytes(first);
	}
	set_sums_of_window(site, &before, &last, most_live_bytes);
}

static void cut_all_sites_to_window(struct session *session,
				    const struct process_allocation_scan_state *scan)
{
	const struct allocation_site_sums *at = scan->site_sums, *end, *next;

	if (!scan->site_sums_count) /* and no array */
		return;
	end = at + scan->site_sums_count;
	for (; at < end; at = next) {
		for (next = at; next < end && next->site == at->site; next++)
			;
		cut_site_to_window(session, at, next);
	}
}

void allocations_drop_sites_without_sums(struct model_allocations *allocations)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < allocations->count; i++) {
		const struct model_allocation_site *site = &allocations->sites[i];

		if (site->allocations || site->frees || site->bytes_at_process_peak)
			allocations->sites[kept++] = *site;
	}
	allocations->count = kept;
}

/* ---- the process ---- */

/* The points of the window, and the last one before it. */
static void cut_totals_to_window(const struct session *session,
				 struct process_allocation_scan_state *scan, size_t *ret_first,
				 size_t *ret_end)
{
	size_t first = 0, end = scan->totals_count;

	while (first + 1 < end &&
	       scan->totals[first + 1].point.time_ns <= get_window_begin(session))
		first++;
	while (end > first && scan->totals[end - 1].point.time_ns > get_window_end(session))
		end--;
	*ret_first = first;
	*ret_end = end;
}

static void set_peak_of_process(const struct session *session,
				struct process_allocation_scan_state *scan, size_t first,
				size_t end)
{
	struct model_process_allocations *model = &scan->model;

	if (scan->peak_bytes && model->peak_ns >= get_window_begin(session) &&
	    model->peak_ns <= get_window_end(session)) {
		model->peak_bytes = scan->peak_bytes;
		model->has_holders_at_peak = true;
		return;
	}
	model->peak_ns = 0;
	for (size_t i = first; i < end; i++) {
		const struct model_allocation_point *point = &scan->totals[i].point;

		if (point->live_bytes <= model->peak_bytes)
			continue;
		model->peak_bytes = point->live_bytes;
		model->peak_ns = point->time_ns;
	}
}

static void set_size_classes(struct process_allocation_scan_state *scan, bool has_before,
			     size_t first, size_t end)
{
	for (size_t i = 0; i < MODEL_ALLOCATION_SIZE_CLASS_COUNT && end; i++)
		scan->model.size_classes[i] =
			scan->totals[end - 1].size_classes[i] -
			(has_before ? scan->totals[first].size_classes[i] : 0);
}

void allocation_scan_finish_process(struct session *session,
				    struct process_allocation_scan_state *scan)
{
	struct model_process_allocations *model = &scan->model;
	size_t first, end;

	cut_all_sites_to_window(session, scan);
	if (!scan->totals_count)
		return;
	model->has_totals = true;
	model->is_complete = scan->totals[scan->totals_count - 1].is_complete;
	model->last_ns = scan->totals[scan->totals_count - 1].point.time_ns;
	cut_totals_to_window(session, scan, &first, &end);
	set_peak_of_process(session, scan, first, end);
	set_size_classes(scan,
			 first < end && allocations_have_window(session) &&
				 scan->totals[first].point.time_ns <= get_window_begin(session),
			 first, end);
	model->points = arena_allocate(&session_get_private(session)->arena,
				       (end - first + 1) * sizeof(*model->points));
	for (size_t i = first; model->points && i < end; i++)
		model->points[model->point_count++] = scan->totals[i].point;
}

void allocation_scan_deinit(struct process_allocation_scan_state *scan)
{
	id_map_deinit(&scan->site_index_by_id);
	free(scan->site_sums);
	free(scan->totals);
}
