/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Standard errors by drawing windows anew, baselines too, so that they include what the baseline's
 * error, its smoothing and the curve make of the scatter. Windows that follow each other are alike
 * where the program has phases; blocks of them are drawn (Kuensch, The jackknife and the bootstrap
 * for general stationary observations, 1989), in a circle so that all count the same. Of baselines
 * it is what is left after smoothing that is drawn, and put on the smoothed one: a repeat must not
 * lack the baselines of a whole stretch of time.
 *
 * One pass over the series makes all estimates of a repeat: 2000 of 5000 windows take some tenths
 * of a second.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal_fit.h"

/* A drawn time is at least this share of what is expected. */
#define LEAST_TIME 0.01

struct work {
	const struct fit_model *model;
	uint64_t random;
	uint8_t *multiplicity; /* of windows that are no baselines */
	double *rests;         /* of baselines, in their order: relative, for one visit */
	double *drawn;         /* times of baselines */
	double *period, *times, *expected;
	struct fit_level *levels;
};

/* ---- drawing ---- */

static uint32_t block_length(uint32_t count)
{
	return count < 10 ? 1 : (uint32_t)lround(cbrt(count));
}

/* 32 random bits times the count, without a division. */
static uint32_t draw_place(struct work *work, uint32_t count)
{
	return (uint32_t)((fit_random(&work->random) >> 32) * count >> 32);
}

static void draw_group(struct work *work, const struct fit_group *group)
{
	const uint32_t *order = work->model->series->order + group->first;
	uint32_t length = block_length(group->count), drawn = 0;

	while (drawn < group->count) {
		uint32_t place = draw_place(work, group->count);

		for (uint32_t i = 0; i < length && drawn < group->count; i++, drawn++) {
			uint8_t *times = &work->multiplicity[order[place]];

			*times = (uint8_t)(*times + (*times < UINT8_MAX));
			place = place + 1 == group->count ? 0 : place + 1;
		}
	}
}

static void draw_baselines(struct work *work)
{
	const struct fit_series *series = work->model->series;
	const struct fit_group *group = &series->groups[0];
	uint32_t length = block_length(group->count), place = 0;

	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t index = series->order[group->first + i];
		double count = series->entries[index].count;
		double expected = count * work->model->period[index];

		if (i % length == 0)
			place = draw_place(work, group->count);
		work->drawn[index] =
			expected * fmax(1 + work->rests[place] / sqrt(count), LEAST_TIME);
		place = place + 1 == group->count ? 0 : place + 1;
	}
}

/* What smoothing leaves of baselines, enlarged by what each took with it into its own mean. */
static void find_rests(struct work *work)
{
	const struct fit_series *series = work->model->series;
	const struct fit_group *group = &series->groups[0];
	const double *period = work->model->period, *counts = period + series->count;
	double mean = 0;

	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t index = series->order[group->first + i];
		const struct fit_entry *entry = &series->entries[index];
		double own = fmin(entry->count / counts[index], 0.9);
		double rest = entry->time / (entry->count * period[index]) - 1;

		work->rests[i] = isfinite(rest) ? rest * sqrt(entry->count / (1 - own)) : 0;
		mean += work->rests[i] / group->count;
	}
	for (uint32_t i = 0; i < group->count; i++)
		work->rests[i] -= mean;
}

/* ---- one repeat ---- */

static void estimate(struct work *work)
{
	const struct fit_series *series = work->model->series;

	memset(work->times, 0, series->group_count * sizeof(double));
	memset(work->expected, 0, series->group_count * sizeof(double));
	for (uint32_t i = 0; i < series->count; i++) {
		const struct fit_entry *entry = &series->entries[i];
		double times = work->multiplicity[i];

		work->times[entry->group] += times * entry->time;
		work->expected[entry->group] += times * entry->count * work->period[i];
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

static void repeat(struct work *work, struct fit_bootstrap *result)
{
	const struct fit_model *model = work->model;
	const struct fit_series *series = model->series;

	memset(work->multiplicity, 0, series->count);
	for (uint32_t g = 1; g < series->group_count; g++)
		draw_group(work, &series->groups[g]);
	draw_baselines(work);
	fit_baseline(series, &model->smoothing, work->drawn, work->period);
	estimate(work);
	for (uint32_t g = 1; g < series->group_count; g++)
		add(&result->levels[g], work->levels[g].ratio - model->levels[g].ratio);
	for (size_t i = 0; i < model->curve_count; i++) {
		const struct fit_curve *curve = &model->curves[i];

		add(&result->best[i], fit_curve_apply(curve->best, curve, work->levels) -
					      fit_curve_apply(curve->best, curve, model->levels));
		add(&result->slope[i], fit_curve_apply(curve->slope, curve, work->levels) -
					       fit_curve_apply(curve->slope, curve, model->levels));
	}
}

/* ---- all of them ---- */

static int work_init(const struct fit_model *model, uint64_t seed, struct work *ret)
{
	const struct fit_series *series = model->series;

	*ret = (struct work){
		.model = model,
		.random = seed,
		.multiplicity = calloc(series->count, 1),
		.rests = calloc((size_t)series->groups[0].count + 1, sizeof(double)),
		.drawn = calloc(series->count, sizeof(double)),
		.period = calloc(series->count, 2 * sizeof(double)),
		.times = calloc(series->group_count, sizeof(double)),
		.expected = calloc(series->group_count, sizeof(double)),
		.levels = calloc(series->group_count, sizeof(*ret->levels)),
	};
	if (!ret->multiplicity || !ret->rests || !ret->drawn || !ret->period || !ret->times ||
	    !ret->expected || !ret->levels)
		return -ENOMEM;
	find_rests(ret);
	return 0;
}

static void work_deinit(struct work *work)
{
	free(work->multiplicity);
	free(work->rests);
	free(work->drawn);
	free(work->period);
	free(work->times);
	free(work->expected);
	free(work->levels);
}

int fit_bootstrap(const struct fit_model *model, uint32_t repeats, uint64_t seed,
		  struct fit_bootstrap *ret)
{
	struct fit_bootstrap result = {
		.repeats = repeats,
		.levels = calloc(model->series->group_count, sizeof(*result.levels)),
		.best = calloc(model->curve_count + 1, sizeof(*result.best)),
		.slope = calloc(model->curve_count + 1, sizeof(*result.slope)),
	};
	struct work work;
	int error = work_init(model, seed, &work);

	if (error < 0 || !result.levels || !result.best || !result.slope) {
		work_deinit(&work);
		fit_bootstrap_deinit(&result);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < repeats; i++)
		repeat(&work, &result);
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

double fit_spread_variance(const struct fit_spread *spread, uint32_t repeats)
{
	double mean = spread->sum / repeats;

	return fmax(spread->squares / repeats - mean * mean, 0);
}
