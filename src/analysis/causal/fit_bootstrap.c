/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Standard errors by drawing windows again, baselines too, so that they include what the baseline's
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

#include "analysis/causal/fit.h"

/* A drawn time is at least this share of what is expected. */
#define DRAWN_TO_EXPECTED_TIME_RATIO_LEAST 0.01

struct bootstrap_state {
	const struct causal_series_model *model;
	uint64_t random_state;
	uint8_t *draw_count_by_window;  /* of windows that are no baselines */
	double *baseline_residuals;     /* of baselines, in their order: relative, for one visit */
	double *drawn_baseline_time_ns; /* times of baselines */
	double *baseline_period_by_window, *drawn_time_ns_by_group, *expected_time_ns_by_group;
	struct group_period_ratio_estimate *ratio_estimate_by_group;
};

/* ---- drawing ---- */

static uint32_t choose_bootstrap_block_length(uint32_t count)
{
	return count < 10 ? 1 : (uint32_t)lround(cbrt(count));
}

/* 32 random bits times the count, without a division. */
static uint32_t draw_random_index(struct bootstrap_state *work, uint32_t count)
{
	return (uint32_t)((fit_draw_random_u64(&work->random_state) >> 32) * count >> 32);
}

static void draw_group_blocks(struct bootstrap_state *work, const struct series_window_group *group)
{
	const uint32_t *order = work->model->series->order + group->first;
	uint32_t length = choose_bootstrap_block_length(group->count), drawn = 0;

	while (drawn < group->count) {
		uint32_t place = draw_random_index(work, group->count);

		for (uint32_t i = 0; i < length && drawn < group->count; i++, drawn++) {
			uint8_t *times = &work->draw_count_by_window[order[place]];

			*times = (uint8_t)(*times + (*times < UINT8_MAX));
			place = place + 1 == group->count ? 0 : place + 1;
		}
	}
}

static void draw_baseline_blocks(struct bootstrap_state *work)
{
	const struct point_window_series *series = work->model->series;
	const struct series_window_group *group = &series->groups[0];
	uint32_t length = choose_bootstrap_block_length(group->count), place = 0;

	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t index = series->order[group->first + i];
		double count = series->entries[index].count;
		double expected = count * work->model->baseline_period_by_window[index];

		if (i % length == 0)
			place = draw_random_index(work, group->count);
		work->drawn_baseline_time_ns[index] =
			expected * fmax(1 + work->baseline_residuals[place] / sqrt(count),
					DRAWN_TO_EXPECTED_TIME_RATIO_LEAST);
		place = place + 1 == group->count ? 0 : place + 1;
	}
}

/* What smoothing leaves of baselines, enlarged by what each took with it into its own mean. */
static void compute_baseline_residuals(struct bootstrap_state *work)
{
	const struct point_window_series *series = work->model->series;
	const struct series_window_group *group = &series->groups[0];
	const double *period = work->model->baseline_period_by_window,
		     *counts = period + series->count;
	double mean = 0;

	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t index = series->order[group->first + i];
		const struct series_window *entry = &series->entries[index];
		double own = fmin(entry->count / counts[index], 0.9);
		double rest = entry->time_ns / (entry->count * period[index]) - 1;

		work->baseline_residuals[i] =
			isfinite(rest) ? rest * sqrt(entry->count / (1 - own)) : 0;
		mean += work->baseline_residuals[i] / group->count;
	}
	for (uint32_t i = 0; i < group->count; i++)
		work->baseline_residuals[i] -= mean;
}

/* ---- one repeat ---- */

static void compute_group_ratios_of_drawn_windows(struct bootstrap_state *work)
{
	const struct point_window_series *series = work->model->series;

	memset(work->drawn_time_ns_by_group, 0, series->group_count * sizeof(double));
	memset(work->expected_time_ns_by_group, 0, series->group_count * sizeof(double));
	for (uint32_t i = 0; i < series->count; i++) {
		const struct series_window *entry = &series->entries[i];
		double times = work->draw_count_by_window[i];

		work->drawn_time_ns_by_group[entry->group] += times * entry->time_ns;
		work->expected_time_ns_by_group[entry->group] +=
			times * entry->count * work->baseline_period_by_window[i];
	}
	for (uint32_t g = 0; g < series->group_count; g++)
		work->ratio_estimate_by_group[g].ratio_to_baseline_period =
			work->drawn_time_ns_by_group[g] / work->expected_time_ns_by_group[g];
}

static void add_deviation_to_sums(struct deviation_sums *spread, double difference)
{
	if (!isfinite(difference))
		return;
	spread->sum += difference;
	spread->square_sum += difference * difference;
}

static void run_bootstrap_repeat(struct bootstrap_state *work,
				 struct bootstrap_deviation_sums *result)
{
	const struct causal_series_model *model = work->model;
	const struct point_window_series *series = model->series;

	memset(work->draw_count_by_window, 0, series->count);
	for (uint32_t g = 1; g < series->group_count; g++)
		draw_group_blocks(work, &series->groups[g]);
	draw_baseline_blocks(work);
	fit_compute_baseline_periods(series, &model->baseline_smoothing,
				     work->drawn_baseline_time_ns, work->baseline_period_by_window);
	compute_group_ratios_of_drawn_windows(work);
	for (uint32_t g = 1; g < series->group_count; g++)
		add_deviation_to_sums(
			&result->deviations_by_group[g],
			work->ratio_estimate_by_group[g].ratio_to_baseline_period -
				model->ratio_estimate_by_group[g].ratio_to_baseline_period);
	for (size_t i = 0; i < model->curve_count; i++) {
		const struct target_curve_weights *curve = &model->curve_weights_by_target[i];

		add_deviation_to_sums(
			&result->best[i],
			fit_sum_gains_by_curve_weights(curve->best, curve,
						       work->ratio_estimate_by_group) -
				fit_sum_gains_by_curve_weights(curve->best, curve,
							       model->ratio_estimate_by_group));
		add_deviation_to_sums(
			&result->slope[i],
			fit_sum_gains_by_curve_weights(curve->slope, curve,
						       work->ratio_estimate_by_group) -
				fit_sum_gains_by_curve_weights(curve->slope, curve,
							       model->ratio_estimate_by_group));
	}
}

/* ---- all of them ---- */

static int bootstrap_state_init(const struct causal_series_model *model, uint64_t seed,
				struct bootstrap_state *ret)
{
	const struct point_window_series *series = model->series;

	*ret = (struct bootstrap_state){
		.model = model,
		.random_state = seed,
		.draw_count_by_window = calloc(series->count, 1),
		.baseline_residuals = calloc((size_t)series->groups[0].count + 1, sizeof(double)),
		.drawn_baseline_time_ns = calloc(series->count, sizeof(double)),
		.baseline_period_by_window = calloc(series->count, 2 * sizeof(double)),
		.drawn_time_ns_by_group = calloc(series->group_count, sizeof(double)),
		.expected_time_ns_by_group = calloc(series->group_count, sizeof(double)),
		.ratio_estimate_by_group =
			calloc(series->group_count, sizeof(*ret->ratio_estimate_by_group)),
	};
	if (!ret->draw_count_by_window || !ret->baseline_residuals ||
	    !ret->drawn_baseline_time_ns || !ret->baseline_period_by_window ||
	    !ret->drawn_time_ns_by_group || !ret->expected_time_ns_by_group ||
	    !ret->ratio_estimate_by_group)
		return -ENOMEM;
	compute_baseline_residuals(ret);
	return 0;
}

static void bootstrap_state_deinit(struct bootstrap_state *work)
{
	free(work->draw_count_by_window);
	free(work->baseline_residuals);
	free(work->drawn_baseline_time_ns);
	free(work->baseline_period_by_window);
	free(work->drawn_time_ns_by_group);
	free(work->expected_time_ns_by_group);
	free(work->ratio_estimate_by_group);
}

int fit_run_bootstrap(const struct causal_series_model *model, uint32_t repeats, uint64_t seed,
		      struct bootstrap_deviation_sums *ret)
{
	struct bootstrap_deviation_sums result = {
		.repeat_count = repeats,
		.deviations_by_group =
			calloc(model->series->group_count, sizeof(*result.deviations_by_group)),
		.best = calloc(model->curve_count + 1, sizeof(*result.best)),
		.slope = calloc(model->curve_count + 1, sizeof(*result.slope)),
	};
	struct bootstrap_state work;
	int error = bootstrap_state_init(model, seed, &work);

	if (error < 0 || !result.deviations_by_group || !result.best || !result.slope) {
		bootstrap_state_deinit(&work);
		bootstrap_deviation_sums_deinit(&result);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < repeats; i++)
		run_bootstrap_repeat(&work, &result);
	bootstrap_state_deinit(&work);
	*ret = result;
	return 0;
}

void bootstrap_deviation_sums_deinit(struct bootstrap_deviation_sums *bootstrap)
{
	free(bootstrap->deviations_by_group);
	free(bootstrap->best);
	free(bootstrap->slope);
}

double fit_compute_deviation_variance(const struct deviation_sums *spread, uint32_t repeats)
{
	double mean = spread->sum / repeats;

	return fmax(spread->square_sum / repeats - mean * mean, 0);
}
