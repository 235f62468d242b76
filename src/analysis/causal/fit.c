/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Predictions of what each target would gain; see fit.h for how.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal/data.h"
#include "analysis/causal/fit.h"

#define BOOTSTRAP_REPEATS_DEFAULT 2000u
#define BOOTSTRAP_REPEATS_LEAST   200u
#define GROUP_WINDOWS_LEAST       2u
/* Passes over one entry that a fit may take: some seconds. */
#define BOOTSTRAP_ENTRY_PASSES_MAX 4e8
/* What the method itself is off by where windows scatter little, at full speedup: one standard
 * error. Of workloads whose response is known (bench/causal) half are off by more than that. */
#define FIT_METHOD_ERROR_AT_FULL_SPEEDUP 0.01
/* Degrees of freedom of what all windows have in common (fit_change.c): Student's
 * distribution with as many is as wide as follows for a sixth of the windows being near (Kiefer and
 * Vogelsang, 2005). */
#define SHARED_ERROR_DEGREES_OF_FREEDOM 6.0
/* An interval of this to both sides is worth reporting even around no effect at all. */
#define NARROW_INTERVAL_HALF_WIDTH_PERCENT 5.0

/* CPU time of a target, and what it is a share of. */
struct target_cpu_time {
	double self_ns, total_ns;
};

/* By windows of which the session's CPU time is known: where a process was gone at the end, it is
 * not. In experiments threads spin at the ends of pauses, so that shares are those of the
 * baselines, if there are some. */
struct cpu_time_by_target {
	struct target_cpu_time in_all, in_baselines;
	bool was_sampled; /* in any window */
};

#define SHARE_BASELINES_LEAST 3u

struct causal_fit_context {
	const struct causal_data *data;
	struct causal_fit_options options;
	struct window_series_list series_list;
	struct cpu_time_by_target *cpu_time_by_target_id; /* for ids below target_id_limit */
	double baseline_cpu_ns;
	uint32_t baselines_with_cpu_time;
	bool *was_tried_by_target_id;
	uint32_t target_id_limit;
	struct causal_fit_result result;
};

/* The fit of one series. */
struct series_fit_result {
	struct causal_series_model model;
	struct bootstrap_deviation_sums bootstrap_deviations;
	uint32_t warning_bits;
};

/* ---- targets ---- */

static void add_target_cpu_time(struct target_cpu_time *sum,
				const struct causal_data_target_time_row *time)
{
	sum->self_ns += (double)time->self_ns;
	sum->total_ns += (double)time->total_ns;
}

static void add_cpu_time_of_window(struct causal_fit_context *fit,
				   const struct causal_data_window *window)
{
	bool baseline = window->target == 0 || window->speedup_permille == 0;

	fit->was_tried_by_target_id[window->target] |= window->target && window->speedup_permille;
	fit->result.baseline_window_count += baseline;
	fit->result.cpu_ns += (double)window->cpu_ns;
	if (baseline) {
		fit->baseline_cpu_ns += (double)window->cpu_ns;
		fit->baselines_with_cpu_time += window->cpu_ns > 0;
	}
	for (size_t i = 0; i < window->time_count; i++) {
		struct cpu_time_by_target *times =
			&fit->cpu_time_by_target_id[window->times[i].target];

		times->was_sampled |= window->times[i].total_ns > 0;
		if (window->cpu_ns)
			add_target_cpu_time(&times->in_all, &window->times[i]);
		if (window->cpu_ns && baseline)
			add_target_cpu_time(&times->in_baselines, &window->times[i]);
	}
}

static int sum_target_cpu_time(struct causal_fit_context *fit)
{
	const struct causal_data *data = fit->data;

	for (size_t i = 0; i < data->window_count; i++) {
		const struct causal_data_window *window = &data->windows[i];

		if (window->target >= fit->target_id_limit)
			fit->target_id_limit = window->target + 1;
		for (size_t j = 0; j < window->time_count; j++) {
			if (window->times[j].target >= fit->target_id_limit)
				fit->target_id_limit = window->times[j].target + 1;
		}
	}
	fit->cpu_time_by_target_id =
		calloc((size_t)fit->target_id_limit + 1, sizeof(*fit->cpu_time_by_target_id));
	fit->was_tried_by_target_id =
		calloc((size_t)fit->target_id_limit + 1, sizeof(*fit->was_tried_by_target_id));
	if (!fit->cpu_time_by_target_id || !fit->was_tried_by_target_id)
		return -ENOMEM;
	for (size_t i = 0; i < data->window_count; i++) {
		if (data->windows[i].end != CAUSAL_WINDOW_CUT_SHORT)
			add_cpu_time_of_window(fit, &data->windows[i]);
	}
	return 0;
}

static double compute_share_of_whole(double part, double whole)
{
	return whole > 0 ? fmin(part / whole, 1) : 0;
}

/* ---- one series ---- */

static void series_fit_result_deinit(struct series_fit_result *work)
{
	free(work->model.ratio_estimate_by_group);
	free(work->model.curve_weights_by_target);
	free(work->model.baseline_period_by_window);
	bootstrap_deviation_sums_deinit(&work->bootstrap_deviations);
}

static int compute_curve_weights_of_targets(struct series_fit_result *work)
{
	const struct point_window_series *series = work->model.series;
	int result = 0;

	for (uint32_t first = 1; result == 0 && first < series->group_count;) {
		uint32_t end = first;

		while (end < series->group_count &&
		       series->groups[end].target == series->groups[first].target)
			end++;
		result = fit_set_gain_change_errors(&work->model, first, end - first);
		fit_compute_curve_weights(
			series, work->model.ratio_estimate_by_group, first, end - first,
			&work->model.curve_weights_by_target[work->model.curve_count++]);
		first = end;
	}
	return result;
}

/* Variance of a sum of levels, for the errors that they have in common. */
static double compute_gain_sum_variance_by_shared_errors(const struct series_fit_result *work,
							 const double *weights, uint32_t first,
							 uint32_t count)
{
	const struct point_window_series *series = work->model.series;
	double met = 0, change = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct series_window_group *group = &series->groups[first + i];

		if (!group->count || weights[i] == 0)
			continue;
		met += weights[i] * series->entries[series->order[group->first]].error;
		change += weights[i] *
			  work->model.ratio_estimate_by_group[first + i].drift_standard_error;
	}
	return met * met + change * change;
}

/* Standard error of a sum of levels with these weights (their signs do not matter), whose bootstrap
 * variance is `drawn`. What the levels' own scatter does not explain is the baseline's. */
static void compute_standard_error_of_weighted_gains(const struct series_fit_result *work,
						     double drawn, const double *weights,
						     uint32_t first, uint32_t count, double model,
						     double *ret_error, double *ret_freedom)
{
	double baselines = work->model.series->groups[0].count, own = 0, corrected = 0, freedom = 0;
	double common = compute_gain_sum_variance_by_shared_errors(work, weights, first, count),
	       rest, variance;

	for (uint32_t i = 0; i < count; i++) {
		const struct group_period_ratio_estimate *level =
			&work->model.ratio_estimate_by_group[first + i];
		double square = weights[i] * weights[i];

		if (square == 0)
			continue;
		own += square * level->uncorrected_variance;
		corrected += square * level->variance;
		freedom += square * level->variance * square * level->variance /
			   level->degrees_of_freedom;
	}
	rest = fmax(drawn - own, 0);
	if (baselines > 1)
		rest *= baselines / (baselines - 1);
	variance = fmax(corrected + rest, drawn / 4);
	freedom += rest * rest / fmax(baselines - 1, 1);
	freedom += common * common / SHARED_ERROR_DEGREES_OF_FREEDOM;
	variance += common + model;
	*ret_error = sqrt(variance);
	*ret_freedom = freedom > 0 ? variance * variance / freedom : 1e6;
}

static double get_confidence_level(const struct causal_fit_context *fit)
{
	double confidence = fit->options.confidence_level;

	return confidence > 0 && confidence < 1 ? confidence : 0.95;
}

static void set_confidence_intervals_of_groups(const struct causal_fit_context *fit,
					       struct series_fit_result *work)
{
	static const double one = 1;

	for (uint32_t g = 1; g < work->model.series->group_count; g++) {
		struct group_period_ratio_estimate *level = &work->model.ratio_estimate_by_group[g];
		double freedom, method;

		if (isnan(level->ratio_to_baseline_period))
			continue;
		method = FIT_METHOD_ERROR_AT_FULL_SPEEDUP *
			 work->model.series->groups[g].speedup_permille / 1000;
		compute_standard_error_of_weighted_gains(
			work,
			fit_compute_deviation_variance(
				&work->bootstrap_deviations.deviations_by_group[g],
				work->bootstrap_deviations.repeat_count),
			&one, g, 1, method * method, &level->error, &freedom);
		level->half = level->error *
			      fit_compute_student_quantile(get_confidence_level(fit), freedom);
	}
}

static uint32_t choose_bootstrap_repeat_count(const struct causal_fit_context *fit)
{
	uint32_t repeats =
		fit->options.bootstrap ? fit->options.bootstrap : BOOTSTRAP_REPEATS_DEFAULT;
	double entries = 1;

	for (size_t i = 0; i < fit->series_list.count; i++)
		entries += fit->series_list.series[i].count;
	if (repeats > BOOTSTRAP_REPEATS_LEAST && repeats * entries > BOOTSTRAP_ENTRY_PASSES_MAX)
		repeats = (uint32_t)fmax(BOOTSTRAP_ENTRY_PASSES_MAX / entries,
					 BOOTSTRAP_REPEATS_LEAST);
	return repeats;
}

static int compute_series_fit(const struct causal_fit_context *fit,
			      const struct point_window_series *series,
			      struct series_fit_result *work)
{
	unsigned least = fit->options.least_window_count ? fit->options.least_window_count
							 : GROUP_WINDOWS_LEAST;

	*work = (struct series_fit_result){.model = {.series = series}};
	work->model.ratio_estimate_by_group =
		calloc(series->group_count, sizeof(*work->model.ratio_estimate_by_group));
	work->model.curve_weights_by_target =
		calloc(series->group_count, sizeof(*work->model.curve_weights_by_target));
	work->model.baseline_period_by_window = calloc(series->count, 2 * sizeof(double));
	if (!work->model.ratio_estimate_by_group || !work->model.curve_weights_by_target ||
	    !work->model.baseline_period_by_window)
		return -ENOMEM;
	work->model.baseline_smoothing =
		fit_choose_baseline_smoothing(series, work->model.baseline_period_by_window);
	fit_compute_baseline_periods(series, &work->model.baseline_smoothing, NULL,
				     work->model.baseline_period_by_window);
	fit_estimate_group_ratios(series, work->model.baseline_period_by_window, least,
				  work->model.ratio_estimate_by_group);
	if (compute_curve_weights_of_targets(work) < 0)
		return -ENOMEM;
	work->warning_bits = fit_baseline_has_drifted(series) ? CAUSAL_WARN_BASELINE_DRIFT : 0;
	return fit_run_bootstrap(&work->model, choose_bootstrap_repeat_count(fit),
				 fit->options.seed + series->point, &work->bootstrap_deviations);
}

/* ---- predictions ---- */

static int add_gain_estimates_to_prediction(const struct series_fit_result *work,
					    const struct target_curve_weights *curve,
					    struct causal_prediction *prediction)
{
	prediction->speedup_estimates =
		calloc(curve->count, sizeof(*prediction->speedup_estimates));
	if (!prediction->speedup_estimates)
		return -ENOMEM;
	for (uint32_t i = 0; i < curve->count; i++) {
		const struct series_window_group *group =
			&work->model.series->groups[curve->first + i];
		const struct group_period_ratio_estimate *level =
			&work->model.ratio_estimate_by_group[curve->first + i];
		double gain = 100 * (1 - level->ratio_to_baseline_period);

		if (isnan(level->ratio_to_baseline_period))
			continue;
		prediction->speedup_estimates[prediction->speedup_estimate_count++] =
			(struct causal_gain_estimate_at_speedup){
				.speedup_percent = group->speedup_permille / 10.0,
				.predicted_gain_percent = gain,
				.gain_interval_low_percent = gain - 100 * level->half,
				.gain_interval_high_percent = fmin(gain + 100 * level->half, 100),
				.window_count = group->count,
				.visit_count = (uint64_t)group->visits,
			};
	}
	return 0;
}

static void set_prediction_gain_and_slope(const struct causal_fit_context *fit,
					  const struct series_fit_result *work, size_t index,
					  struct causal_prediction *prediction)
{
	const struct target_curve_weights *curve = &work->model.curve_weights_by_target[index];
	const struct bootstrap_deviation_sums *drawn = &work->bootstrap_deviations;
	double method = FIT_METHOD_ERROR_AT_FULL_SPEEDUP * curve->reach;
	double best = fit_sum_gains_by_curve_weights(curve->best, curve,
						     work->model.ratio_estimate_by_group);
	double slope = fit_sum_gains_by_curve_weights(curve->slope, curve,
						      work->model.ratio_estimate_by_group),
	       error, freedom;

	compute_standard_error_of_weighted_gains(
		work, fit_compute_deviation_variance(&drawn->best[index], drawn->repeat_count),
		curve->best, curve->first, curve->count, curve->model + method * method, &error,
		&freedom);
	error *= fit_compute_student_quantile(get_confidence_level(fit), freedom);
	/* No more than all of the time can be saved. */
	best = fmin(best, 1);
	prediction->headline_speedup_percent = 100 * curve->reach;
	prediction->headline_gain_percent = 100 * best;
	prediction->headline_gain_low_percent = 100 * (best - error);
	prediction->headline_gain_high_percent = 100 * fmin(best + error, 1);
	compute_standard_error_of_weighted_gains(
		work, fit_compute_deviation_variance(&drawn->slope[index], drawn->repeat_count),
		curve->slope, curve->first, curve->count,
		FIT_METHOD_ERROR_AT_FULL_SPEEDUP * FIT_METHOD_ERROR_AT_FULL_SPEEDUP, &error,
		&freedom);
	error *= fit_compute_student_quantile(get_confidence_level(fit), freedom);
	prediction->gain_per_speedup_slope = slope;
	prediction->slope_interval_low = slope - error;
	prediction->slope_interval_high = slope + error;
}

static uint32_t find_prediction_warnings(const struct causal_data *data,
					 const struct series_fit_result *work,
					 const struct target_curve_weights *curve,
					 const struct causal_prediction *prediction)
{
	double visits = 0,
	       half = prediction->headline_gain_percent - prediction->headline_gain_low_percent;
	uint32_t windows = 0, warnings = work->warning_bits;

	for (uint32_t i = 0; i < curve->count; i++) {
		visits += work->model.series->groups[curve->first + i].visits;
		windows += work->model.series->groups[curve->first + i].count;
	}
	if (visits < 5.0 * windows && !work->model.series->process)
		warnings |= CAUSAL_WARN_FEW_VISITS;
	if (prediction->speedup_estimate_count == 0 || work->model.series->groups[0].count < 2)
		return warnings | CAUSAL_WARN_FEW_WINDOWS;
	if (windows < 4 || work->model.series->groups[0].count < 3)
		warnings |= CAUSAL_WARN_FEW_WINDOWS;
	if (half >
	    fmax(fabs(prediction->headline_gain_percent), NARROW_INTERVAL_HALF_WIDTH_PERCENT))
		warnings |= CAUSAL_WARN_WIDE_INTERVALS;
	if (prediction->headline_gain_high_percent < 0 &&
	    fit_groups_need_more_work(data, work->model.series, curve->first, curve->count))
		warnings |= CAUSAL_WARN_EXTRA_WORK;
	return warnings;
}

static int add_target_prediction(struct causal_fit_context *fit,
				 const struct series_fit_result *work, uint32_t target)
{
	static const uint32_t unsupported = CAUSAL_WARN_NO_VISITS | CAUSAL_WARN_NO_TARGET_SAMPLES |
					    CAUSAL_WARN_WIDE_INTERVALS | CAUSAL_WARN_FEW_WINDOWS |
					    CAUSAL_WARN_EXTRA_WORK;
	const struct point_window_series *series = work->model.series;
	struct causal_prediction *prediction =
		&fit->result.predictions[fit->result.prediction_count++];
	const struct cpu_time_by_target *usage = &fit->cpu_time_by_target_id[target];
	bool by_baselines = fit->baselines_with_cpu_time >= SHARE_BASELINES_LEAST;
	const struct target_cpu_time *part = by_baselines ? &usage->in_baselines : &usage->in_all;
	double whole = by_baselines ? fit->baseline_cpu_ns : fit->result.cpu_ns;
	const struct series_window_group *baseline = &series->groups[0];
	double time = 0;
	size_t index = 0;
	int result = 0;

	prediction->target = target;
	prediction->point = series->point;
	prediction->end_point = series->end_point;
	prediction->self_share = compute_share_of_whole(part->self_ns, whole);
	prediction->total_share = compute_share_of_whole(part->total_ns, whole);
	for (uint32_t i = 0; i < baseline->count; i++)
		time += series->entries[series->order[baseline->first + i]].time_ns;
	prediction->baseline_period_or_latency_ns =
		baseline->visits > 0 ? time / baseline->visits : 0;
	while (index < work->model.curve_count &&
	       series->groups[work->model.curve_weights_by_target[index].first].target != target)
		index++;
	if (index == work->model.curve_count) {
		prediction->warning_bits = CAUSAL_WARN_NO_VISITS;
	} else {
		result = add_gain_estimates_to_prediction(
			work, &work->model.curve_weights_by_target[index], prediction);
		if (result == 0 && prediction->speedup_estimate_count)
			set_prediction_gain_and_slope(fit, work, index, prediction);
		prediction->warning_bits = find_prediction_warnings(
			fit->data, work, &work->model.curve_weights_by_target[index], prediction);
	}
	if (!usage->was_sampled)
		prediction->warning_bits |= CAUSAL_WARN_NO_TARGET_SAMPLES;
	prediction->is_supported_by_data = !(prediction->warning_bits & unsupported);
	return result;
}

static int compute_predictions_of_series(struct causal_fit_context *fit,
					 struct point_window_series *series)
{
	struct series_fit_result work = {.model = {.series = series}};
	int result = 0;

	result = fit_correct_counts_for_work(fit->data, series);
	if (result == 0 && fit->result.warning_bits & CAUSAL_WARN_OUTSIDE_LOAD)
		result = fit_drop_disturbed_windows(fit->data, series,
						    fit->result.is_window_disturbed);
	if (result == 0)
		result = fit_correct_gains_for_target_times(fit->data, series);
	if (result == 0)
		result = compute_series_fit(fit, series, &work);
	if (result == 0)
		set_confidence_intervals_of_groups(fit, &work);
	for (uint32_t target = 1; result == 0 && target < fit->target_id_limit; target++) {
		if (fit->was_tried_by_target_id[target])
			result = add_target_prediction(fit, &work, target);
	}
	fit->result.warning_bits |= work.warning_bits;
	series_fit_result_deinit(&work);
	return result;
}

static int compare_predictions_by_gain(const void *left, const void *right)
{
	const struct causal_prediction *a = left, *b = right;

	if (a->point != b->point)
		return a->point < b->point ? -1 : 1;
	if (a->end_point != b->end_point)
		return a->end_point < b->end_point ? -1 : 1;
	if (a->is_supported_by_data != b->is_supported_by_data)
		return a->is_supported_by_data ? -1 : 1;
	if (a->headline_gain_percent != b->headline_gain_percent)
		return a->headline_gain_percent > b->headline_gain_percent ? -1 : 1;
	return a->target < b->target ? -1 : a->target > b->target;
}

static int compute_predictions_of_all_series(struct causal_fit_context *fit)
{
	size_t tried = 0;
	int result = 0;

	for (uint32_t target = 1; target < fit->target_id_limit; target++)
		tried += fit->was_tried_by_target_id[target];
	fit->result.predictions =
		calloc(tried * fit->series_list.count + 1, sizeof(*fit->result.predictions));
	fit->result.is_window_disturbed = calloc(fit->data->window_count + 1, sizeof(bool));
	if (!fit->result.predictions || !fit->result.is_window_disturbed)
		return -ENOMEM;
	if (fit->result.warning_bits & CAUSAL_WARN_OUTSIDE_LOAD)
		result = fit_mark_windows_with_stolen_time(fit->data,
							   fit->result.is_window_disturbed);
	for (size_t i = 0; result == 0 && i < fit->series_list.count; i++)
		result = compute_predictions_of_series(fit, &fit->series_list.series[i]);
	for (size_t i = 0; i < fit->data->window_count; i++)
		fit->result.disturbed_window_count += fit->result.is_window_disturbed[i];
	qsort(fit->result.predictions, fit->result.prediction_count,
	      sizeof(*fit->result.predictions), compare_predictions_by_gain);
	return result;
}

int causal_compute_predictions(const struct causal_data *data,
			       const struct causal_fit_options *options,
			       struct causal_fit_result *ret)
{
	struct causal_fit_context fit = {.data = data};
	int result;

	if (options)
		fit.options = *options;
	fit.result.warning_bits = fit_find_run_warnings(data);
	result = sum_target_cpu_time(&fit);
	if (result == 0)
		result = fit_make_series_of_points(data, &fit.series_list);
	if (result == 0)
		result = compute_predictions_of_all_series(&fit);
	window_series_list_deinit(&fit.series_list);
	free(fit.cpu_time_by_target_id);
	free(fit.was_tried_by_target_id);
	if (result < 0)
		causal_fit_result_deinit(&fit.result);
	else
		*ret = fit.result;
	return result;
}

void causal_fit_result_deinit(struct causal_fit_result *result)
{
	for (size_t i = 0; i < result->prediction_count; i++)
		free(result->predictions[i].speedup_estimates);
	free(result->predictions);
	free(result->is_window_disturbed);
	*result = (struct causal_fit_result){0};
}
