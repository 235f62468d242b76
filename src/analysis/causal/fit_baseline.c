/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the baseline's period was when a window was measured. Programs drift (caches warm, a
 * processor slows down, input changes) and have phases, so baselines near in time tell more; but
 * few of them tell less than many. The weight of a baseline falls by a constant factor from one
 * window to the next, which takes two passes for all windows, and the factor is the one that
 * predicts each baseline best from the others. Distance is counted in windows rather than in
 * seconds since windows have the same number of visits: so all visits weigh the same in the end.
 */
#include <math.h>
#include <stddef.h>

#include "analysis/causal/fit.h"
#include "common/array.h"

/* Share of a plain sum over all baselines, for windows that are far from any. */
#define FAR_BASELINE_WEIGHT 1e-9

/* Weighted sums of V and N of baselines, at every window. */
static void compute_smoothed_baseline_sums(const struct point_window_series *series,
					   const struct baseline_smoothing *smoothing,
					   const double *drawn, double *times, double *counts)
{
	const struct series_window *entries = series->entries;
	double time = 0, count = 0, all_time = 0, all_count = 0;

	for (uint32_t i = 0; i < series->count; i++) {
		bool other =
			i && smoothing->prefers_same_run && entries[i].run != entries[i - 1].run;
		double own_time = entries[i].target ? 0 : drawn ? drawn[i] : entries[i].time_ns;
		double own_count = entries[i].target ? 0 : entries[i].count;

		time = (other ? 0 : time * smoothing->weight_kept_per_window) + own_time;
		count = (other ? 0 : count * smoothing->weight_kept_per_window) + own_count;
		all_time += own_time;
		all_count += own_count;
		times[i] = time;
		counts[i] = count;
	}
	time = count = 0;
	for (uint32_t i = series->count; i-- > 0;) {
		bool other = i + 1 < series->count && smoothing->prefers_same_run &&
			     entries[i].run != entries[i + 1].run;

		time = other ? 0 : time * smoothing->weight_kept_per_window;
		count = other ? 0 : count * smoothing->weight_kept_per_window;
		times[i] += time + FAR_BASELINE_WEIGHT * all_time;
		counts[i] += count + FAR_BASELINE_WEIGHT * all_count;
		time += entries[i].target ? 0 : drawn ? drawn[i] : entries[i].time_ns;
		count += entries[i].target ? 0 : entries[i].count;
	}
}

void fit_compute_baseline_periods(const struct point_window_series *series,
				  const struct baseline_smoothing *smoothing, const double *drawn,
				  double *period)
{
	double *counts = period + series->count;

	compute_smoothed_baseline_sums(series, smoothing, drawn, period, counts);
	for (uint32_t i = 0; i < series->count; i++)
		period[i] = counts[i] > 0 ? period[i] / counts[i] : NAN;
}

/* Mean squared relative error of each baseline's prediction by the others. */
static double compute_baseline_leave_one_out_error(const struct point_window_series *series,
						   const struct baseline_smoothing *smoothing,
						   double *scratch)
{
	double *counts = scratch + series->count, error = 0;
	uint32_t known = 0;

	compute_smoothed_baseline_sums(series, smoothing, NULL, scratch, counts);
	for (uint32_t i = 0; i < series->groups[0].count; i++) {
		uint32_t place = series->order[series->groups[0].first + i];
		const struct series_window *entry = &series->entries[place];
		double others = (scratch[place] - entry->time_ns) / (counts[place] - entry->count);
		double relative = entry->time_ns / entry->count / others - 1;

		if (!isfinite(relative))
			continue;
		error += relative * relative;
		known++;
	}
	return known ? error / known : INFINITY;
}

struct baseline_smoothing fit_choose_baseline_smoothing(const struct point_window_series *series,
							double *scratch)
{
	static const double numbers[] = {96, 32, 12, 5}; /* of baselines that matter */
	struct baseline_smoothing best = {1, false, 0}, tried = {1, true, 0};
	uint32_t baselines = series->groups[0].count;
	double plain = compute_baseline_leave_one_out_error(series, &best, scratch), least = plain;

	/* A narrower view must predict better, since it is chosen by the data that it is used on.
	 */
	for (size_t i = 0; i <= ARRAY_SIZE(numbers); i++) {
		double error;

		if (i > 0) {
			double spacing = (double)series->count / baselines;

			if (baselines < 1.5 * numbers[i - 1])
				continue;
			/* Two sides of weights exp(-d / h): 4 h of them count. */
			tried.weight_kept_per_window = exp(-4 / (numbers[i - 1] * spacing));
		}
		tried.prefers_same_run = !series->process;
		if (series->process && tried.weight_kept_per_window == 1)
			continue;
		error = compute_baseline_leave_one_out_error(series, &tried, scratch);
		if (error < 0.95 * least) {
			least = error;
			best = tried;
		}
	}
	best.drift_explained_scatter_share = plain > 0 && isfinite(plain) ? 1 - least / plain : 0;
	return best;
}
