/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Gains that change while a program runs: a neighbour on the processor's core or in its cache slows
 * one function down more than another, input changes, phases last for a good part of the session.
 * Windows near in time then err alike, also those of different speedups, and what a longer session
 * would have found is less certain than the scatter from window to window says. How much less is
 * told by the products of the errors of windows near in time (Newey and West, A simple, positive
 * semi-definite, heteroskedasticity and autocorrelation consistent covariance matrix, 1987). A
 * window's own scatter is not among them: that is counted already. What may be chance counts by as
 * much less (the positive part of Stein's estimator).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/causal/fit.h"

/* Fewer windows tell nothing of that. */
#define AUTOCORRELATION_WINDOWS_LEAST 12u
/* This share of all windows, on either side, is near. */
#define NEAR_WINDOWS_DIVISOR 6u

/* Sum of products of errors of windows less than `length` apart, each with itself as well, and
 * those further apart for less: that is the mean square of all sums of `length` that follow each
 * other. */
static double sum_products_of_near_errors(const double *errors, uint32_t count, uint32_t length)
{
	double sum = 0, squares = 0;

	for (uint32_t end = 0; end < count + length; end++) {
		sum += end < count ? errors[end] : 0;
		sum -= end >= length ? errors[end - length] : 0;
		squares += sum * sum;
	}
	return squares / length;
}

double fit_compute_shared_error_variance(const double *errors, uint32_t count)
{
	double own = 0, pairs = 0, noise = 0, common;
	uint32_t near = count / NEAR_WINDOWS_DIVISOR;

	if (count < AUTOCORRELATION_WINDOWS_LEAST)
		return 0;
	for (uint32_t i = 0; i < count; i++)
		own += errors[i] * errors[i];
	for (uint32_t distance = 1; distance <= near; distance++) {
		double weight = 2 * (1 - distance / (near + 1.0));

		pairs += weight * (count - distance);
		noise += weight * weight * (count - distance);
	}
	/* Errors beside their mean sum up to nothing, by which they seem less alike than they are.
	 */
	common = sum_products_of_near_errors(errors, count, near + 1) - own +
		 pairs * own / count / (count - 1.0);
	/* of products of errors that have nothing in common */
	noise *= own / count * own / count;
	return common > 0 && common * common > noise ? common - noise / common : 0;
}

/* The error of the gain, beside its group's mean; a window tells of it by its length, and in
 * proportion to its speedup. */
static double compute_window_gain_error(const struct causal_series_model *model, uint32_t index)
{
	const struct series_window *entry = &model->series->entries[index];
	double ratio = model->ratio_estimate_by_group[entry->group].ratio_to_baseline_period;
	double rest =
		ratio * entry->count * model->baseline_period_by_window[index] - entry->time_ns;

	return rest * entry->speedup_permille / 1000;
}

int fit_set_gain_change_errors(const struct causal_series_model *model, uint32_t first,
			       uint32_t count)
{
	const struct point_window_series *series = model->series;
	double *errors = calloc((size_t)series->count + 1, sizeof(*errors));
	double expected = 0, change = 0;
	uint32_t known = 0;

	if (!errors)
		return -ENOMEM;
	for (uint32_t i = 0; i < series->count; i++) {
		const struct series_window *entry = &series->entries[i];
		double speedup = entry->speedup_permille / 1000.0;

		if (entry->group < first || entry->group >= first + count ||
		    isnan(model->ratio_estimate_by_group[entry->group].ratio_to_baseline_period))
			continue;
		errors[known++] = compute_window_gain_error(model, i);
		expected += speedup * speedup * entry->count * model->baseline_period_by_window[i];
	}
	if (expected > 0)
		change = sqrt(fit_compute_shared_error_variance(errors, known)) / expected;
	for (uint32_t g = first; g < first + count; g++)
		model->ratio_estimate_by_group[g].drift_standard_error =
			change * series->groups[g].speedup_permille / 1000;
	free(errors);
	return 0;
}
