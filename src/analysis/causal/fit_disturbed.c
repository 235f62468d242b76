/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Windows that other programs disturbed. Where a processor is taken away for some milliseconds in a
 * window of fifty, the window takes several times as long, and a handful of such windows hides
 * what any speedup does. So where there is evidence of load from outside, and only there (a program
 * may have rare slow phases of its own, which count), windows are left out that took far longer
 * than others of the same target and speedup at that time.
 *
 * "Far longer": by four standard deviations of the logarithm. Disturbances only lengthen, so what
 * is usual is taken from the lower quartile (of a few windows, the shortest), and the deviation
 * from the windows below it or below the median, whichever says less.
 *
 * Before, windows are left out in which a hypervisor gave processors to others for long, as long as
 * others stay to go by. From the rest is taken off what stolen time did: by how much it makes
 * windows of the same target and speedup longer is seen by comparing them. And what time did that
 * threads waited in the kernel's queues for a processor: that is part of the time which a function
 * takes on a machine with other load, but not of its CPU time, by which others are delayed, so all
 * gains would come out too small.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal/fit.h"

#define DISTURBED_DEVIATIONS_LEAST 4.0
/* In a normal distribution: the quartile, and medians of what is below the median and below it. */
#define NORMAL_QUARTILE                  0.6745
#define NORMAL_MEDIAN_GAP_BELOW_MEDIAN   0.6745
#define NORMAL_MEDIAN_GAP_BELOW_QUARTILE 0.4759
#define DISTURBED_LOG_EXCESS_LEAST       0.15 /* what takes little longer does little harm */
#define TARGET_ID_OF_LEFT_OUT_WINDOW     UINT32_MAX
/* If more would be left out than this, only the longest are. */
#define LEFT_OUT_WINDOWS_SHARE_MAX  0.4
#define DISTURBED_SEARCH_ROUNDS_MAX 5
/* Groups from which the usual deviation is taken. */
#define GROUP_WINDOWS_LEAST 5u
/* Share of its time that may be stolen of a window; where it is of most, so many stay. */
#define WINDOW_STOLEN_TIME_SHARE_MAX         0.15
#define STOLEN_TIME_WINDOWS_KEPT_SHARE_LEAST 0.6
/* Share of a window that is taken off at most. */
#define WINDOW_TIME_SUBTRACTED_SHARE_MAX 0.75

struct disturbed_window_search {
	const struct point_window_series *series;
	struct point_window_series
		marked_series; /* the same with entries that are no target's where left out */
	double *baseline_period_by_window, *log_excess_time_by_window, *sort_scratch;
};

static int compare_doubles_ascending(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

/* The value that `one in` so many are below; the least of few. */
static double sort_and_find_low_quantile(double *values, uint32_t count, uint32_t one_in)
{
	qsort(values, count, sizeof(*values), compare_doubles_ascending);
	return values[(count - 1) / one_in];
}

/* The baseline's period there, by other windows: what is judged must not be its own standard. */
static double compute_period_without_window(const struct disturbed_window_search *search,
					    uint32_t index)
{
	const struct series_window *entry = &search->marked_series.entries[index];
	double period = search->baseline_period_by_window[index];
	double count = search->baseline_period_by_window[search->series->count + index];

	if (entry->target != 0 || !(count > entry->count))
		return period;
	return (period * count - entry->time_ns) / (count - entry->count);
}

/* Logarithm of each window's time as a multiple of its group's median or quartile. */
static void compute_log_excess_times(struct disturbed_window_search *search, uint32_t one_in)
{
	const struct point_window_series *series = search->series;

	for (uint32_t g = 0; g < series->group_count; g++) {
		const struct series_window_group *group = &series->groups[g];
		const uint32_t *order = series->order + group->first;
		double usual;

		for (uint32_t i = 0; i < group->count; i++) {
			const struct series_window *entry = &series->entries[order[i]];

			search->log_excess_time_by_window[order[i]] =
				log(entry->time_ns / entry->count /
				    compute_period_without_window(search, order[i]));
			search->sort_scratch[i] = search->log_excess_time_by_window[order[i]];
		}
		if (group->count == 0)
			continue;
		usual = sort_and_find_low_quantile(search->sort_scratch, group->count, one_in);
		for (uint32_t i = 0; i < group->count; i++)
			search->log_excess_time_by_window[order[i]] -= usual;
	}
}

static double compute_usual_excess_deviation(struct disturbed_window_search *search,
					     double share_below)
{
	const struct point_window_series *series = search->series;
	uint32_t count = 0;

	for (uint32_t i = 0; i < series->count; i++) {
		if (series->groups[series->entries[i].group].count >= GROUP_WINDOWS_LEAST &&
		    search->log_excess_time_by_window[i] < 0)
			search->sort_scratch[count++] = -search->log_excess_time_by_window[i];
	}
	return count ? sort_and_find_low_quantile(search->sort_scratch, count, 2) / share_below
		     : INFINITY;
}

static uint32_t count_windows_with_excess_above(const struct disturbed_window_search *search,
						double limit)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < search->series->count; i++)
		count += search->log_excess_time_by_window[i] > limit;
	return count;
}

/* Does anything change? */
static bool mark_disturbed_windows(struct disturbed_window_search *search, double deviation)
{
	double limit = fmax((DISTURBED_DEVIATIONS_LEAST + NORMAL_QUARTILE) * deviation,
			    DISTURBED_LOG_EXCESS_LEAST);
	bool changed = false;

	while (count_windows_with_excess_above(search, limit) >
	       LEFT_OUT_WINDOWS_SHARE_MAX * search->series->count)
		limit *= 1.2;
	for (uint32_t i = 0; i < search->series->count; i++) {
		bool out = search->log_excess_time_by_window[i] > limit;
		uint32_t target =
			out ? TARGET_ID_OF_LEFT_OUT_WINDOW : search->series->entries[i].target;

		changed |= target != search->marked_series.entries[i].target;
		search->marked_series.entries[i].target = target;
	}
	return changed;
}

/* Baselines that are not left out, as the smoothing wants to find them. */
static void set_baseline_group_without_left_out(struct disturbed_window_search *search)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < search->marked_series.count; i++) {
		if (search->marked_series.entries[i].target == 0)
			search->marked_series.order[count++] = i;
	}
	search->marked_series.groups[0] = (struct series_window_group){.count = count};
}

static void mark_disturbed_windows_in_rounds(struct disturbed_window_search *search)
{
	for (unsigned round = 0; round < DISTURBED_SEARCH_ROUNDS_MAX; round++) {
		struct baseline_smoothing smoothing;
		double deviation;

		set_baseline_group_without_left_out(search);
		smoothing = fit_choose_baseline_smoothing(&search->marked_series,
							  search->baseline_period_by_window);
		fit_compute_baseline_periods(&search->marked_series, &smoothing, NULL,
					     search->baseline_period_by_window);
		/* Disturbances and chance make either larger. */
		compute_log_excess_times(search, 2);
		deviation = compute_usual_excess_deviation(search, NORMAL_MEDIAN_GAP_BELOW_MEDIAN);
		compute_log_excess_times(search, 4);
		deviation = fmin(deviation, compute_usual_excess_deviation(
						    search, NORMAL_MEDIAN_GAP_BELOW_QUARTILE));
		if (!mark_disturbed_windows(search, deviation))
			break;
	}
}

static int disturbed_window_search_init(const struct point_window_series *series,
					struct disturbed_window_search *ret)
{
	struct disturbed_window_search search = {.series = series, .marked_series = *series};
	struct series_window *entries = calloc(series->count, sizeof(*entries));

	search.marked_series.entries = entries;
	search.marked_series.order = calloc(series->count, sizeof(*search.marked_series.order));
	search.marked_series.groups = calloc(1, sizeof(*search.marked_series.groups));
	search.baseline_period_by_window = calloc(series->count, 2 * sizeof(double));
	search.log_excess_time_by_window = calloc(series->count, sizeof(double));
	search.sort_scratch = calloc(series->count, sizeof(double));
	*ret = search;
	if (!entries || !search.marked_series.order || !search.marked_series.groups ||
	    !search.baseline_period_by_window || !search.log_excess_time_by_window ||
	    !search.sort_scratch)
		return -ENOMEM;
	memcpy(entries, series->entries, series->count * sizeof(*entries));
	return 0;
}

static void disturbed_window_search_deinit(struct disturbed_window_search *search)
{
	free(search->marked_series.entries);
	free(search->marked_series.order);
	free(search->marked_series.groups);
	free(search->baseline_period_by_window);
	free(search->log_excess_time_by_window);
	free(search->sort_scratch);
}

/* ---- stolen time, and queues for processors ---- */

static double get_window_stolen_share(const struct causal_data_window *window)
{
	return window->real_ns ? (double)window->stolen_ns / (double)window->real_ns : 0;
}

static bool window_has_usable_visits(const struct causal_data_window *window)
{
	return window->end != CAUSAL_WINDOW_CUT_SHORT && window->visits_entry_count;
}

int fit_mark_windows_with_stolen_time(const struct causal_data *data, bool *disturbed)
{
	double *shares = calloc(data->window_count + 1, sizeof(*shares)),
	       limit = WINDOW_STOLEN_TIME_SHARE_MAX;
	size_t count = 0;

	if (!shares)
		return -ENOMEM;
	for (size_t i = 0; i < data->window_count; i++) {
		if (window_has_usable_visits(&data->windows[i]))
			shares[count++] = get_window_stolen_share(&data->windows[i]);
	}
	qsort(shares, count, sizeof(*shares), compare_doubles_ascending);
	if (count)
		limit = fmax(limit, shares[(size_t)(STOLEN_TIME_WINDOWS_KEPT_SHARE_LEAST *
						    (double)(count - 1))]);
	for (size_t i = 0; i < data->window_count; i++)
		disturbed[i] = window_has_usable_visits(&data->windows[i]) &&
			       get_window_stolen_share(&data->windows[i]) > limit;
	free(shares);
	return 0;
}

/* The time by which something keeps a window from the processors: nanoseconds. */
typedef double (*window_lost_time_function_type)(const struct causal_data_window *window);

static double get_window_stolen_ns(const struct causal_data_window *window)
{
	return (double)window->stolen_ns;
}

static double get_window_queued_ns(const struct causal_data_window *window)
{
	return (double)window->queued_ns;
}

struct group_lost_time_sums {
	double time_ns, count, lost_ns;
};

/* How much longer windows were for each nanosecond lost, 0 to 1: by least squares within groups.
 */
static double compute_lost_time_effect(const struct causal_data *data,
				       const struct point_window_series *series,
				       window_lost_time_function_type lost_time)
{
	double products = 0, squares = 0;

	for (uint32_t g = 0; g < series->group_count; g++) {
		const struct series_window_group *group = &series->groups[g];
		struct group_lost_time_sums all = {0};

		for (uint32_t i = 0; i < group->count; i++) {
			const struct series_window *entry =
				&series->entries[series->order[group->first + i]];

			all.time_ns += entry->time_ns;
			all.count += entry->count;
			all.lost_ns += lost_time(&data->windows[entry->window]);
		}
		for (uint32_t i = 0; i < group->count; i++) {
			const struct series_window *entry =
				&series->entries[series->order[group->first + i]];
			double lost = lost_time(&data->windows[entry->window]) -
				      entry->count * all.lost_ns / all.count;

			products +=
				lost * (entry->time_ns - entry->count * all.time_ns / all.count);
			squares += lost * lost;
		}
	}
	return squares > 0 ? fmin(fmax(products / squares, 0), 1) : 0;
}

/* The loss of a visit, in all windows. */
static double compute_mean_lost_time_per_visit(const struct causal_data *data,
					       const struct point_window_series *series,
					       window_lost_time_function_type lost_time)
{
	double lost = 0, count = 0;

	for (uint32_t i = 0; i < series->count; i++) {
		lost += lost_time(&data->windows[series->entries[i].window]);
		count += series->entries[i].count;
	}
	return count > 0 ? lost / count : 0;
}

/* What a window lost more or less than usual made it longer or shorter. What is usual made it
 * longer by a part of that only: threads may have lost it at the same time. Latency is an area; how
 * it grows is not known. */
static void subtract_unusual_lost_time(const struct causal_data *data,
				       struct point_window_series *series,
				       window_lost_time_function_type lost_time, uint64_t threads)
{
	double effect, usual;

	if (series->end_point != UINT32_MAX || series->process)
		return;
	effect = compute_lost_time_effect(data, series, lost_time);
	usual = compute_mean_lost_time_per_visit(data, series, lost_time) *
		(1 - 1 / fmax((double)threads, 1));
	for (uint32_t i = 0; i < series->count; i++) {
		struct series_window *entry = &series->entries[i];
		double lost = lost_time(&data->windows[entry->window]) - usual * entry->count;

		entry->time_ns -=
			fmin(effect * lost, entry->time_ns * WINDOW_TIME_SUBTRACTED_SHARE_MAX);
	}
}

/* ---- both ---- */

static int drop_entries_marked_disturbed(struct point_window_series *series, const bool *disturbed)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < series->count; i++) {
		if (!disturbed[series->entries[i].window])
			series->entries[kept++] = series->entries[i];
	}
	if (kept == series->count)
		return 0;
	series->count = kept;
	return group_windows_of_series(series);
}

int fit_drop_disturbed_windows(const struct causal_data *data, struct point_window_series *series,
			       bool *disturbed)
{
	struct disturbed_window_search search;
	int result = drop_entries_marked_disturbed(series, disturbed);

	if (result == 0)
		subtract_unusual_lost_time(data, series, get_window_stolen_ns, 1);
	/* More threads than processors wait for each other, which is the program's own doing. */
	if (result == 0 &&
	    causal_data_get_thread_count_max(data) <= causal_data_get_processor_count(data))
		subtract_unusual_lost_time(data, series, get_window_queued_ns,
					   causal_data_get_thread_count_max(data));
	if (result < 0 || series->process || !series->count ||
	    series->groups[0].count < GROUP_WINDOWS_LEAST)
		return result;
	result = disturbed_window_search_init(series, &search);
	if (result == 0)
		mark_disturbed_windows_in_rounds(&search);
	for (uint32_t i = 0; i < series->count && result == 0; i++)
		disturbed[series->entries[i].window] |=
			search.marked_series.entries[i].target == TARGET_ID_OF_LEFT_OUT_WINDOW;
	disturbed_window_search_deinit(&search);
	return result == 0 ? drop_entries_marked_disturbed(series, disturbed) : result;
}
