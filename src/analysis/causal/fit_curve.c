/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Gain over speedup of one target, through (0, 0): a straight line, as where the target is always
 * on the critical path, plus as much bending as the data show. Formally a Gaussian process: a line
 * of any slope plus Brownian motion integrated once (a smoothing spline: Wahba, 1978), whose value
 * at the largest speedup that was measured is a weighted sum of the gains measured. Curves bend
 * where something else becomes critical, often by all of their slope: BEND is the standard
 * deviation of the change of slope over the whole range. The process is not asked beyond that
 * speedup: where a curve bends next is not in what was measured before.
 */
#include <math.h>
#include <string.h>

#include "analysis/causal/fit.h"

#define PRIOR_SLOPE_STANDARD_DEVIATION 3.0
#define PRIOR_BEND_STANDARD_DEVIATION  0.25
/* Added to all variances: no measurement is better than a tenth of a percent. */
#define MEASUREMENT_VARIANCE_LEAST 1e-6

static double compute_prior_covariance_at_speedups(double a, double b)
{
	double low = fmin(a, b), high = fmax(a, b);

	return PRIOR_SLOPE_STANDARD_DEVIATION * PRIOR_SLOPE_STANDARD_DEVIATION * a * b +
	       PRIOR_BEND_STANDARD_DEVIATION * PRIOR_BEND_STANDARD_DEVIATION * low * low *
		       (3 * high - low) / 6;
}

/* Solves matrix x = side in place; the matrix is symmetric and positive, and lost. */
static void solve_symmetric_equations(double matrix[][CAUSAL_FIT_SPEEDUPS_PER_TARGET_MAX],
				      double *side, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t j = 0; j <= i; j++) {
			double sum = matrix[i][j];

			for (uint32_t k = 0; k < j; k++)
				sum -= matrix[i][k] * matrix[j][k];
			matrix[i][j] = i == j ? sqrt(fmax(sum, MEASUREMENT_VARIANCE_LEAST *
								       MEASUREMENT_VARIANCE_LEAST))
					      : sum / matrix[j][j];
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t k = 0; k < i; k++)
			side[i] -= matrix[i][k] * side[k];
		side[i] /= matrix[i][i];
	}
	for (uint32_t i = count; i-- > 0;) {
		for (uint32_t k = i + 1; k < count; k++)
			side[i] -= matrix[k][i] * side[k];
		side[i] /= matrix[i][i];
	}
}

/* Levels that are known: their speedups and variances, and where they are in the curve. */
struct known_speedup_levels {
	double speedup_shares[CAUSAL_FIT_SPEEDUPS_PER_TARGET_MAX],
		ratio_variances[CAUSAL_FIT_SPEEDUPS_PER_TARGET_MAX];
	uint32_t curve_level_indices[CAUSAL_FIT_SPEEDUPS_PER_TARGET_MAX], level_count;
};

static void compute_weights_of_known_levels(const struct known_speedup_levels *known,
					    struct target_curve_weights *curve)
{
	double matrix[CAUSAL_FIT_SPEEDUPS_PER_TARGET_MAX][CAUSAL_FIT_SPEEDUPS_PER_TARGET_MAX],
		weights[CAUSAL_FIT_SPEEDUPS_PER_TARGET_MAX];
	double model = compute_prior_covariance_at_speedups(curve->reach, curve->reach);

	for (uint32_t i = 0; i < known->level_count; i++) {
		weights[i] = compute_prior_covariance_at_speedups(known->speedup_shares[i],
								  curve->reach);
		for (uint32_t j = 0; j < known->level_count; j++)
			matrix[i][j] = compute_prior_covariance_at_speedups(
					       known->speedup_shares[i], known->speedup_shares[j]) +
				       (i == j ? known->ratio_variances[i] : 0);
	}
	solve_symmetric_equations(matrix, weights, known->level_count);
	for (uint32_t i = 0; i < known->level_count; i++) {
		curve->best[known->curve_level_indices[i]] = weights[i];
		model -= 2 * weights[i] *
			 compute_prior_covariance_at_speedups(known->speedup_shares[i],
							      curve->reach);
		for (uint32_t j = 0; j < known->level_count; j++)
			model += weights[i] * weights[j] *
				 compute_prior_covariance_at_speedups(known->speedup_shares[i],
								      known->speedup_shares[j]);
	}
	curve->model = fmax(model, 0);
}

void fit_compute_curve_weights(const struct point_window_series *series,
			       const struct group_period_ratio_estimate *levels, uint32_t first,
			       uint32_t count, struct target_curve_weights *ret)
{
	struct known_speedup_levels known = {.level_count = 0};
	double squares = 0;

	*ret = (struct target_curve_weights){.first = first,
					     .count = count < CAUSAL_FIT_SPEEDUPS_PER_TARGET_MAX
							      ? count
							      : CAUSAL_FIT_SPEEDUPS_PER_TARGET_MAX};
	for (uint32_t i = 0; i < ret->count; i++) {
		double speedup = series->groups[first + i].speedup_permille / 1000.0;

		if (isnan(levels[first + i].ratio_to_baseline_period))
			continue;
		known.curve_level_indices[known.level_count] = i;
		known.speedup_shares[known.level_count] = speedup;
		known.ratio_variances[known.level_count] =
			levels[first + i].variance + MEASUREMENT_VARIANCE_LEAST;
		ret->slope[i] = speedup / known.ratio_variances[known.level_count];
		squares += speedup * ret->slope[i];
		ret->reach = fmax(ret->reach, speedup);
		known.level_count++;
	}
	for (uint32_t i = 0; squares > 0 && i < ret->count; i++)
		ret->slope[i] /= squares;
	compute_weights_of_known_levels(&known, ret);
}

double fit_sum_gains_by_curve_weights(const double *weights,
				      const struct target_curve_weights *curve,
				      const struct group_period_ratio_estimate *levels)
{
	double sum = 0;

	for (uint32_t i = 0; i < curve->count; i++) {
		if (weights[i] != 0)
			sum += weights[i] * (1 - levels[curve->first + i].ratio_to_baseline_period);
	}
	return sum;
}
