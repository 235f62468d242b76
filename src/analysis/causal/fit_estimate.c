/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Periods as shares of the baseline's, and how far to trust each. A group may have two or three
 * windows, whose own scatter then says little; windows of one target scatter
 * much alike, so that of all its groups counts like PRIOR more windows (Smyth, Linear models and
 * empirical Bayes methods, 2004).
 */
#include <math.h>

#include "analysis/causal/fit.h"

#define PRIOR_VARIANCE_WINDOWS_MAX 4.0

struct group_time_sums {
	double time_ns, expected_time_ns, expected_time_square_sum,
		residual_square_sum; /* squares: of V - r N b */
};

static struct group_time_sums
compute_time_sums_of_window_group(const struct point_window_series *series,
				  const struct series_window_group *group, const double *period)
{
	struct group_time_sums sums = {0};
	double ratio;

	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t place = series->order[group->first + i];
		double expected = series->entries[place].count * period[place];

		sums.time_ns += series->entries[place].time_ns;
		sums.expected_time_ns += expected;
		sums.expected_time_square_sum += expected * expected;
	}
	ratio = sums.time_ns / sums.expected_time_ns;
	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t place = series->order[group->first + i];
		double expected = series->entries[place].count * period[place];
		double rest = series->entries[place].time_ns - ratio * expected;

		sums.residual_square_sum += rest * rest;
	}
	return sums;
}

/* The variance of one window of usual size, relative to the baseline. */
static double compute_variance_of_single_window(const struct group_time_sums *sums, double count)
{
	return sums->residual_square_sum / (count - 1) / (sums->expected_time_square_sum / count);
}

/* Mean of variances with degrees of freedom. */
struct pooled_variance_estimate {
	double variance, degrees_of_freedom;
};

static void add_variance_to_pooled_estimate(struct pooled_variance_estimate *pool, double variance,
					    double freedom)
{
	double all = pool->degrees_of_freedom + freedom;

	if (!(all > 0))
		return;
	pool->variance = (pool->variance * pool->degrees_of_freedom + variance * freedom) / all;
	pool->degrees_of_freedom = all;
}

/* The level's own scatter, with that of `others` as if it came from no more than PRIOR windows. */
static struct pooled_variance_estimate
blend_variance_with_pooled_prior(const struct pooled_variance_estimate *others, double own,
				 double freedom)
{
	struct pooled_variance_estimate pool = {
		others->variance, fmin(PRIOR_VARIANCE_WINDOWS_MAX, others->degrees_of_freedom)};

	add_variance_to_pooled_estimate(&pool, own, freedom);
	return pool;
}

static void set_ratio_and_uncorrected_variance(const struct group_time_sums *sums,
					       struct group_period_ratio_estimate *level)
{
	level->ratio_to_baseline_period = sums->time_ns / sums->expected_time_ns;
	level->uncorrected_variance =
		sums->residual_square_sum / (sums->expected_time_ns * sums->expected_time_ns);
}

/* Groups of one target: what their windows have in common is moderated by the baselines, and each
 * group by all of them. */
static void estimate_group_ratios_of_target(const struct point_window_series *series,
					    const double *period, unsigned least,
					    const struct pooled_variance_estimate *baselines,
					    uint32_t first, uint32_t end,
					    struct group_period_ratio_estimate *levels)
{
	struct pooled_variance_estimate target = {
		baselines->variance,
		fmin(PRIOR_VARIANCE_WINDOWS_MAX, baselines->degrees_of_freedom)};

	for (uint32_t g = first; g < end; g++) {
		struct group_time_sums sums =
			compute_time_sums_of_window_group(series, &series->groups[g], period);
		double count = series->groups[g].count;

		if (sums.expected_time_ns > 0 && count > 1)
			add_variance_to_pooled_estimate(
				&target, compute_variance_of_single_window(&sums, count),
				count - 1);
	}
	for (uint32_t g = first; g < end; g++) {
		struct group_time_sums sums =
			compute_time_sums_of_window_group(series, &series->groups[g], period);
		double count = series->groups[g].count;
		struct pooled_variance_estimate pool;

		if (!(sums.expected_time_ns > 0) || count < least)
			continue;
		set_ratio_and_uncorrected_variance(&sums, &levels[g]);
		pool = blend_variance_with_pooled_prior(
			&target, count > 1 ? compute_variance_of_single_window(&sums, count) : 0,
			count - 1);
		levels[g].degrees_of_freedom = fmax(pool.degrees_of_freedom, 1);
		levels[g].variance = pool.variance * sums.expected_time_square_sum /
				     (sums.expected_time_ns * sums.expected_time_ns);
	}
}

void fit_estimate_group_ratios(const struct point_window_series *series, const double *period,
			       unsigned least, struct group_period_ratio_estimate *levels)
{
	struct group_time_sums sums =
		compute_time_sums_of_window_group(series, &series->groups[0], period);
	double count = series->groups[0].count;
	struct pooled_variance_estimate baselines = {0, 0};

	if (sums.expected_time_ns > 0 && count > 1)
		add_variance_to_pooled_estimate(
			&baselines, compute_variance_of_single_window(&sums, count), count - 1);
	for (uint32_t g = 0; g < series->group_count; g++)
		levels[g] = (struct group_period_ratio_estimate){.ratio_to_baseline_period = NAN};
	for (uint32_t first = 1, end; first < series->group_count; first = end) {
		for (end = first; end < series->group_count &&
				  series->groups[end].target == series->groups[first].target;)
			end++;
		estimate_group_ratios_of_target(series, period, least, &baselines, first, end,
						levels);
	}
}
