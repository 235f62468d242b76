/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Random numbers (splitmix64: Steele, Lea and Flood, 2014) and quantiles of Student's distribution
 * (Hill, algorithm 396 of the Communications of the ACM, 1970: exact for one and two degrees of
 * freedom, within 1e-4 from three on, which is far below what an interval means).
 */
#include <math.h>

#include "analysis/causal/fit.h"
#include "common/splitmix64.h"

uint64_t fit_draw_random_u64(uint64_t *state)
{
	return splitmix64_next(state);
}

/* x with P(|X| > x) = outside: Newton's steps from 0 on the convex side always come nearer. */
static double compute_two_sided_normal_quantile(double outside)
{
	double x = 0;

	for (int i = 0; i < 60; i++) {
		double density = 2 * exp(-x * x / 2) / sqrt(2 * M_PI);
		double step = (erfc(x / M_SQRT2) - outside) / density;

		x += step;
		if (fabs(step) < 1e-12)
			break;
	}
	return x;
}

double fit_compute_student_quantile(double confidence, double freedom)
{
	double outside = fmin(fmax(1 - confidence, 1e-9), 1), n = fmax(freedom, 1);
	double a = 1 / (n - 0.5), b = 48 / (a * a);
	double c = ((20700 * a / b - 98) * a - 16) * a + 96.36;
	double d = ((94.5 / (b + c) - 3) / b + 1) * sqrt(a * M_PI_2) * n;
	double x = d * outside, y = pow(x, 2 / n);

	if (n < 1.5)
		return 1 / tan(outside * M_PI_2);
	if (y > 0.05 + a) {
		x = -compute_two_sided_normal_quantile(outside);
		y = x * x;
		if (n < 5)
			c += 0.3 * (n - 4.5) * (x + 0.6);
		c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b;
		y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x;
		y = expm1(a * y * y);
	} else {
		y = ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) *
			     y -
		     1) * (n + 1) /
			    (n + 2) +
		    1 / y;
	}
	return sqrt(n * y);
}
