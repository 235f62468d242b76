/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * profile.coz: for Coz's viewer (plasma-umass.org/coz), whose rules these are:
 *
 *   - lines of members separated by tabs; points belong to the experiment above them
 *   - everything with the same target, point and speedup is added up, and compared with speedup 0
 *     *of the same target*: so baselines are written once for each target
 *   - period = duration / delta; latency = difference * duration / arrivals (Little's law)
 *   - duration, delta, arrivals, departures and difference are whole numbers
 *
 * Durations are those of the point's own visits, so each point has an experiment of its own. The
 * mean number of requests inside is no whole number: all counts of latency points are a thousand
 * times as large, which changes nothing in the ratio. The viewer passes over points with fewer than
 * five visits, so processes, of which each run has one, have ten times their duration and visits.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal/data.h"
#include "files/stream.h"
#include "output/causal/causal.h"
#include "output/causal/view.h"

#define COZ_LATENCY_COUNT_FACTOR  1000.0
#define COZ_PROCESS_VISITS_FACTOR 10.0
#define COZ_NS_PER_SAMPLE         1e6

/* Text of a member: tabs and ends of lines would end it. */
static void coz_put_text(FILE *stream, const char *text)
{
	for (; *text; text++)
		putc((unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text, stream);
}

static void coz_put_target_location(FILE *stream, const struct causal_data *data, uint32_t id)
{
	const struct causal_data_target *target = causal_data_find_target(data, id);
	char name[1024];

	if (target && causal_view_targets_are_lines(data) && target->file) {
		coz_put_text(stream, target->file);
		fprintf(stream, ":%" PRIu32, target->line);
		return;
	}
	causal_view_format_target_name(data, id, name, sizeof(name));
	coz_put_text(stream, name);
}

/* One point's share of one window. */
struct window_point_visits {
	uint32_t point, end_point, target, speedup;
	const struct causal_data_window_visits *visits;
	uint64_t samples;
};

static int compare_visits_by_experiment(const void *left, const void *right)
{
	const struct window_point_visits *a = left, *b = right;

	if (a->point != b->point)
		return a->point < b->point ? -1 : 1;
	if (a->end_point != b->end_point)
		return a->end_point < b->end_point ? -1 : 1;
	if (a->target != b->target)
		return a->target < b->target ? -1 : 1;
	return a->speedup < b->speedup ? -1 : a->speedup > b->speedup;
}

static bool is_same_experiment(const struct window_point_visits *a,
			       const struct window_point_visits *b)
{
	return compare_visits_by_experiment(a, b) == 0;
}

static uint64_t count_target_samples_of_window(const struct causal_data_window *window)
{
	for (size_t i = 0; i < window->time_count; i++) {
		if (window->times[i].target == window->target)
			return (uint64_t)((double)window->times[i].total_ns / COZ_NS_PER_SAMPLE);
	}
	return 0;
}

static int collect_window_visits(const struct causal_data *data,
				 const struct causal_fit_result *result,
				 struct window_point_visits **ret, size_t *ret_count)
{
	size_t count = 0;
	struct window_point_visits *items;

	for (size_t i = 0; i < data->window_count; i++)
		count += data->windows[i].visits_entry_count;
	items = calloc(count + 1, sizeof(*items));
	if (!items)
		return -ENOMEM;
	count = 0;
	for (size_t i = 0; i < data->window_count; i++) {
		const struct causal_data_window *window = &data->windows[i];
		bool baseline = window->target == 0 || window->speedup_permille == 0;

		if (window->end == CAUSAL_WINDOW_CUT_SHORT || result->is_window_disturbed[i])
			continue;
		for (size_t j = 0; j < window->visits_entry_count; j++) {
			const struct causal_data_window_visits *visits = &window->visits[j];

			if (visits->visits == 0 || visits->intervals_virtual_ns <= 0)
				continue;
			items[count++] = (struct window_point_visits){
				visits->point,
				visits->end_point,
				baseline ? 0 : window->target,
				baseline ? 0 : window->speedup_permille,
				visits,
				count_target_samples_of_window(window)};
		}
	}
	qsort(items, count, sizeof(*items), compare_visits_by_experiment);
	*ret = items;
	*ret_count = count;
	return 0;
}

static void coz_put_latency_point(FILE *stream, const char *name, double departures, double area,
				  double duration)
{
	/* The viewer divides by arrivals, where kymo's latency is per departure. */
	fputs("latency-point\tname=", stream);
	coz_put_text(stream, name);
	fprintf(stream, "\tarrivals=%.0f\tdepartures=%.0f\tdifference=%.0f\n",
		departures * COZ_LATENCY_COUNT_FACTOR, departures * COZ_LATENCY_COUNT_FACTOR,
		area / duration * COZ_LATENCY_COUNT_FACTOR);
}

static bool point_has_process_origin(const struct causal_data *data, uint32_t id)
{
	const struct causal_data_progress_point *point = causal_data_find_point(data, id);

	return point && point->origin && strcmp(point->origin, "process") == 0;
}

/* Items of one target, speedup and point as an experiment of `target`. */
static void coz_put_experiment(FILE *stream, const struct causal_data *data,
			       const struct window_point_visits *items, size_t count,
			       uint32_t target)
{
	double duration = 0, visits = 0, area = 0;
	char name[2 * CAUSAL_NAME_SIZE + 8];
	uint64_t samples = 0;

	for (size_t i = 0; i < count; i++) {
		duration += (double)items[i].visits->intervals_virtual_ns;
		visits += (double)items[i].visits->visits;
		area += (double)items[i].visits->inside_count_integral_ns;
		samples += items[i].samples;
	}
	if (point_has_process_origin(data, items->point)) {
		duration *= COZ_PROCESS_VISITS_FACTOR;
		visits *= COZ_PROCESS_VISITS_FACTOR;
	}
	causal_view_format_point_name(data, items->point, items->end_point, name, sizeof(name));
	fputs("experiment\tselected=", stream);
	coz_put_target_location(stream, data, target);
	fprintf(stream, "\tspeedup=%.3f\tduration=%.0f\tselected-samples=%" PRIu64 "\n",
		items->speedup / 1000.0, duration, samples);
	if (items->end_point != UINT32_MAX) {
		coz_put_latency_point(stream, name, visits, area, duration);
		return;
	}
	fputs("throughput-point\tname=", stream);
	coz_put_text(stream, name);
	fprintf(stream, "\tdelta=%.0f\n", visits);
}

static void coz_put_experiments(FILE *stream, const struct causal_data *data,
				const struct window_point_visits *items, size_t count)
{
	const struct window_point_visits *baseline = NULL;
	size_t baselines = 0, end;

	for (size_t first = 0; first < count; first = end) {
		const struct window_point_visits *item = &items[first];
		bool new_point = first == 0 || items[first - 1].point != item->point ||
				 items[first - 1].end_point != item->end_point;
		bool new_target = new_point || items[first - 1].target != item->target;

		for (end = first; end < count && is_same_experiment(&items[end], item);)
			end++;
		/* The point's baselines come first, and are kept for each of its targets. */
		if (new_point) {
			baseline = item;
			baselines = item->target == 0 ? end - first : 0;
		}
		if (item->target == 0)
			continue;
		if (new_target && baselines)
			coz_put_experiment(stream, data, baseline, baselines, item->target);
		coz_put_experiment(stream, data, item, end - first, item->target);
	}
}

int causal_write_coz(const struct causal_data *data, const struct causal_fit_result *result,
		     FILE *stream, struct problem *problem)
{
	struct causal_view_target_times *totals = causal_view_sum_target_times(data);
	struct window_point_visits *items = NULL;
	uint64_t runtime = 0;
	size_t count;

	if (!totals || collect_window_visits(data, result, &items, &count) < 0) {
		free(totals);
		return problem_set(problem, -ENOMEM, "out of memory writing profile.coz");
	}
	fprintf(stream, "startup\ttime=%" PRIu64 "\n",
		data->window_count ? data->windows[0].start_ns : 0);
	coz_put_experiments(stream, data, items, count);
	for (size_t i = 0; i < data->run_count; i++)
		runtime += data->runs[i].real_ns;
	fprintf(stream, "runtime\ttime=%" PRIu64 "\n", runtime);
	for (size_t i = 0; i < data->target_count; i++) {
		if (totals[i].total_ns == 0)
			continue;
		fputs("samples\tlocation=", stream);
		coz_put_target_location(stream, data, data->targets[i].id);
		fprintf(stream, "\tcount=%.0f\n", (double)totals[i].total_ns / COZ_NS_PER_SAMPLE);
	}
	free(items);
	free(totals);
	return stream_flush_or_set_problem(stream, "profile.coz", problem);
}
