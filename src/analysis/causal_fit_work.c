/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Phases. How much work, in CPU time, a visit takes changes from phase to phase of a program, and
 * what a speedup gains does as well. Speedups are virtual: the work of a visit is the same with and
 * without. So where the baselines' periods follow the work, each group of windows is brought to the
 * work of the average baseline: by the line through periods over work of its own windows and, as
 * far as they are few, of the baselines (regression estimator; Cochran, Sampling Techniques, 1977,
 * chapter 7). What phases the windows of a group happened to meet then makes no difference.
 *
 * Not where the work of some group differs from the baselines' by more than chance: threads that
 * work all the time, whether there is progress or not, do more of it where progress is delayed.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/causal_fit.h"

/* Fewer baselines tell nothing of that. */
#define LEAST_BASELINES 8u
/* Share of the baselines' variance that the work must explain, and by how much it must vary. */
#define EXPLAINED 0.8
#define VARIES    0.05
/* So many windows of its own count as much as the baselines for a group's line. */
#define PRIOR 2.0
/* Standard errors, and more than this share, by which a group's work is off. */
#define ERRORS 4.0
#define OFF    0.03

/* Of a group: means for a visit, and sums of squares and products of windows' deviations. */
struct line {
	double period, work;
	double works, products, periods;
	uint32_t count;
};

static double share_of(const struct fit_entry *entry)
{
	return entry->time / entry->count;
}

static struct line line_of(const struct fit_series *series, const struct fit_group *group,
			   const double *work)
{
	struct line line = {.count = group->count};

	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t place = series->order[group->first + i];

		line.period += share_of(&series->entries[place]) / group->count;
		line.work += work[place] / group->count;
	}
	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t place = series->order[group->first + i];
		double period = share_of(&series->entries[place]) - line.period;
		double more = work[place] - line.work;

		line.works += more * more;
		line.products += more * period;
		line.periods += period * period;
	}
	return line;
}

static bool follows(const struct line *baseline)
{
	double explained = baseline->products * baseline->products;

	return baseline->count >= LEAST_BASELINES &&
	       sqrt(baseline->works / baseline->count) > VARIES * baseline->work &&
	       explained > EXPLAINED * baseline->works * baseline->periods;
}

static bool is_same_work(const struct line *baseline, const struct line *line)
{
	double variance = baseline->works / (baseline->count - 1);
	double error = sqrt(variance / baseline->count + variance / line->count);

	return fabs(line->work - baseline->work) <= ERRORS * error + OFF * baseline->work;
}

/* All windows together say best what the usual work is. */
struct usual {
	double work, variance; /* variance: of the mean */
};

static struct usual usual_work(const struct fit_series *series, const double *work)
{
	struct usual usual = {0};
	double squares = 0;

	for (uint32_t i = 0; i < series->count; i++)
		usual.work += work[i] / series->count;
	for (uint32_t i = 0; i < series->count; i++)
		squares += (work[i] - usual.work) * (work[i] - usual.work);
	usual.variance = squares / series->count / series->count;
	return usual;
}

static double rest_of(const struct line *line, double slope)
{
	return fmax(line->periods - 2 * slope * line->products + slope * slope * line->works, 0);
}

/* The slope is the group's own, and the baselines' in proportion to the periods. What is not known
 * of it, and of the usual work, makes the gain that much less certain. */
static void bring(struct fit_series *series, const struct fit_group *group, const double *work,
		  const struct line *baseline, const struct usual *usual)
{
	struct line line = line_of(series, group, work);
	double base = baseline->products / baseline->works;
	double expected = base * line.period / baseline->period;
	double weight = PRIOR * baseline->works / baseline->count;
	double slope = (line.products + weight * expected) / (line.works + weight);
	double rest = (rest_of(&line, slope) + PRIOR * rest_of(baseline, base) / baseline->count) /
		      (line.count + PRIOR);
	double off = line.work - usual->work, by_mix = slope - expected;
	double variance =
		(by_mix * by_mix * usual->variance + off * off * rest / (line.works + weight)) /
		(baseline->period * baseline->period);

	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t place = series->order[group->first + i];
		struct fit_entry *entry = &series->entries[place];
		double time = entry->time - slope * (work[place] - usual->work) * entry->count;

		entry->time = fmax(time, entry->time / 100);
		entry->error = sqrt(variance);
	}
}

static bool find_work(const struct causal_data *data, const struct fit_series *series, double *work)
{
	for (uint32_t i = 0; i < series->count; i++) {
		const struct fit_entry *entry = &series->entries[i];
		const struct causal_data_window *window = &data->windows[entry->window];

		for (size_t j = 0; j < window->time_count; j++)
			work[i] += (double)window->times[j].self_ns;
		work[i] /= entry->count;
		if (!(work[i] > 0) || !isfinite(work[i]))
			return false;
	}
	return true;
}

int fit_level_work(const struct causal_data *data, struct fit_series *series)
{
	double *work = calloc(series->count + 1, sizeof(*work));
	struct line baseline = {0};
	struct usual usual;
	bool same;

	if (!work)
		return -ENOMEM;
	same = series->end_point == UINT32_MAX && !series->process && find_work(data, series, work);
	if (same) {
		baseline = line_of(series, &series->groups[0], work);
		same = follows(&baseline);
	}
	for (uint32_t g = 1; g < series->group_count && same; g++) {
		struct line line = line_of(series, &series->groups[g], work);

		same = is_same_work(&baseline, &line);
	}
	usual = usual_work(series, work);
	for (uint32_t g = 0; g < series->group_count && same; g++)
		bring(series, &series->groups[g], work, &baseline, &usual);
	free(work);
	return 0;
}
