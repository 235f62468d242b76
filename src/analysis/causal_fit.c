/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Predictions of what each target would gain; see causal_fit.h for how.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal_data.h"
#include "analysis/causal_fit.h"

#define REPEATS       2000u
#define LEAST_REPEATS 200u
#define LEAST_WINDOWS 2u
/* Passes over one entry that a fit may take: some seconds. */
#define WORK_LIMIT 4e8
/* What the method itself is off by where windows scatter little, at full speedup: one standard
 * error. Of workloads whose response is known (bench/causal) half are off by more than that. */
#define METHOD 0.01
/* Degrees of freedom of what all windows have in common (causal_fit_change.c): Student's
 * distribution with as many is as wide as follows for a sixth of the windows being near (Kiefer and
 * Vogelsang, 2005). */
#define COMMON_FREEDOM 6.0
/* An interval of this to both sides is worth reporting even around no effect at all. */
#define NARROW_PERCENT 5.0

/* CPU time of a target in all windows; by id. */
struct usage {
	double self, total;
};

struct fit {
	const struct causal_data *data;
	struct causal_fit_options options;
	struct fit_series_list list;
	struct usage *usage; /* usage[id], for ids below usage_count */
	bool *tried;
	uint32_t usage_count;
	struct causal_result result;
};

/* Of one series. */
struct work {
	struct fit_model model;
	struct fit_bootstrap bootstrap;
	uint32_t warnings;
};

/* ---- targets ---- */

static int find_targets(struct fit *fit)
{
	const struct causal_data *data = fit->data;

	for (size_t i = 0; i < data->window_count; i++) {
		const struct causal_data_window *window = &data->windows[i];

		if (window->target >= fit->usage_count)
			fit->usage_count = window->target + 1;
		for (size_t j = 0; j < window->time_count; j++) {
			if (window->times[j].target >= fit->usage_count)
				fit->usage_count = window->times[j].target + 1;
		}
	}
	fit->usage = calloc((size_t)fit->usage_count + 1, sizeof(*fit->usage));
	fit->tried = calloc((size_t)fit->usage_count + 1, sizeof(*fit->tried));
	if (!fit->usage || !fit->tried)
		return -ENOMEM;
	for (size_t i = 0; i < data->window_count; i++) {
		const struct causal_data_window *window = &data->windows[i];

		if (window->end == CAUSAL_ENDED_CUT)
			continue;
		fit->tried[window->target] |= window->target && window->speedup_permille;
		fit->result.cpu_ns += (double)window->cpu_ns;
		for (size_t j = 0; j < window->time_count; j++) {
			struct usage *usage = &fit->usage[window->times[j].target];

			usage->self += (double)window->times[j].self_ns;
			usage->total += (double)window->times[j].total_ns;
		}
		fit->result.baseline_windows +=
			window->target == 0 || window->speedup_permille == 0;
	}
	return 0;
}

static double share(double part, double whole)
{
	return whole > 0 ? fmin(part / whole, 1) : 0;
}

/* ---- one series ---- */

static void work_deinit(struct work *work)
{
	free(work->model.levels);
	free(work->model.curves);
	free(work->model.period);
	fit_bootstrap_deinit(&work->bootstrap);
}

static int fit_curves(struct work *work)
{
	const struct fit_series *series = work->model.series;
	int result = 0;

	for (uint32_t first = 1; result == 0 && first < series->group_count;) {
		uint32_t end = first;

		while (end < series->group_count &&
		       series->groups[end].target == series->groups[first].target)
			end++;
		result = fit_change(&work->model, first, end - first);
		fit_curve(series, work->model.levels, first, end - first,
			  &work->model.curves[work->model.curve_count++]);
		first = end;
	}
	return result;
}

/* Variance of a sum of levels, for the errors that they have in common. */
static double common_variance(const struct work *work, const double *weights, uint32_t first,
			      uint32_t count)
{
	const struct fit_series *series = work->model.series;
	double met = 0, change = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct fit_group *group = &series->groups[first + i];

		if (!group->count || weights[i] == 0)
			continue;
		met += weights[i] * series->entries[series->order[group->first]].error;
		change += weights[i] * work->model.levels[first + i].change;
	}
	return met * met + change * change;
}

/* Standard error of a sum of levels with these weights (their signs do not matter), whose bootstrap
 * variance is `drawn`. What the levels' own scatter does not explain is the baseline's. */
static void widen(const struct work *work, double drawn, const double *weights, uint32_t first,
		  uint32_t count, double model, double *ret_error, double *ret_freedom)
{
	double baselines = work->model.series->groups[0].count, own = 0, corrected = 0, freedom = 0;
	double common = common_variance(work, weights, first, count), rest, variance;

	for (uint32_t i = 0; i < count; i++) {
		const struct fit_level *level = &work->model.levels[first + i];
		double square = weights[i] * weights[i];

		if (square == 0)
			continue;
		own += square * level->spread;
		corrected += square * level->variance;
		freedom += square * level->variance * square * level->variance / level->freedom;
	}
	rest = fmax(drawn - own, 0);
	if (baselines > 1)
		rest *= baselines / (baselines - 1);
	variance = fmax(corrected + rest, drawn / 4);
	freedom += rest * rest / fmax(baselines - 1, 1);
	freedom += common * common / COMMON_FREEDOM;
	variance += common + model;
	*ret_error = sqrt(variance);
	*ret_freedom = freedom > 0 ? variance * variance / freedom : 1e6;
}

static double confidence_of(const struct fit *fit)
{
	double confidence = fit->options.confidence;

	return confidence > 0 && confidence < 1 ? confidence : 0.95;
}

static void set_intervals(const struct fit *fit, struct work *work)
{
	static const double one = 1;

	for (uint32_t g = 1; g < work->model.series->group_count; g++) {
		struct fit_level *level = &work->model.levels[g];
		double freedom, method;

		if (isnan(level->ratio))
			continue;
		method = METHOD * work->model.series->groups[g].speedup / 1000;
		widen(work,
		      fit_spread_variance(&work->bootstrap.levels[g], work->bootstrap.repeats),
		      &one, g, 1, method * method, &level->error, &freedom);
		level->half = level->error * fit_student(confidence_of(fit), freedom);
	}
}

static uint32_t repeats_of(const struct fit *fit)
{
	uint32_t repeats = fit->options.bootstrap ? fit->options.bootstrap : REPEATS;
	double entries = 1;

	for (size_t i = 0; i < fit->list.count; i++)
		entries += fit->list.series[i].count;
	if (repeats > LEAST_REPEATS && repeats * entries > WORK_LIMIT)
		repeats = (uint32_t)fmax(WORK_LIMIT / entries, LEAST_REPEATS);
	return repeats;
}

static int work_make(const struct fit *fit, const struct fit_series *series, struct work *work)
{
	unsigned least = fit->options.least_windows ? fit->options.least_windows : LEAST_WINDOWS;

	*work = (struct work){.model = {.series = series}};
	work->model.levels = calloc(series->group_count, sizeof(*work->model.levels));
	work->model.curves = calloc(series->group_count, sizeof(*work->model.curves));
	work->model.period = calloc(series->count, 2 * sizeof(double));
	if (!work->model.levels || !work->model.curves || !work->model.period)
		return -ENOMEM;
	work->model.smoothing = fit_smoothing_choose(series, work->model.period);
	fit_baseline(series, &work->model.smoothing, NULL, work->model.period);
	fit_estimate(series, work->model.period, least, work->model.levels);
	if (fit_curves(work) < 0)
		return -ENOMEM;
	work->warnings = fit_drifts(series) ? CAUSAL_WARN_DRIFT : 0;
	return fit_bootstrap(&work->model, repeats_of(fit), fit->options.seed + series->point,
			     &work->bootstrap);
}

/* ---- predictions ---- */

static int add_estimates(const struct work *work, const struct fit_curve *curve,
			 struct causal_prediction *prediction)
{
	prediction->estimates = calloc(curve->count, sizeof(*prediction->estimates));
	if (!prediction->estimates)
		return -ENOMEM;
	for (uint32_t i = 0; i < curve->count; i++) {
		const struct fit_group *group = &work->model.series->groups[curve->first + i];
		const struct fit_level *level = &work->model.levels[curve->first + i];
		double gain = 100 * (1 - level->ratio);

		if (isnan(level->ratio))
			continue;
		prediction->estimates[prediction->estimate_count++] = (struct causal_estimate){
			.speedup_percent = group->speedup / 10.0,
			.predicted_percent = gain,
			.low_percent = gain - 100 * level->half,
			.high_percent = fmin(gain + 100 * level->half, 100),
			.windows = group->count,
			.visits = (uint64_t)group->visits,
		};
	}
	return 0;
}

static void set_summary(const struct fit *fit, const struct work *work, size_t index,
			struct causal_prediction *prediction)
{
	const struct fit_curve *curve = &work->model.curves[index];
	const struct fit_bootstrap *drawn = &work->bootstrap;
	double best = fit_curve_apply(curve->best, curve, work->model.levels);
	double slope = fit_curve_apply(curve->slope, curve, work->model.levels), error, freedom;

	widen(work, fit_spread_variance(&drawn->best[index], drawn->repeats), curve->best,
	      curve->first, curve->count, curve->model + METHOD * METHOD, &error, &freedom);
	error *= fit_student(confidence_of(fit), freedom);
	/* No more than all of the time can be saved. */
	best = fmin(best, 1);
	prediction->best_percent = 100 * best;
	prediction->best_low_percent = 100 * (best - error);
	prediction->best_high_percent = 100 * fmin(best + error, 1);
	widen(work, fit_spread_variance(&drawn->slope[index], drawn->repeats), curve->slope,
	      curve->first, curve->count, METHOD * METHOD, &error, &freedom);
	error *= fit_student(confidence_of(fit), freedom);
	prediction->slope = slope;
	prediction->slope_low = slope - error;
	prediction->slope_high = slope + error;
}

static uint32_t warnings_of(const struct work *work, const struct fit_curve *curve,
			    const struct causal_prediction *prediction)
{
	double visits = 0, half = prediction->best_percent - prediction->best_low_percent;
	uint32_t windows = 0, warnings = work->warnings;

	for (uint32_t i = 0; i < curve->count; i++) {
		visits += work->model.series->groups[curve->first + i].visits;
		windows += work->model.series->groups[curve->first + i].count;
	}
	if (visits < 5.0 * windows && !work->model.series->process)
		warnings |= CAUSAL_WARN_FEW_VISITS;
	if (prediction->estimate_count == 0 || work->model.series->groups[0].count < 2)
		return warnings | CAUSAL_WARN_FEW_WINDOWS;
	if (windows < 4 || work->model.series->groups[0].count < 3)
		warnings |= CAUSAL_WARN_FEW_WINDOWS;
	if (half > fmax(fabs(prediction->best_percent), NARROW_PERCENT))
		warnings |= CAUSAL_WARN_WIDE;
	return warnings;
}

static int predict(struct fit *fit, const struct work *work, uint32_t target)
{
	static const uint32_t unsupported = CAUSAL_WARN_NO_VISITS | CAUSAL_WARN_NO_SAMPLES |
					    CAUSAL_WARN_WIDE | CAUSAL_WARN_FEW_WINDOWS;
	const struct fit_series *series = work->model.series;
	struct causal_prediction *prediction =
		&fit->result.predictions[fit->result.prediction_count++];
	const struct usage *usage = &fit->usage[target];
	const struct fit_group *baseline = &series->groups[0];
	double time = 0;
	size_t index = 0;
	int result = 0;

	prediction->target = target;
	prediction->point = series->point;
	prediction->end_point = series->end_point;
	prediction->self_share = share(usage->self, fit->result.cpu_ns);
	prediction->total_share = share(usage->total, fit->result.cpu_ns);
	for (uint32_t i = 0; i < baseline->count; i++)
		time += series->entries[series->order[baseline->first + i]].time;
	prediction->baseline_ns = baseline->visits > 0 ? time / baseline->visits : 0;
	while (index < work->model.curve_count &&
	       series->groups[work->model.curves[index].first].target != target)
		index++;
	if (index == work->model.curve_count) {
		prediction->warnings = CAUSAL_WARN_NO_VISITS;
	} else {
		result = add_estimates(work, &work->model.curves[index], prediction);
		if (result == 0 && prediction->estimate_count)
			set_summary(fit, work, index, prediction);
		prediction->warnings = warnings_of(work, &work->model.curves[index], prediction);
	}
	if (!(usage->total > 0))
		prediction->warnings |= CAUSAL_WARN_NO_SAMPLES;
	prediction->ranked = !(prediction->warnings & unsupported);
	return result;
}

static int fit_one(struct fit *fit, struct fit_series *series)
{
	struct work work = {.model = {.series = series}};
	int result = 0;

	result = fit_level_work(fit->data, series);
	if (result == 0 && fit->result.warnings & CAUSAL_WARN_LOAD)
		result = fit_leave_out_disturbed(fit->data, series, fit->result.disturbed);
	if (result == 0)
		result = fit_level_gains(fit->data, series);
	if (result == 0)
		result = work_make(fit, series, &work);
	if (result == 0)
		set_intervals(fit, &work);
	for (uint32_t target = 1; result == 0 && target < fit->usage_count; target++) {
		if (fit->tried[target])
			result = predict(fit, &work, target);
	}
	fit->result.warnings |= work.warnings;
	work_deinit(&work);
	return result;
}

static int best_first(const void *left, const void *right)
{
	const struct causal_prediction *a = left, *b = right;

	if (a->point != b->point)
		return a->point < b->point ? -1 : 1;
	if (a->end_point != b->end_point)
		return a->end_point < b->end_point ? -1 : 1;
	if (a->ranked != b->ranked)
		return a->ranked ? -1 : 1;
	if (a->best_percent != b->best_percent)
		return a->best_percent > b->best_percent ? -1 : 1;
	return a->target < b->target ? -1 : a->target > b->target;
}

static int fit_all(struct fit *fit)
{
	size_t tried = 0;
	int result = 0;

	for (uint32_t target = 1; target < fit->usage_count; target++)
		tried += fit->tried[target];
	fit->result.predictions =
		calloc(tried * fit->list.count + 1, sizeof(*fit->result.predictions));
	fit->result.disturbed = calloc(fit->data->window_count + 1, sizeof(bool));
	if (!fit->result.predictions || !fit->result.disturbed)
		return -ENOMEM;
	if (fit->result.warnings & CAUSAL_WARN_LOAD)
		result = fit_find_stolen(fit->data, fit->result.disturbed);
	for (size_t i = 0; result == 0 && i < fit->list.count; i++)
		result = fit_one(fit, &fit->list.series[i]);
	for (size_t i = 0; i < fit->data->window_count; i++)
		fit->result.disturbed_windows += fit->result.disturbed[i];
	qsort(fit->result.predictions, fit->result.prediction_count,
	      sizeof(*fit->result.predictions), best_first);
	return result;
}

int causal_fit(const struct causal_data *data, const struct causal_fit_options *options,
	       struct causal_result *ret)
{
	struct fit fit = {.data = data};
	int result;

	if (options)
		fit.options = *options;
	fit.result.warnings = fit_warnings_of_run(data);
	result = find_targets(&fit);
	if (result == 0)
		result = fit_series_make(data, &fit.list);
	if (result == 0)
		result = fit_all(&fit);
	fit_series_deinit(&fit.list);
	free(fit.usage);
	free(fit.tried);
	if (result < 0)
		causal_result_deinit(&fit.result);
	else
		*ret = fit.result;
	return result;
}

void causal_result_deinit(struct causal_result *result)
{
	for (size_t i = 0; i < result->prediction_count; i++)
		free(result->predictions[i].estimates);
	free(result->predictions);
	free(result->disturbed);
	*result = (struct causal_result){0};
}
