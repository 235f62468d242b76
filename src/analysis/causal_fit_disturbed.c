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

#include "analysis/causal_fit.h"

#define DEVIATIONS 4.0
/* Of a normal distribution: the quartile, and medians of what is below the median and below it. */
#define QUARTILE       0.6745
#define BELOW_MEDIAN   0.6745
#define BELOW_QUARTILE 0.4759
#define LEAST          0.15 /* what takes little longer does little harm */
#define LEFT_OUT       UINT32_MAX
/* If more would be left out than this, only the longest are. */
#define MOST   0.4
#define ROUNDS 5
/* Groups from which the usual deviation is taken. */
#define GROUP 5u
/* Share of its time that may be stolen of a window; where it is of most, so many stay. */
#define STOLEN      0.15
#define STOLEN_STAY 0.6
/* Share of a window that is taken off at most. */
#define MOST_LOST 0.75

struct search {
	const struct fit_series *series;
	struct fit_series marked; /* the same with entries that are no target's where left out */
	double *period, *excess, *sorted;
};

static int ascending(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

/* The value that `one in` so many are below; the least of few. */
static double quantile(double *values, uint32_t count, uint32_t one_in)
{
	qsort(values, count, sizeof(*values), ascending);
	return values[(count - 1) / one_in];
}

/* The baseline's period there, by other windows: what is judged must not be its own standard. */
static double period_without(const struct search *search, uint32_t index)
{
	const struct fit_entry *entry = &search->marked.entries[index];
	double period = search->period[index];
	double count = search->period[search->series->count + index];

	if (entry->target != 0 || !(count > entry->count))
		return period;
	return (period * count - entry->time) / (count - entry->count);
}

/* Logarithm of each window's time as a multiple of its group's median or quartile. */
static void find_excess(struct search *search, uint32_t one_in)
{
	const struct fit_series *series = search->series;

	for (uint32_t g = 0; g < series->group_count; g++) {
		const struct fit_group *group = &series->groups[g];
		const uint32_t *order = series->order + group->first;
		double usual;

		for (uint32_t i = 0; i < group->count; i++) {
			const struct fit_entry *entry = &series->entries[order[i]];

			search->excess[order[i]] =
				log(entry->time / entry->count / period_without(search, order[i]));
			search->sorted[i] = search->excess[order[i]];
		}
		if (group->count == 0)
			continue;
		usual = quantile(search->sorted, group->count, one_in);
		for (uint32_t i = 0; i < group->count; i++)
			search->excess[order[i]] -= usual;
	}
}

static double usual_deviation(struct search *search, double share_below)
{
	const struct fit_series *series = search->series;
	uint32_t count = 0;

	for (uint32_t i = 0; i < series->count; i++) {
		if (series->groups[series->entries[i].group].count >= GROUP &&
		    search->excess[i] < 0)
			search->sorted[count++] = -search->excess[i];
	}
	return count ? quantile(search->sorted, count, 2) / share_below : INFINITY;
}

static uint32_t count_above(const struct search *search, double limit)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < search->series->count; i++)
		count += search->excess[i] > limit;
	return count;
}

/* Does anything change? */
static bool mark(struct search *search, double deviation)
{
	double limit = fmax((DEVIATIONS + QUARTILE) * deviation, LEAST);
	bool changed = false;

	while (count_above(search, limit) > MOST * search->series->count)
		limit *= 1.2;
	for (uint32_t i = 0; i < search->series->count; i++) {
		bool out = search->excess[i] > limit;
		uint32_t target = out ? LEFT_OUT : search->series->entries[i].target;

		changed |= target != search->marked.entries[i].target;
		search->marked.entries[i].target = target;
	}
	return changed;
}

/* Baselines that are not left out, as the smoothing wants to find them. */
static void list_baselines(struct search *search)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < search->marked.count; i++) {
		if (search->marked.entries[i].target == 0)
			search->marked.order[count++] = i;
	}
	search->marked.groups[0] = (struct fit_group){.count = count};
}

static void find(struct search *search)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct fit_smoothing smoothing;
		double deviation;

		list_baselines(search);
		smoothing = fit_smoothing_choose(&search->marked, search->period);
		fit_baseline(&search->marked, &smoothing, NULL, search->period);
		/* Disturbances and chance make either larger. */
		find_excess(search, 2);
		deviation = usual_deviation(search, BELOW_MEDIAN);
		find_excess(search, 4);
		deviation = fmin(deviation, usual_deviation(search, BELOW_QUARTILE));
		if (!mark(search, deviation))
			break;
	}
}

static int search_init(const struct fit_series *series, struct search *ret)
{
	struct search search = {.series = series, .marked = *series};
	struct fit_entry *entries = calloc(series->count, sizeof(*entries));

	search.marked.entries = entries;
	search.marked.order = calloc(series->count, sizeof(*search.marked.order));
	search.marked.groups = calloc(1, sizeof(*search.marked.groups));
	search.period = calloc(series->count, 2 * sizeof(double));
	search.excess = calloc(series->count, sizeof(double));
	search.sorted = calloc(series->count, sizeof(double));
	*ret = search;
	if (!entries || !search.marked.order || !search.marked.groups || !search.period ||
	    !search.excess || !search.sorted)
		return -ENOMEM;
	memcpy(entries, series->entries, series->count * sizeof(*entries));
	return 0;
}

static void search_deinit(struct search *search)
{
	free(search->marked.entries);
	free(search->marked.order);
	free(search->marked.groups);
	free(search->period);
	free(search->excess);
	free(search->sorted);
}

/* ---- stolen time, and queues for processors ---- */

static double stolen_share(const struct causal_data_window *window)
{
	return window->real_ns ? (double)window->stolen_ns / (double)window->real_ns : 0;
}

static bool is_of_use(const struct causal_data_window *window)
{
	return window->end != CAUSAL_ENDED_CUT && window->visit_count;
}

int fit_find_stolen(const struct causal_data *data, bool *disturbed)
{
	double *shares = calloc(data->window_count + 1, sizeof(*shares)), limit = STOLEN;
	size_t count = 0;

	if (!shares)
		return -ENOMEM;
	for (size_t i = 0; i < data->window_count; i++) {
		if (is_of_use(&data->windows[i]))
			shares[count++] = stolen_share(&data->windows[i]);
	}
	qsort(shares, count, sizeof(*shares), ascending);
	if (count)
		limit = fmax(limit, shares[(size_t)(STOLEN_STAY * (double)(count - 1))]);
	for (size_t i = 0; i < data->window_count; i++)
		disturbed[i] =
			is_of_use(&data->windows[i]) && stolen_share(&data->windows[i]) > limit;
	free(shares);
	return 0;
}

/* Of what keeps a window from the processors: nanoseconds. */
typedef double (*lost_how)(const struct causal_data_window *window);

static double stolen_time(const struct causal_data_window *window)
{
	return (double)window->stolen_ns;
}

static double queued_time(const struct causal_data_window *window)
{
	return (double)window->queued_ns;
}

struct lost_sums {
	double time, count, lost;
};

/* How much longer windows were for each nanosecond lost, 0 to 1: by least squares within groups.
 */
static double lost_effect(const struct causal_data *data, const struct fit_series *series,
			  lost_how lost_time)
{
	double products = 0, squares = 0;

	for (uint32_t g = 0; g < series->group_count; g++) {
		const struct fit_group *group = &series->groups[g];
		struct lost_sums all = {0};

		for (uint32_t i = 0; i < group->count; i++) {
			const struct fit_entry *entry =
				&series->entries[series->order[group->first + i]];

			all.time += entry->time;
			all.count += entry->count;
			all.lost += lost_time(&data->windows[entry->window]);
		}
		for (uint32_t i = 0; i < group->count; i++) {
			const struct fit_entry *entry =
				&series->entries[series->order[group->first + i]];
			double lost = lost_time(&data->windows[entry->window]) -
				      entry->count * all.lost / all.count;

			products += lost * (entry->time - entry->count * all.time / all.count);
			squares += lost * lost;
		}
	}
	return squares > 0 ? fmin(fmax(products / squares, 0), 1) : 0;
}

/* Of a visit, in all windows. */
static double usual_loss(const struct causal_data *data, const struct fit_series *series,
			 lost_how lost_time)
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
static void take_off(const struct causal_data *data, struct fit_series *series, lost_how lost_time,
		     uint64_t threads)
{
	double effect, usual;

	if (series->end_point != UINT32_MAX || series->process)
		return;
	effect = lost_effect(data, series, lost_time);
	usual = usual_loss(data, series, lost_time) * (1 - 1 / fmax((double)threads, 1));
	for (uint32_t i = 0; i < series->count; i++) {
		struct fit_entry *entry = &series->entries[i];
		double lost = lost_time(&data->windows[entry->window]) - usual * entry->count;

		entry->time -= fmin(effect * lost, entry->time * MOST_LOST);
	}
}

/* ---- both ---- */

static int leave_out_marked(struct fit_series *series, const bool *disturbed)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < series->count; i++) {
		if (!disturbed[series->entries[i].window])
			series->entries[kept++] = series->entries[i];
	}
	if (kept == series->count)
		return 0;
	series->count = kept;
	return fit_series_group(series);
}

int fit_leave_out_disturbed(const struct causal_data *data, struct fit_series *series,
			    bool *disturbed)
{
	struct search search;
	int result = leave_out_marked(series, disturbed);

	if (result == 0)
		take_off(data, series, stolen_time, 1);
	/* More threads than processors wait for each other, which is the program's own doing. */
	if (result == 0 && fit_threads_of(data) <= fit_processors_of(data))
		take_off(data, series, queued_time, fit_threads_of(data));
	if (result < 0 || series->process || !series->count || series->groups[0].count < GROUP)
		return result;
	result = search_init(series, &search);
	if (result == 0)
		find(&search);
	for (uint32_t i = 0; i < series->count && result == 0; i++)
		disturbed[series->entries[i].window] |= search.marked.entries[i].target == LEFT_OUT;
	search_deinit(&search);
	return result == 0 ? leave_out_marked(series, disturbed) : result;
}
