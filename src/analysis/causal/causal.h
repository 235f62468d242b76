/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Causal experiments: what was measured, and what it predicts.
 *
 * Data are read from SESSION/causal/windows.ndjson, written by the controller line by line while
 * the program runs (a crash costs the window that was open), or collected by causal_data_add_*().
 * A line is an object with a "kind":
 *   run     {"kind":"run","run":0,"command":["./a"],"mode":"function","seed":7,"pid":1,
 *            "ticks_per_second":...,"end_to_end":false,"started_unix_ns":...,
 *            "processors":2}                                   that the program may run on
 *   target  {"kind":"target","id":5,"function":"f","file":"/x/a.c","line":10,"module":"/x/a"}
 *            before its first use; in line mode file and line are the target, in function mode
 *            where the function begins (may be missing)
 *   point   {"kind":"point","id":0,"name":"work","type":"progress"|"begin"|"end",
 *            "origin":"user"|"coz"|"named"|"automatic"|"process",
 *            "given_up":false}                   true: visited too often to be counted; once more
 *   window  {"kind":"window","run":0,"target":5,"speedup_permille":250,"start_ns":..,
 *            "real_ns":..,"delay_ns":..,"ended":"visits"|"time"|"exit"|"cut",
 *            "points":[{"id":0,"visits":12,"virtual_ns":..},            first to last visit
 *                      {"id":1,"end":2,"arrivals":..,"departures":..,"area_ns":..,
 *                       "virtual_ns":..}],                               latency
 *            "times":[[5,self_ns,total_ns],...],                         CPU time of targets
 *            "cpu_ns":..,"involuntary_switches":..,                      of the whole session
 *            "stolen_ns":..,                        of all processors, by the hypervisor
 *            "queued_ns":..,                        that its threads waited for processors
 *            "threads":..}                          that ran
 *            target 0: a baseline
 *   end     {"kind":"end","run":0,"status":0,"real_ns":..,"samples":..,"samples_in_scope":..,
 *            "paid_ns":..,"overslept_ns":..,"credited_ns":..,"pauses":..}
 * Unknown kinds and members are passed over. Durations in nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef KYMO_ANALYSIS_CAUSAL_CAUSAL_H
#define KYMO_ANALYSIS_CAUSAL_CAUSAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/problem.h"
#include "kymo/causal.h"

struct causal_data_program_run {
	uint32_t number, processors; /* processors: 0: not known */
	uint64_t seed;
	bool end_to_end, ended;
	int status;
	uint64_t real_ns, samples, samples_in_scope, paid_delay_ns, overslept_ns, credited_delay_ns,
		pauses;
	/* What samples made a visit longer by, and the standard error: in a million. */
#define CAUSAL_SAMPLING_COST_PER_VISIT_PPM_MAX INT64_C(1000000000)
	bool is_samples_cost_known;
	int64_t samples_cost_ppm, samples_cost_error_ppm;
	char *command, *mode; /* joined by spaces; "function" or "line" */
};

struct causal_data_target {
	uint32_t id;
	char *function, *file, *module; /* may be NULL */
	uint32_t line;                  /* 0: not known */
};

struct causal_data_progress_point {
	uint32_t id;
	enum causal_point_kind kind;
	char *name, *origin;
	bool was_given_up; /* visited too often to be counted */
};

/* Visits of one point (or of a begin and end point) in one window. */
struct causal_data_window_visits {
	uint32_t point, end_point; /* end_point: UINT32_MAX for throughput */
	uint64_t visits;           /* throughput: intervals; latency: departures */
	uint64_t arrivals;
	int64_t intervals_virtual_ns;     /* what those intervals took, virtually */
	int64_t inside_count_integral_ns; /* latency: integral of the number that are inside */
};

struct causal_data_target_time_row {
	uint32_t target;
	uint64_t self_ns, total_ns;
};

enum causal_window_end_reason {
	CAUSAL_WINDOW_ENDED_BY_VISITS,
	CAUSAL_WINDOW_ENDED_BY_TIME_LIMIT, /* too few visits came */
	CAUSAL_WINDOW_ENDED_BY_PROGRAM_EXIT,
	CAUSAL_WINDOW_CUT_SHORT /* not to be used */
};

struct causal_data_window {
	uint32_t run, target, speedup_permille;
	enum causal_window_end_reason end;
	uint64_t start_ns, real_ns, delay_ns, cpu_ns, involuntary_switches, stolen_ns, queued_ns;
	uint64_t threads;
	struct causal_data_window_visits *visits;
	size_t visits_entry_count;
	struct causal_data_target_time_row *times;
	size_t time_count;
};

struct causal_data {
	struct causal_data_program_run *runs;
	size_t run_count;
	struct causal_data_target *targets;
	size_t target_count;
	struct causal_data_progress_point *points;
	size_t point_count;
	struct causal_data_window *windows; /* in order of time */
	size_t window_count;
	size_t bad_line_count; /* passed over: cut by a crash, or not ours */
};

/* Zeroed is empty. What is added is copied. 0 or -ENOMEM. */
int causal_data_read_file(struct causal_data *data, const char *path, struct problem *problem);
int causal_data_add_run(struct causal_data *data, const struct causal_data_program_run *run);
int causal_data_add_target(struct causal_data *data, const struct causal_data_target *target);
int causal_data_add_point(struct causal_data *data, const struct causal_data_progress_point *point);
int causal_data_add_window(struct causal_data *data, const struct causal_data_window *window);
void causal_data_deinit(struct causal_data *data);

/* ---- predictions ---- */

struct causal_fit_options {
	uint32_t bootstrap; /* samples; 0: the usual number */
	uint64_t seed;
	double confidence_level;     /* 0: 0.95 */
	unsigned least_window_count; /* of a target and speedup, to be reported; 0: the usual */
};

/* What would be gained at one speedup: percent of the baseline's period (throughput) or latency. */
struct causal_gain_estimate_at_speedup {
	double speedup_percent, predicted_gain_percent, gain_interval_low_percent,
		gain_interval_high_percent;
	uint32_t window_count;
	uint64_t visit_count;
};

enum causal_warning_bit {
	CAUSAL_WARN_NO_VISITS = 1,         /* bits */
	CAUSAL_WARN_FEW_VISITS = 2,        /* fewer than five a window */
	CAUSAL_WARN_NO_TARGET_SAMPLES = 4, /* of the target */
	CAUSAL_WARN_OUTSIDE_LOAD = 8,      /* from outside: involuntary switches, stolen time */
	CAUSAL_WARN_WIDE_INTERVALS = 16,   /* intervals wider than the effect */
	CAUSAL_WARN_FEW_WINDOWS = 32,
	CAUSAL_WARN_CPUS_OVERSUBSCRIBED = 64, /* more runnable threads than processors */
	CAUSAL_WARN_BASELINE_DRIFT = 128,     /* the baseline itself changed along the run */
	CAUSAL_WARN_EXTRA_WORK = 256 /* a loss, in experiments that made the program work more */
};

struct causal_prediction {
	uint32_t target, point, end_point; /* ids; end_point: UINT32_MAX for throughput */
	struct causal_gain_estimate_at_speedup *speedup_estimates; /* by speedup, without 0 */
	size_t speedup_estimate_count;
	double gain_per_speedup_slope, slope_interval_low,
		slope_interval_high; /* gain in percent per percent of speedup, over all */
	/* The gain at the largest speedup that was measured, by the curve through all: nothing is
	 * said of a speedup beyond it. */
	double headline_speedup_percent, headline_gain_percent, headline_gain_low_percent,
		headline_gain_high_percent;
	double self_share, total_share;       /* of the CPU time of the session, 0 to 1 */
	double baseline_period_or_latency_ns; /* period or latency without speedup */
	uint32_t warning_bits;
	bool is_supported_by_data; /* the data support a claim */
};

struct causal_fit_result {
	struct causal_prediction *predictions; /* best first, per point */
	size_t prediction_count;
	uint32_t warning_bits; /* of the whole run */
	uint64_t baseline_window_count;
	uint64_t disturbed_window_count; /* left out, since load from outside made them much longer
					  */
	bool *is_window_disturbed;       /* is data->windows[i] one of them? */
	double cpu_ns;                   /* seen by samples */
};

/* 0 or -ENOMEM. The data must outlive the result. */
int causal_compute_predictions(const struct causal_data *data,
			       const struct causal_fit_options *options,
			       struct causal_fit_result *ret);
void causal_fit_result_deinit(struct causal_fit_result *result);
/* One line of text for a bit. */
const char *causal_warning_get_text(enum causal_warning_bit warning);

/* ---- what to try next ---- */

struct causal_plan_options {
	const uint32_t *speedups; /* per mille, ascending, without 0 */
	size_t speedup_count;
	double until_ci;  /* percent: stop when the leading targets' intervals are this narrow;
			     0: never */
	unsigned targets; /* tried at most; 0: the usual */
	unsigned experiments_per_baseline; /* experiments between baselines; 0: the usual */
	uint64_t seed;
	uint32_t fixed_target_id;        /* 0: choose */
	uint32_t fixed_speedup_permille; /* per mille; UINT32_MAX: choose */
	/* Whether a window of this may be tried at all, by now; NULL: each one may. */
	bool (*may_try_window)(void *context, uint32_t target, uint32_t permille);
	void *context;
};

struct causal_window_planner; /* which windows next: rounds of leading targets, baselines between
		       them, random order, more of what is not known well enough yet */
int causal_plan_create(const struct causal_plan_options *options,
		       struct causal_window_planner **ret);
void causal_plan_destroy(struct causal_window_planner *plan);

enum causal_plan_decision {
	CAUSAL_PLAN_WAIT, /* no target is known yet */
	CAUSAL_PLAN_TRY_WINDOW,
	CAUSAL_PLAN_DONE /* until_ci is reached */
};
/* `times`: CPU time of targets so far in the whole session, any order; `data`: all windows. */
enum causal_plan_decision
causal_plan_choose_next_window(struct causal_window_planner *plan, const struct causal_data *data,
			       const struct causal_data_target_time_row *times, size_t time_count,
			       uint32_t *ret_target, uint32_t *ret_speedup_permille);

#endif
