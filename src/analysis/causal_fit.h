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
 * - Curve: gain over speedup, made smooth, for the gain at full speedup.
 * - Change: how much the gain of one stretch of time differs from another's.
 * - Bootstrap: the same with windows drawn anew, for the standard errors of all these.
 *
 * Windows of a number of visits are a fair sample of the program's visits, whatever its phases, so
 * ratios of sums need no correction for phases (Curtsinger and Berger need one since their
 * experiments last a given time). They get one all the same, which makes them less uncertain: what
 * windows happened to meet is taken off before (causal_fit_work.c).
 */
#ifndef KYMO_ANALYSIS_CAUSAL_FIT_H
#define KYMO_ANALYSIS_CAUSAL_FIT_H

#include "analysis/causal.h"

#define CAUSAL_FIT_LEVELS 64u /* speedups of one target that a curve takes */

/* ---- series ---- */

struct fit_entry {
	double time, count;  /* V, N: of visits, or of as many with usual work as that is */
	double visits, work; /* work: CPU time of a visit, of the mean; 0: it tells nothing */
	double error;        /* of the gain of its group, for what its windows happened to meet */
	uint32_t run, target, speedup;
	uint32_t group;
	uint32_t window; /* its place in the data */
};

/* Entries of a series with the same target and speedup: order[first], ... */
struct fit_group {
	uint32_t target, speedup;
	uint32_t first, count;
	double visits;
};

struct fit_series {
	uint32_t point, end_point;
	bool process; /* each run is one window: runs are compared with each other */
	struct fit_entry *entries;
	uint32_t *order;
	struct fit_group
		*groups; /* by target and speedup; the baselines are group 0, maybe empty */
	uint32_t count, group_count;
};

struct fit_series_list {
	struct fit_series *series;
	size_t count;
};

int fit_series_make(const struct causal_data *data, struct fit_series_list *ret);
void fit_series_deinit(struct fit_series_list *list);
/* Makes order and groups of entries. 0 or -ENOMEM. */
int fit_series_group(struct fit_series *series);
/* That the program could use. */
unsigned fit_processors_of(const struct causal_data *data);
/* The most that ran in a window; 0: not known. */
uint64_t fit_threads_of(const struct causal_data *data);
/* Sets disturbed[] of the windows in which much time was stolen. 0 or -ENOMEM. */
int fit_find_stolen(const struct causal_data *data, bool *disturbed);
/* Takes out entries of disturbed windows, and those that took far longer than others of their kind;
 * sets disturbed[] of their windows. From the others' times is taken off what stolen time did. 0 or
 * -ENOMEM. */
int fit_leave_out_disturbed(const struct causal_data *data, struct fit_series *series,
			    bool *disturbed);

/* Takes off what windows happened to meet: of all periods what follows the work of a visit, and of
 * gains what follows the target's time, and the work. 0 or -ENOMEM. */
int fit_level_work(const struct causal_data *data, struct fit_series *series);
int fit_level_gains(const struct causal_data *data, struct fit_series *series);

/* ---- baseline ---- */

/* How quickly the weight of baselines falls with their distance; 1: not at all. */
struct fit_smoothing {
	double keep;     /* from one window to the next */
	bool within_run; /* baselines of other runs count only where there are none */
	double change;   /* how much of the baselines' scatter following them in time explains */
};

struct fit_smoothing fit_smoothing_choose(const struct fit_series *series, double *scratch);
/* period[i] for all entries; `period` has room for twice as many, and in the second half are the
 * counts N that each rests on. Where `drawn` is not NULL, drawn[i] stands for a baseline's time. */
void fit_baseline(const struct fit_series *series, const struct fit_smoothing *smoothing,
		  const double *drawn, double *period);

/* ---- estimate ---- */

struct fit_level {
	double ratio;    /* r */
	double spread;   /* variance of r by the scatter of the group's own windows, as a bootstrap
			    sees it: without the correction for few windows */
	double variance; /* the same, corrected, and moderated by all windows of the point */
	double freedom;  /* degrees of freedom behind it */
	double change;   /* standard error of r for gains that change in time: of all levels of a
			    target alike */
	double error;    /* standard error of r, with that of the baseline */
	double half;     /* half width of the interval of r */
};

/* levels[g] for each group; those of too few windows have ratio NAN. */
void fit_estimate(const struct fit_series *series, const double *period, unsigned least,
		  struct fit_level *levels);

/* ---- curve: gain at full speedup and slope, linear in the gains at the levels ---- */

struct fit_curve {
	uint32_t first, count;                                    /* groups of one target */
	double best[CAUSAL_FIT_LEVELS], slope[CAUSAL_FIT_LEVELS]; /* weights */
	double model; /* variance of the gain at full speedup for not knowing the curve's shape */
};

void fit_curve(const struct fit_series *series, const struct fit_level *levels, uint32_t first,
	       uint32_t count, struct fit_curve *ret);
double fit_curve_apply(const double *weights, const struct fit_curve *curve,
		       const struct fit_level *levels);

/* ---- bootstrap ---- */

struct fit_spread {
	double sum, squares;
};

struct fit_bootstrap {
	uint32_t repeats;
	struct fit_spread *levels;       /* one a group */
	struct fit_spread *best, *slope; /* one a curve */
};

/* All that is known of one series. */
struct fit_model {
	const struct fit_series *series;
	struct fit_smoothing smoothing;
	double *period; /* as fit_baseline() makes it */
	struct fit_level *levels;
	struct fit_curve *curves; /* one a target */
	size_t curve_count;
};

/* ---- change ---- */

/* Variance of the sum of errors, of windows in order of time, for what those near in time have in
 * common. They are beside their mean. */
double fit_common_variance(const double *errors, uint32_t count);
/* Sets the `change` of levels first, ... of one target. 0 or -ENOMEM. */
int fit_change(const struct fit_model *model, uint32_t first, uint32_t count);

int fit_bootstrap(const struct fit_model *model, uint32_t repeats, uint64_t seed,
		  struct fit_bootstrap *ret);
void fit_bootstrap_deinit(struct fit_bootstrap *bootstrap);
double fit_spread_variance(const struct fit_spread *spread, uint32_t repeats);

/* ---- statistics ---- */

uint64_t fit_random(uint64_t *state);
/* Of Student's distribution, for both sides together: 0.95 and many degrees give 1.96. */
double fit_student(double confidence, double freedom);

/* ---- warnings ---- */

uint32_t fit_warnings_of_run(const struct causal_data *data);
bool fit_drifts(const struct fit_series *series);

#endif
