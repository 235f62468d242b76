/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Gain over speedup of one target, through (0, 0): a straight line, as where the target is always
 * on the critical path, plus as much bending as the data show. Formally a Gaussian process: a line
 * of any slope plus Brownian motion integrated once (a smoothing spline: Wahba, 1978), whose value
 * at full speedup is a weighted sum of the gains measured. Curves bend where something else becomes
 * critical, often by all of their slope: BEND is the standard deviation of the change of slope
 * over the whole range. Beyond the largest speedup tried, the process says how little is known.
 */
#include <math.h>
#include <string.h>

#include "analysis/causal_fit.h"

#define SLOPE 3.0
#define BEND  0.25
/* Added to all variances: no measurement is better than a tenth of a percent. */
#define NOISE 1e-6

static double covariance(double a, double b)
{
	double low = fmin(a, b), high = fmax(a, b);

	return SLOPE * SLOPE * a * b + BEND * BEND * low * low * (3 * high - low) / 6;
}

/* Solves matrix x = side in place; the matrix is symmetric and positive, and lost. */
static void solve(double matrix[][CAUSAL_FIT_LEVELS], double *side, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t j = 0; j <= i; j++) {
			double sum = matrix[i][j];

			for (uint32_t k = 0; k < j; k++)
				sum -= matrix[i][k] * matrix[j][k];
			matrix[i][j] = i == j ? sqrt(fmax(sum, NOISE * NOISE)) : sum / matrix[j][j];
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
struct known {
	double speedup[CAUSAL_FIT_LEVELS], variance[CAUSAL_FIT_LEVELS];
	uint32_t place[CAUSAL_FIT_LEVELS], count;
};

static void weigh_best(const struct known *known, struct fit_curve *curve)
{
	double matrix[CAUSAL_FIT_LEVELS][CAUSAL_FIT_LEVELS], weights[CAUSAL_FIT_LEVELS];
	double model = covariance(1, 1);

	for (uint32_t i = 0; i < known->count; i++) {
		weights[i] = covariance(known->speedup[i], 1);
		for (uint32_t j = 0; j < known->count; j++)
			matrix[i][j] = covariance(known->speedup[i], known->speedup[j]) +
				       (i == j ? known->variance[i] : 0);
	}
	solve(matrix, weights, known->count);
	for (uint32_t i = 0; i < known->count; i++) {
		curve->best[known->place[i]] = weights[i];
		model -= 2 * weights[i] * covariance(known->speedup[i], 1);
		for (uint32_t j = 0; j < known->count; j++)
			model += weights[i] * weights[j] *
				 covariance(known->speedup[i], known->speedup[j]);
	}
	curve->model = fmax(model, 0);
}

void fit_curve(const struct fit_series *series, const struct fit_level *levels, uint32_t first,
	       uint32_t count, struct fit_curve *ret)
{
	struct known known = {.count = 0};
	double squares = 0;

	*ret = (struct fit_curve){.first = first,
				  .count = count < CAUSAL_FIT_LEVELS ? count : CAUSAL_FIT_LEVELS};
	for (uint32_t i = 0; i < ret->count; i++) {
		double speedup = series->groups[first + i].speedup / 1000.0;

		if (isnan(levels[first + i].ratio))
			continue;
		known.place[known.count] = i;
		known.speedup[known.count] = speedup;
		known.variance[known.count] = levels[first + i].variance + NOISE;
		ret->slope[i] = speedup / known.variance[known.count];
		squares += speedup * ret->slope[i];
		known.count++;
	}
	for (uint32_t i = 0; squares > 0 && i < ret->count; i++)
		ret->slope[i] /= squares;
	weigh_best(&known, ret);
}

double fit_curve_apply(const double *weights, const struct fit_curve *curve,
		       const struct fit_level *levels)
{
	double sum = 0;

	for (uint32_t i = 0; i < curve->count; i++) {
		if (weights[i] != 0)
			sum += weights[i] * (1 - levels[curve->first + i].ratio);
	}
	return sum;
}
