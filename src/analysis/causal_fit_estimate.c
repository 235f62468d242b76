/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Periods as shares of the baseline's, and how far to trust each. A group may have two or three
 * windows, whose own scatter then says little; windows of one target scatter
 * much alike, so that of all its groups counts like PRIOR more windows (Smyth, Linear models and
 * empirical Bayes methods, 2004).
 */
#include <math.h>

#include "analysis/causal_fit.h"

#define PRIOR 4.0

struct sums {
	double time, expected, expected_squares, squares; /* squares: of V - r N b */
};

static struct sums sums_of(const struct fit_series *series, const struct fit_group *group,
			   const double *period)
{
	struct sums sums = {0};
	double ratio;

	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t place = series->order[group->first + i];
		double expected = series->entries[place].count * period[place];

		sums.time += series->entries[place].time;
		sums.expected += expected;
		sums.expected_squares += expected * expected;
	}
	ratio = sums.time / sums.expected;
	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t place = series->order[group->first + i];
		double expected = series->entries[place].count * period[place];
		double rest = series->entries[place].time - ratio * expected;

		sums.squares += rest * rest;
	}
	return sums;
}

/* Of one window of usual size, relative to the baseline. */
static double window_variance(const struct sums *sums, double count)
{
	return sums->squares / (count - 1) / (sums->expected_squares / count);
}

/* Mean of variances with degrees of freedom. */
struct pool {
	double variance, freedom;
};

static void pool_add(struct pool *pool, double variance, double freedom)
{
	double all = pool->freedom + freedom;

	if (!(all > 0))
		return;
	pool->variance = (pool->variance * pool->freedom + variance * freedom) / all;
	pool->freedom = all;
}

/* The level's own scatter, with that of `others` as if it came from no more than PRIOR windows. */
static struct pool moderate(const struct pool *others, double own, double freedom)
{
	struct pool pool = {others->variance, fmin(PRIOR, others->freedom)};

	pool_add(&pool, own, freedom);
	return pool;
}

static void set_level(const struct sums *sums, struct fit_level *level)
{
	level->ratio = sums->time / sums->expected;
	level->spread = sums->squares / (sums->expected * sums->expected);
}

/* Groups of one target: what their windows have in common is moderated by the baselines, and each
 * group by all of them. */
static void estimate_target(const struct fit_series *series, const double *period, unsigned least,
			    const struct pool *baselines, uint32_t first, uint32_t end,
			    struct fit_level *levels)
{
	struct pool target = {baselines->variance, fmin(PRIOR, baselines->freedom)};

	for (uint32_t g = first; g < end; g++) {
		struct sums sums = sums_of(series, &series->groups[g], period);
		double count = series->groups[g].count;

		if (sums.expected > 0 && count > 1)
			pool_add(&target, window_variance(&sums, count), count - 1);
	}
	for (uint32_t g = first; g < end; g++) {
		struct sums sums = sums_of(series, &series->groups[g], period);
		double count = series->groups[g].count;
		struct pool pool;

		if (!(sums.expected > 0) || count < least)
			continue;
		set_level(&sums, &levels[g]);
		pool = moderate(&target, count > 1 ? window_variance(&sums, count) : 0, count - 1);
		levels[g].freedom = fmax(pool.freedom, 1);
		levels[g].variance =
			pool.variance * sums.expected_squares / (sums.expected * sums.expected);
	}
}

void fit_estimate(const struct fit_series *series, const double *period, unsigned least,
		  struct fit_level *levels)
{
	struct sums sums = sums_of(series, &series->groups[0], period);
	double count = series->groups[0].count;
	struct pool baselines = {0, 0};

	if (sums.expected > 0 && count > 1)
		pool_add(&baselines, window_variance(&sums, count), count - 1);
	for (uint32_t g = 0; g < series->group_count; g++)
		levels[g] = (struct fit_level){.ratio = NAN};
	for (uint32_t first = 1, end; first < series->group_count; first = end) {
		for (end = first; end < series->group_count &&
				  series->groups[end].target == series->groups[first].target;)
			end++;
		estimate_target(series, period, least, &baselines, first, end, levels);
	}
}
