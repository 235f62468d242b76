/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What windows happened to meet. Speedups are virtual: the work of a visit, in CPU time, is the
 * same with and without. So where a group of windows had more work a visit than others, or more of
 * the target, that is chance: phases of the program, the processor's clock, and samples, of which a
 * window has some hundred and by which others are delayed. Chance is taken off as far as it shows
 * in what is measured beside the periods (ratio and regression estimators; Cochran, Sampling
 * Techniques, 1977, chapters 6 and 7):
 *
 *   work         Baselines tell by how much periods follow it. Where they do, a window counts as so
 *                many visits of usual work as its work makes: all periods become those of such.
 *   the target   A gain is in proportion to the target's time, by as much as the windows of the
 *                target's own groups show. The group's gain is that of the usual time.
 *   work again   The same for what work tells of the gain: phases without the target.
 *
 * What is not told with certainty counts by as much less (the positive part of Stein's estimator),
 * and makes the gain less certain. Nothing is used that grows or falls with the speedup, so is no
 * chance: threads that work all the time, whether there is progress or not, do more of it
 * where progress is delayed.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/causal/fit.h"

/* Fewer baselines tell nothing of that. */
#define CORRECTION_BASELINES_LEAST 8u
/* What happens by chance in one of a hundred cases: deviations of a normal distribution. */
#define NORMAL_ONE_PERCENT_QUANTILE 2.326
/* Degrees of freedom that a slope needs. */
#define SLOPE_DEGREES_OF_FREEDOM_LEAST 3.0
/* A group that met less than this share of the usual says little of what it would gain by it. */
#define COVARIATE_HARDLY_MET_SHARE_MAX 0.25

struct slope_estimate {
	double slope, variance;
};

/* ---- statistics ---- */

/* y over x by least squares through 0, of sums of squares and products. */
static struct slope_estimate compute_slope_through_origin(double xx, double xy, double yy,
							  double freedom)
{
	struct slope_estimate slope = {0};

	if (freedom < SLOPE_DEGREES_OF_FREEDOM_LEAST || !(xx > 0))
		return slope;
	slope.slope = xy / xx;
	slope.variance = fmax(yy - slope.slope * xy, 0) / freedom / xx;
	return slope;
}

static double shrink_by_slope_uncertainty(const struct slope_estimate *slope, double value)
{
	double square = slope->slope * slope->slope;

	return square > slope->variance ? value * (1 - slope->variance / square) : 0;
}

/* Is the ratio of two variances larger than by chance? (Paulson, 1942) */
static bool variance_ratio_exceeds_chance(double ratio, double above, double below)
{
	double root = cbrt(ratio), a = 2 / (9 * above), b = 2 / (9 * below);

	return (root * (1 - b) - (1 - a)) / sqrt(b * root * root + a) > NORMAL_ONE_PERCENT_QUANTILE;
}

/* Sums for a line over speedups through one value without any, with a slope for each target. */
struct speedup_line_sums {
	double value_count, value_sum, value_square_sum; /* of all values */
	double speedup_sum, speedup_square_sum,
		speedup_value_product_sum; /* of the target at hand */
	double finished_explained_count, finished_explained_sum,
		finished_explained_squares; /* of all targets before */
	uint32_t finished_target_count;
};

static void fold_finished_target_into_line_sums(struct speedup_line_sums *doses)
{
	if (doses->speedup_square_sum > 0) {
		doses->finished_explained_count +=
			doses->speedup_sum * doses->speedup_sum / doses->speedup_square_sum;
		doses->finished_explained_sum += doses->speedup_sum *
						 doses->speedup_value_product_sum /
						 doses->speedup_square_sum;
		doses->finished_explained_squares += doses->speedup_value_product_sum *
						     doses->speedup_value_product_sum /
						     doses->speedup_square_sum;
		doses->finished_target_count++;
	}
	doses->speedup_sum = doses->speedup_square_sum = doses->speedup_value_product_sum = 0;
}

static void add_group_to_line_sums(struct speedup_line_sums *doses,
				   const struct point_window_series *series,
				   const struct series_window_group *group, const double *values)
{
	double speedup = group->target ? group->speedup_permille / 1000.0 : 0;

	for (uint32_t i = 0; i < group->count; i++) {
		double value = values[series->order[group->first + i]];

		doses->value_count++;
		doses->value_sum += value;
		doses->value_square_sum += value * value;
		doses->speedup_sum += speedup;
		doses->speedup_square_sum += speedup * speedup;
		doses->speedup_value_product_sum += speedup * value;
	}
}

/* Do values change with the speedup, of any of the targets of these groups? */
static bool values_follow_speedup(const struct point_window_series *series, const double *values,
				  uint32_t first, uint32_t end)
{
	struct speedup_line_sums doses = {0};
	double all, rest, freedom;

	add_group_to_line_sums(&doses, series, &series->groups[0], values);
	for (uint32_t g = first; g < end; g++) {
		add_group_to_line_sums(&doses, series, &series->groups[g], values);
		if (g + 1 == end || series->groups[g + 1].target != series->groups[g].target)
			fold_finished_target_into_line_sums(&doses);
	}
	freedom = doses.value_count - doses.finished_target_count - 1;
	if (!doses.finished_target_count || freedom < SLOPE_DEGREES_OF_FREEDOM_LEAST)
		return true;
	all = doses.value_square_sum - doses.value_sum * doses.value_sum / doses.value_count;
	rest = doses.value_square_sum - doses.finished_explained_squares -
	       (doses.value_sum - doses.finished_explained_sum) *
		       (doses.value_sum - doses.finished_explained_sum) /
		       (doses.value_count - doses.finished_explained_count);
	rest = fmax(rest, 1e-12 * doses.value_square_sum);
	return variance_ratio_exceeds_chance((all - rest) / doses.finished_target_count /
						     (rest / freedom),
					     doses.finished_target_count, freedom);
}

/* ---- work ---- */

/* Sets the CPU time of a visit; false where that is not known of some window. */
static bool set_work_per_visit_of_all_windows(const struct causal_data *data,
					      struct point_window_series *series)
{
	bool known = true;

	for (uint32_t i = 0; i < series->count; i++) {
		struct series_window *entry = &series->entries[i];
		const struct causal_data_window *window = &data->windows[entry->window];

		entry->work = 0;
		for (size_t j = 0; j < window->time_count; j++)
			entry->work += (double)window->times[j].self_ns;
		entry->work /= entry->visits;
		known &= entry->work > 0 && isfinite(entry->work) && entry->time_ns > 0;
	}
	return known;
}

/* The elasticity of periods to work, in baselines: 1 where they are in proportion, 0 where there is
 * no relation. Work is in logarithms. */
static double compute_period_elasticity_to_work(const struct point_window_series *series,
						const double *work)
{
	const struct series_window_group *group = &series->groups[0];
	double x = 0, y = 0, xx = 0, xy = 0, yy = 0;
	struct slope_estimate slope;

	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t place = series->order[group->first + i];
		double period = log(series->entries[place].time_ns / series->entries[place].count);

		x += work[place];
		y += period;
		xx += work[place] * work[place];
		xy += work[place] * period;
		yy += period * period;
	}
	slope = compute_slope_through_origin(xx - x * x / group->count, xy - x * y / group->count,
					     yy - y * y / group->count, group->count - 2.0);
	return shrink_by_slope_uncertainty(&slope, fmin(fmax(slope.slope, 0), 1));
}

/* In logarithms, of the mean. */
static void compute_log_relative_work(const struct point_window_series *series, double *work)
{
	double mean = 0;

	for (uint32_t i = 0; i < series->count; i++)
		mean += series->entries[i].work / series->count;
	for (uint32_t i = 0; i < series->count; i++)
		work[i] = log(series->entries[i].work / mean);
}

static bool series_can_be_corrected(const struct point_window_series *series)
{
	return series->groups[0].count >= CORRECTION_BASELINES_LEAST && !series->process;
}

int fit_correct_counts_for_work(const struct causal_data *data, struct point_window_series *series)
{
	double *work, power = 0;
	bool known;

	if (!series_can_be_corrected(series) || !set_work_per_visit_of_all_windows(data, series))
		return 0;
	work = calloc((size_t)series->count + 1, sizeof(*work));
	if (!work)
		return -ENOMEM;
	compute_log_relative_work(series, work);
	known = !values_follow_speedup(series, work, 1, series->group_count);
	if (known)
		power = compute_period_elasticity_to_work(series, work);
	for (uint32_t i = 0; i < series->count; i++) {
		series->entries[i].work = known ? exp(work[i]) : 0;
		series->entries[i].count *= pow(exp(work[i]), power);
	}
	free(work);
	return 0;
}

/* ---- what tells of gains ---- */

/* Something that windows met, by the visit. */
struct window_covariate {
	const double *value_per_visit_by_window;
	double mean_value, mean_variance; /* of all windows; the variance is the mean's */
	bool is_target_time;              /* the target's: what has none of it gains nothing */
};

/* 0 or -ENOMEM. */
static int compute_covariate_mean_and_variance(const struct point_window_series *series,
					       const double *values, struct window_covariate *ret)
{
	struct window_covariate variate = {.value_per_visit_by_window = values};
	double *errors = calloc((size_t)series->count + 1, sizeof(*errors));
	double counts = 0, squares = 0;

	if (!errors)
		return -ENOMEM;
	for (uint32_t i = 0; i < series->count; i++) {
		variate.mean_value += values[i] * series->entries[i].count;
		counts += series->entries[i].count;
	}
	variate.mean_value /= counts;
	for (uint32_t i = 0; i < series->count; i++) {
		double value = values[i] - variate.mean_value;

		errors[i] = value * series->entries[i].count * series->count / counts;
		squares += value * value;
	}
	squares += fit_compute_shared_error_variance(errors, series->count);
	variate.mean_variance = squares / series->count / series->count;
	free(errors);
	*ret = variate;
	return 0;
}

/* Means of a group, and by how much more it gains where the value is larger by one, if all of the
 * gain is the target's, or if the value tells of phases. */
struct group_covariate_means {
	double period, mean_value, gain_per_value_slope;
	bool is_hardly_met; /* it met too little for that */
};

static struct group_covariate_means
compute_group_covariate_means(const struct point_window_series *series,
			      const struct series_window_group *group,
			      const struct window_covariate *variate, double baseline)
{
	struct group_covariate_means means = {0};
	double counts = 0, least = COVARIATE_HARDLY_MET_SHARE_MAX * variate->mean_value;

	for (uint32_t i = 0; i < group->count; i++) {
		uint32_t place = series->order[group->first + i];

		means.period += series->entries[place].time_ns;
		means.mean_value +=
			variate->value_per_visit_by_window[place] * series->entries[place].count;
		counts += series->entries[place].count;
	}
	means.period /= counts;
	means.mean_value /= counts;
	means.is_hardly_met = variate->is_target_time && means.mean_value < least;
	means.gain_per_value_slope =
		variate->is_target_time ? (baseline - means.period) / fmax(means.mean_value, least)
					: baseline * group->speedup_permille / 1000;
	return means;
}

/* How much of that gains differ by from window to window, within the target's groups. */
static struct slope_estimate
compute_gain_response_to_covariate(const struct point_window_series *series,
				   const struct window_covariate *variate, uint32_t first,
				   uint32_t end, double baseline)
{
	double xx = 0, xy = 0, yy = 0, freedom = -1;

	for (uint32_t g = first; g < end; g++) {
		const struct series_window_group *group = &series->groups[g];
		struct group_covariate_means means =
			compute_group_covariate_means(series, group, variate, baseline);

		for (uint32_t i = 0; i < group->count; i++) {
			uint32_t place = series->order[group->first + i];
			const struct series_window *entry = &series->entries[place];
			double x = means.gain_per_value_slope *
				   (variate->value_per_visit_by_window[place] - means.mean_value);
			double y = means.period - entry->time_ns / entry->count;

			xx += x * x;
			xy += x * y;
			yy += y * y;
		}
		freedom += group->count - 1.0;
	}
	return compute_slope_through_origin(xx, xy, yy, freedom);
}

/* Standard error of a gain by what the group has hardly met: anything up to the target's share. */
static double compute_gain_error_of_hardly_met_target(const struct series_window_group *group,
						      const struct group_covariate_means *means,
						      const struct window_covariate *variate,
						      double baseline)
{
	double most = fmin(variate->mean_value / baseline, 1) * group->speedup_permille / 1000;

	return means->is_hardly_met
		       ? most *
				 (1 - means->mean_value / (COVARIATE_HARDLY_MET_SHARE_MAX *
							   variate->mean_value)) /
				 2
		       : 0;
}

static void correct_times_by_covariate(struct point_window_series *series,
				       const struct window_covariate *variate, uint32_t first,
				       uint32_t end, double baseline)
{
	struct slope_estimate slope =
		compute_gain_response_to_covariate(series, variate, first, end, baseline);
	/* no more than all of a gain is the target's */
	double part = shrink_by_slope_uncertainty(
		&slope, variate->is_target_time ? fmin(fmax(slope.slope, 0), 1) : slope.slope);

	for (uint32_t g = first; g < end && part != 0; g++) {
		const struct series_window_group *group = &series->groups[g];
		struct group_covariate_means means =
			compute_group_covariate_means(series, group, variate, baseline);
		double by = means.gain_per_value_slope / baseline,
		       off = means.mean_value - variate->mean_value;
		double variance =
			by * by *
			(part * part * variate->mean_variance + slope.variance * off * off);
		double missing = part * compute_gain_error_of_hardly_met_target(group, &means,
										variate, baseline);

		for (uint32_t i = 0; i < group->count; i++) {
			uint32_t place = series->order[group->first + i];
			struct series_window *entry = &series->entries[place];
			double more =
				part * means.gain_per_value_slope *
				(variate->value_per_visit_by_window[place] - variate->mean_value);

			entry->time_ns =
				fmax(entry->time_ns + more * entry->count, entry->time_ns / 100);
			entry->error =
				sqrt(entry->error * entry->error + variance + missing * missing);
		}
	}
}

static double compute_mean_baseline_period(const struct point_window_series *series)
{
	const struct series_window_group *group = &series->groups[0];
	double time = 0, count = 0;

	for (uint32_t i = 0; i < group->count; i++) {
		time += series->entries[series->order[group->first + i]].time_ns;
		count += series->entries[series->order[group->first + i]].count;
	}
	return time / count;
}

/* Time of the target, with what it calls, by the visit of usual work. */
static void compute_target_time_per_visit(const struct causal_data *data,
					  const struct point_window_series *series, uint32_t target,
					  double *time)
{
	for (uint32_t i = 0; i < series->count; i++) {
		const struct causal_data_window *window = &data->windows[series->entries[i].window];

		time[i] = 0;
		for (size_t j = 0; j < window->time_count; j++) {
			if (window->times[j].target == target)
				time[i] = (double)window->times[j].total_ns;
		}
		time[i] /= series->entries[i].count;
	}
}

static int correct_times_of_target(const struct causal_data *data,
				   struct point_window_series *series, uint32_t first, uint32_t end,
				   double *values)
{
	double baseline = compute_mean_baseline_period(series);
	struct window_covariate variate;
	int result;

	compute_target_time_per_visit(data, series, series->groups[first].target, values);
	result = compute_covariate_mean_and_variance(series, values, &variate);
	if (result < 0)
		return result;
	variate.is_target_time = true;
	if (variate.mean_value > 0 && !values_follow_speedup(series, values, first, end))
		correct_times_by_covariate(series, &variate, first, end, baseline);
	for (uint32_t i = 0; i < series->count; i++)
		values[i] = series->entries[i].work;
	result = compute_covariate_mean_and_variance(series, values, &variate);
	if (result == 0)
		correct_times_by_covariate(series, &variate, first, end, baseline);
	return result;
}

int fit_correct_gains_for_target_times(const struct causal_data *data,
				       struct point_window_series *series)
{
	double *values;
	int result = 0;

	if (!series_can_be_corrected(series))
		return 0;
	values = calloc((size_t)series->count + 1, sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (uint32_t first = 1, end; result == 0 && first < series->group_count; first = end) {
		for (end = first; end < series->group_count &&
				  series->groups[end].target == series->groups[first].target;)
			end++;
		result = correct_times_of_target(data, series, first, end, values);
	}
	free(values);
	return result;
}
