/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Standard errors by drawing windows anew, baselines too, so that they include what the baseline's
 * error, its smoothing and the curve make of the scatter. Windows that follow each other are alike
 * where the program has phases; blocks of them are drawn (Kuensch, The jackknife and the bootstrap
 * for general stationary observations, 1989), in a circle so that all count the same.
 *
 * Only multiplicities are drawn, and one pass over the series makes all estimates of a repeat: 2000
 * of 5000 windows take about a tenth of a second.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal_fit.h"

static uint32_t block_length(uint32_t count)
{
	return count < 10 ? 1 : (uint32_t)lround(cbrt(count));
}

static void draw_group(const struct fit_series *series, const struct fit_group *group,
		       uint64_t *random, uint8_t *multiplicity)
{
	uint32_t length = block_length(group->count), drawn = 0;

	while (drawn < group->count) {
		/* 32 random bits times the count, without a division. */
		uint32_t place = (uint32_t)((fit_random(random) >> 32) * group->count >> 32);

		for (uint32_t i = 0; i < length && drawn < group->count; i++, drawn++) {
			uint8_t *times = &multiplicity[series->order[group->first + place]];

			*times = (uint8_t)(*times + (*times < UINT8_MAX));
			place = place + 1 == group->count ? 0 : place + 1;
		}
	}
}

struct work {
	uint8_t *multiplicity;
	double *period, *times, *expected;
	struct fit_level *levels;
};

static void estimate(const struct fit_series *series, struct work *work)
{
	memset(work->times, 0, series->group_count * sizeof(double));
	memset(work->expected, 0, series->group_count * sizeof(double));
	for (uint32_t i = 0; i < series->count; i++) {
		const struct fit_entry *entry = &series->entries[i];
		double drawn = work->multiplicity[i];

		work->times[entry->group] += drawn * entry->time;
		work->expected[entry->group] += drawn * entry->count * work->period[i];
	}
	for (uint32_t g = 0; g < series->group_count; g++)
		work->levels[g].ratio = work->times[g] / work->expected[g];
}

static void add(struct fit_spread *spread, double difference)
{
	if (!isfinite(difference))
		return;
	spread->sum += difference;
	spread->squares += difference * difference;
}

double fit_spread_variance(const struct fit_spread *spread, uint32_t repeats)
{
	double mean = spread->sum / repeats;

	return fmax(spread->squares / repeats - mean * mean, 0);
}

static void repeat(const struct fit_series *series, const struct fit_smoothing *smoothing,
		   const struct fit_level *levels, const struct fit_curve *curves,
		   size_t curve_count, uint64_t *random, struct work *work,
		   struct fit_bootstrap *result)
{
	memset(work->multiplicity, 0, series->count);
	for (uint32_t g = 0; g < series->group_count; g++)
		draw_group(series, &series->groups[g], random, work->multiplicity);
	fit_baseline(series, smoothing, work->multiplicity, work->period);
	estimate(series, work);
	for (uint32_t g = 0; g < series->group_count; g++)
		add(&result->levels[g], work->levels[g].ratio - levels[g].ratio);
	for (size_t i = 0; i < curve_count; i++) {
		const struct fit_curve *curve = &curves[i];

		add(&result->best[i], fit_curve_apply(curve->best, curve, work->levels) -
					      fit_curve_apply(curve->best, curve, levels));
		add(&result->slope[i], fit_curve_apply(curve->slope, curve, work->levels) -
					       fit_curve_apply(curve->slope, curve, levels));
	}
}

static int work_init(const struct fit_series *series, struct work *ret)
{
	*ret = (struct work){
		.multiplicity = calloc(series->count, 1),
		.period = calloc(series->count, 2 * sizeof(double)),
		.times = calloc(series->group_count, sizeof(double)),
		.expected = calloc(series->group_count, sizeof(double)),
		.levels = calloc(series->group_count, sizeof(*ret->levels)),
	};
	return ret->multiplicity && ret->period && ret->times && ret->expected && ret->levels
		       ? 0
		       : -ENOMEM;
}

static void work_deinit(struct work *work)
{
	free(work->multiplicity);
	free(work->period);
	free(work->times);
	free(work->expected);
	free(work->levels);
}

int fit_bootstrap(const struct fit_series *series, const struct fit_smoothing *smoothing,
		  const struct fit_level *levels, const struct fit_curve *curves,
		  size_t curve_count, uint32_t repeats, uint64_t seed, struct fit_bootstrap *ret)
{
	struct fit_bootstrap result = {
		.repeats = repeats,
		.levels = calloc(series->group_count, sizeof(*result.levels)),
		.best = calloc(curve_count + 1, sizeof(*result.best)),
		.slope = calloc(curve_count + 1, sizeof(*result.slope)),
	};
	uint64_t random = seed;
	struct work work;
	int error = work_init(series, &work);

	if (error < 0 || !result.levels || !result.best || !result.slope) {
		work_deinit(&work);
		fit_bootstrap_deinit(&result);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < repeats; i++)
		repeat(series, smoothing, levels, curves, curve_count, &random, &work, &result);
	work_deinit(&work);
	*ret = result;
	return 0;
}

void fit_bootstrap_deinit(struct fit_bootstrap *bootstrap)
{
	free(bootstrap->levels);
	free(bootstrap->best);
	free(bootstrap->slope);
}
