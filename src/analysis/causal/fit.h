/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From windows to predictions, in steps. Each window of a point has a time V (the virtual time of
 * its visits, or the area of a latency point) that N intervals (or departures) took.
 *
 * - Series: the windows of one point in order of time, and groups of them: the baselines, and one
 * for each target and speedup.
 * - Baseline b(i): the baseline's period where window i was. Baselines near in time count more, by
 * as much as predicts left-out baselines best.
 * - Estimate r = sum(V) / sum(N b): the period as a share of the baseline's; the gain is 1 - r.
 * - Curve: gain over speedup, made smooth, for the gain at the largest speedup that was tried: the
 * headline. What lies beyond may bend as it likes, so nothing is said of it.
 * - Change: how much the gain of one stretch of time differs from another's.
 * - Bootstrap: the same with windows drawn again, for the standard errors of all these.
 *
 * Windows of a number of visits are a fair sample of the program's visits, whatever its phases, so
 * ratios of sums need no correction for phases (Curtsinger and Berger need one since their
 * experiments last a given time). They get one all the same, which makes them less uncertain: what
 * windows happened to meet is taken off before (fit_work.c).
 */
#ifndef KYMO_ANALYSIS_CAUSAL_FIT_H
#define KYMO_ANALYSIS_CAUSAL_FIT_H

#include "analysis/causal/causal.h"

#define CAUSAL_FIT_SPEEDUPS_PER_TARGET_MAX 64u /* speedups of one target that a curve takes */

/* ---- series ---- */

struct series_window {
	double time_ns, count; /* V, N: of visits, or of as many with usual work as that is */
	double visits, work;   /* work: CPU time of a visit, of the mean; 0: it tells nothing */
	double error;          /* of the gain of its group, for what its windows happened to meet */
	uint32_t run, target, speedup_permille;
	uint32_t group;
	uint32_t window; /* its place in the data */
};

/* Entries of a series with the same target and speedup: order[first], ... */
struct series_window_group {
	uint32_t target, speedup_permille;
	uint32_t first, count;
	double visits;
};

struct point_window_series {
	uint32_t point, end_point;
	bool process; /* each run is one window: runs are compared with each other */
	struct series_window *entries;
	uint32_t *order;
	struct series_window_group
		*groups; /* by target and speedup; the baselines are group 0, maybe empty */
	uint32_t count, group_count;
};

struct window_series_list {
	struct point_window_series *series;
	size_t count;
};

int fit_make_series_of_points(const struct causal_data *data, struct window_series_list *ret);
void window_series_list_deinit(struct window_series_list *list);
/* Makes order and groups of entries. 0 or -ENOMEM. */
int group_windows_of_series(struct point_window_series *series);
/* That the program could use. */
unsigned causal_data_get_processor_count(const struct causal_data *data);
/* The most that ran in a window; 0: not known. */
uint64_t causal_data_get_thread_count_max(const struct causal_data *data);
/* Sets disturbed[] of the windows in which much time was stolen. 0 or -ENOMEM. */
int fit_mark_windows_with_stolen_time(const struct causal_data *data, bool *disturbed);
/* Takes out entries of disturbed windows, and those that took far longer than others of their kind;
 * sets disturbed[] of their windows. From the others' times is taken off what stolen time did. 0 or
 * -ENOMEM. */
int fit_drop_disturbed_windows(const struct causal_data *data, struct point_window_series *series,
			       bool *disturbed);

/* Takes off what windows happened to meet: of all periods what follows the work of a visit, and of
 * gains what follows the target's time, and the work. 0 or -ENOMEM. */
int fit_correct_counts_for_work(const struct causal_data *data, struct point_window_series *series);
int fit_correct_gains_for_target_times(const struct causal_data *data,
				       struct point_window_series *series);

/* ---- baseline ---- */

/* How quickly the weight of baselines falls with their distance; 1: not at all. */
struct baseline_smoothing {
	double weight_kept_per_window; /* from one window to the next */
	bool prefers_same_run;         /* baselines of other runs count only where there are none */
	double drift_explained_scatter_share; /* how much of the baselines' scatter following them
						 in time explains */
};

struct baseline_smoothing fit_choose_baseline_smoothing(const struct point_window_series *series,
							double *scratch);
/* period[i] for all entries; `period` has room for twice as many, and in the second half are the
 * counts N that each rests on. Where `drawn` is not NULL, drawn[i] stands for a baseline's time. */
void fit_compute_baseline_periods(const struct point_window_series *series,
				  const struct baseline_smoothing *smoothing, const double *drawn,
				  double *period);

/* ---- estimate ---- */

struct group_period_ratio_estimate {
	double ratio_to_baseline_period; /* r */
	double uncorrected_variance; /* variance of r by the scatter of the group's own windows, as
			  a bootstrap sees it: without the correction for few windows */
	double variance; /* the same, corrected, and moderated by all windows of the point */
	double degrees_of_freedom;   /* degrees of freedom behind it */
	double drift_standard_error; /* standard error of r for gains that change in time: of all
			  levels of a target alike */
	double error;                /* standard error of r, with that of the baseline */
	double half;                 /* half width of the interval of r */
};

/* levels[g] for each group; those of too few windows have ratio NAN. */
void fit_estimate_group_ratios(const struct point_window_series *series, const double *period,
			       unsigned least, struct group_period_ratio_estimate *levels);

/* ---- curve: headline gain and slope, linear in the gains at the levels ---- */

struct target_curve_weights {
	uint32_t first, count; /* groups of one target */
	double reach;          /* the largest speedup that was measured, 0 to 1: the headline's */
	double best[CAUSAL_FIT_SPEEDUPS_PER_TARGET_MAX],
		slope[CAUSAL_FIT_SPEEDUPS_PER_TARGET_MAX]; /* weights */
	double model; /* variance of the gain there for not knowing the curve's shape */
};

void fit_compute_curve_weights(const struct point_window_series *series,
			       const struct group_period_ratio_estimate *levels, uint32_t first,
			       uint32_t count, struct target_curve_weights *ret);
double fit_sum_gains_by_curve_weights(const double *weights,
				      const struct target_curve_weights *curve,
				      const struct group_period_ratio_estimate *levels);

/* ---- bootstrap ---- */

struct deviation_sums {
	double sum, square_sum;
};

struct bootstrap_deviation_sums {
	uint32_t repeat_count;
	struct deviation_sums *deviations_by_group; /* one a group */
	struct deviation_sums *best, *slope;        /* one a curve */
};

/* All that is known of one series. */
struct causal_series_model {
	const struct point_window_series *series;
	struct baseline_smoothing baseline_smoothing;
	double *baseline_period_by_window; /* as fit_compute_baseline_periods() makes it */
	struct group_period_ratio_estimate *ratio_estimate_by_group;
	struct target_curve_weights *curve_weights_by_target; /* one a target */
	size_t curve_count;
};

/* ---- change ---- */

/* Variance of the sum of errors, of windows in order of time, for what those near in time have in
 * common. They are beside their mean. */
double fit_compute_shared_error_variance(const double *errors, uint32_t count);
/* Sets the `change` of levels first, ... of one target. 0 or -ENOMEM. */
int fit_set_gain_change_errors(const struct causal_series_model *model, uint32_t first,
			       uint32_t count);

int fit_run_bootstrap(const struct causal_series_model *model, uint32_t repeats, uint64_t seed,
		      struct bootstrap_deviation_sums *ret);
void bootstrap_deviation_sums_deinit(struct bootstrap_deviation_sums *bootstrap);
double fit_compute_deviation_variance(const struct deviation_sums *spread, uint32_t repeats);

/* ---- statistics ---- */

uint64_t fit_draw_random_u64(uint64_t *state);
/* The quantile of Student's distribution, for both sides together: 0.95 and many degrees give 1.96.
 */
double fit_compute_student_quantile(double confidence, double freedom);

/* ---- warnings ---- */

uint32_t fit_find_run_warnings(const struct causal_data *data);
bool fit_baseline_has_drifted(const struct point_window_series *series);
/* In windows of these groups a visit takes clearly more CPU time than in baselines. */
bool fit_groups_need_more_work(const struct causal_data *data,
			       const struct point_window_series *series, uint32_t first,
			       uint32_t count);

#endif
