/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Periods as shares of the baseline's, and how far to trust each. A group may have two or three
 * windows, whose own scatter then says little about their scatter; windows of one point scatter
 * much alike, so that of all groups counts like PRIOR more windows (Smyth, Linear models and
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

void fit_estimate(const struct fit_series *series, const double *period, unsigned least,
		  struct fit_level *levels)
{
	double pooled = 0, freedom = 0, prior;

	for (uint32_t g = 0; g < series->group_count; g++) {
		struct sums sums = sums_of(series, &series->groups[g], period);
		double count = series->groups[g].count;

		levels[g] = (struct fit_level){.ratio = NAN};
		if (!(sums.expected > 0) || count < least)
			continue;
		levels[g].ratio = sums.time / sums.expected;
		levels[g].spread = sums.squares / (sums.expected * sums.expected);
		if (count < 2)
			continue;
		pooled += (count - 1) * window_variance(&sums, count);
		freedom += count - 1;
	}
	pooled = freedom > 0 ? pooled / freedom : 0;
	prior = fmin(PRIOR, freedom);
	for (uint32_t g = 0; g < series->group_count; g++) {
		struct sums sums = sums_of(series, &series->groups[g], period);
		double count = series->groups[g].count, own;

		if (isnan(levels[g].ratio))
			continue;
		own = count > 1 ? window_variance(&sums, count) : 0;
		levels[g].freedom = fmax(prior + count - 1, 1);
		levels[g].variance = (prior * pooled + (count - 1) * own) / levels[g].freedom *
				     sums.expected_squares / (sums.expected * sums.expected);
	}
}
