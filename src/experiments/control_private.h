/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the files of the controller share; see control.h.
 */
#ifndef KYMO_EXPERIMENTS_CONTROL_PRIVATE_H
#define KYMO_EXPERIMENTS_CONTROL_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/time_units.h"
#include "experiments/budget.h"
#include "experiments/clock.h"
#include "experiments/control.h"
#include "experiments/journal.h"
#include "experiments/load.h"

/* Counters of the shared file when the run began. */
struct control_shared_counters {
	uint64_t samples, samples_in_scope, paid_delay_ticks, overslept_ticks, credited_delay_ticks,
		pauses;
};

/* How often a point is visited, as far as it is known. */
struct control_point_visit_rate {
	uint64_t period_ns; /* real; 0: not known */
	uint64_t wanted;    /* visits of a window: as many in all of them */
};

#define COOLDOWN_SAMPLE_COSTS_MAX 32u

/* Rests of a run, and what they tell of the others' cost (cooldown.c). */
struct control_cooldown_state {
	uint64_t next; /* after so many windows there is one in any case */
	uint64_t windows, baseline_window_count; /* of the run */
	uint64_t window_time_since_cooldown_ns;  /* since the last one */
	/* The last window without a speedup: its point, its end, and what a visit took; 0: there
	 * was none yet. */
	uint32_t point;
	uint64_t baseline_end_ns;
	double baseline_ns_per_visit;
	/* A rest that waits for the next such window of the same point: what a visit took in it and
	 * in the window before, their ends, and how many windows there were. cooldown_ns_per_visit
	 * 0: none does.
	 */
	uint32_t cooldown_progress_point;
	uint64_t cooldown_end_ns, before_cooldown_baseline_end_ns, window_count_at_cooldown;
	double cooldown_ns_per_visit, before_cooldown_ns_per_visit;
	/* Logarithms of how many times as long visits took without a rest, of the last ones. */
	double log_sample_costs[COOLDOWN_SAMPLE_COSTS_MAX];
	uint32_t count;
};

struct causal_controller {
	struct causal_control_options options;
	struct causal_control *shared;
	int file; /* that it is mapped from, which others open by its name */
	struct causal_clock clock;
	struct causal_points points;
	struct control_point_visit_rate visit_rates[CAUSAL_POINTS];
	struct causal_journal journal;
	struct causal_window_planner *plan;
	/* Times of targets, in the order of ids, at the end and at the begin of a window. */
	struct causal_data_target_time_row *target_times, *target_times_at_begin;
	size_t target_time_count, target_time_count_at_begin, target_time_capacity;

	pthread_t thread;
	bool running;
	int wake; /* eventfd: the run is over */
	bool is_run_over;
	bool has_stalled; /* slept much longer than asked: stopped, or a machine without time */

	uint32_t run, runs;
	bool end_to_end, any_process_took_part;
	_Atomic bool done; /* no experiment is to be made any more */
	uint64_t experiment_epoch, windows;
	uint64_t run_start_ns, experiments_ns;
	/* When the run began, or when a point was given up: it counts when it is visited again. */
	uint64_t run_start_visit_counts[CAUSAL_POINTS];
	uint64_t user_point_last_seen_ns; /* when a point of the user's was there last */
	struct control_shared_counters run_start_counters;
	/* Runs that are over before a window would be: each is one (brief_run.c). */
	bool has_brief_runs;
	uint64_t windows_at_run_start, brief_visit_period_ns;
	/* End to end, and of brief runs: the experiment of the run. */
	uint32_t target, speedup_permille;
	uint64_t run_start_global_delay_ticks, last_run_ns; /* of the run that has ended */
	struct causal_session_usage last_run_usage;
	/* Real time that experiments have cost the run so far, and what others would. */
	struct causal_budget budget;
	uint32_t point; /* of the next window */
	struct control_cooldown_state cooldown;
	/* An experiment that was chosen and waits until the run may lose as much by it. */
	bool has_postponed_experiment;
	uint32_t postponed_target, postponed_speedup_permille;
};

/* ---- control.c ---- */

/* Sleeps; false when the run is over. Keeps the experiment from expiring. */
/* shared_file.c: makes controller->shared and ->file. 0 or negative errno. */
int control_map_new_shared_file(struct causal_controller *controller, struct problem *problem);
bool control_sleep_and_renew_lease(struct causal_controller *controller, uint64_t ns);
void control_activate_experiment(struct causal_controller *controller, uint32_t target,
				 uint32_t permille);
void control_deactivate_experiment(struct causal_controller *controller);
/* The virtual time of a thread that has no unapplied delay, ticks. */
uint64_t control_get_virtual_now_ticks(const struct causal_controller *controller);
int64_t control_ticks_to_ns(const struct causal_controller *controller, uint64_t ticks);
/* Reads CPU times of all targets into controller->times. */
void control_read_target_times(struct causal_controller *controller);

/* ---- brief_run.c ---- */

/* After a run in which there was no window though points were visited: from now on each run is one.
 * False: this run was none of these. */
bool control_try_switch_to_brief_runs(struct causal_controller *controller);
/* Until the run is over, with its experiment, which has begun. */
void control_measure_brief_run(struct causal_controller *controller);

/* ---- cost.c ---- */

/* Nobody said how long it may take, or what is to be tried: it should cost little. */
bool control_is_cost_limited(const struct causal_controller *controller);
/* What the run may lose yet, in nanoseconds. */
double control_compute_allowance_left_ns(const struct causal_controller *controller);
/* Whether a window of this costs no more than those of one target may. `context`: the controller.
 */
bool control_can_afford_experiment(void *context, uint32_t target, uint32_t permille);
/* An experiment that costs more than the run may lose by now is postponed; a baseline takes its
 * place. */
void control_postpone_if_costly(struct causal_controller *controller, uint32_t *target,
				uint32_t *permille);
/* Whether the one that was postponed is to be tried still. */
bool control_choose_postponed_if_affordable(struct causal_controller *controller, uint32_t *target,
					    uint32_t *permille);
/* What a target costs is known by its share of the time, which baselines show. */
bool control_needs_baseline(const struct causal_controller *controller);

/* ---- visit_rate.c ---- */

/* Lengths of windows. */
#define WINDOW_LENGTH_NS     (200 * MILLISECOND_NS)
#define WINDOW_VISITS_WANTED 8
#define WINDOW_LENGTH_MAX_NS (20 * WINDOW_LENGTH_NS)
/* Before a window the program gets into the rhythm of the experiment, and its threads learn how
 * much of their time is the target's, for which they need some samples each; a visit counts as the
 * window's begin when half of that is over. */
#define WINDOW_WARM_UP_NS (40 * MILLISECOND_NS)

static inline uint64_t control_clamp_to_range(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

/* The point that windows are cut by; CAUSAL_NO_POINT: none is visited. */
uint32_t control_choose_window_point(struct causal_controller *controller, bool own_only);
/* Nobody counts its visits any more. */
bool control_point_is_given_up(const struct causal_controller *controller, uint32_t point);
/* Finds out how often points are visited. False: the run is over. */
bool control_measure_visit_rates(struct causal_controller *controller);
void control_visit_rate_set(struct control_point_visit_rate *pace, uint64_t real_ns,
			    uint64_t visits);
/* A baseline had this period. */
void control_visit_rate_update(struct control_point_visit_rate *pace, uint64_t period_ns);

/* ---- cooldown.c ---- */

void control_cooldown_reset_for_run(struct causal_controller *controller);
/* A window is over. */
void control_cooldown_record_window(struct causal_controller *controller, uint32_t target,
				    uint64_t real_ns);
/* What a visit took in one without a speedup. */
void control_cooldown_add_baseline(struct causal_controller *controller, uint32_t point,
				   uint64_t visit_ns);
/* Between two windows. False: the run is over. */
bool control_run_cooldown_if_due(struct causal_controller *controller);
/* Whether one is better than another window without a speedup; and that. False: the run is over. */
bool control_prefers_cooldown_to_baseline(const struct causal_controller *controller);
bool control_run_cooldown_instead_of_baseline(struct causal_controller *controller);
/* By how much samples make a visit longer, with its standard error; false: it is not known. */
bool control_cooldown_estimate_sample_cost(const struct causal_controller *controller, double *ret,
					   double *error);

/* ---- window_written.c ---- */

/* Adds times of targets, and writes it. */
void control_write_window_to_journal(struct causal_controller *controller,
				     struct causal_data_window *window);

/* ---- window.c ---- */

/* One experiment, written down. False: the run is over. A window that takes away much more than the
 * run may lose is cut. */
bool control_run_window(struct causal_controller *controller, uint32_t point, uint32_t target,
			uint32_t permille);

#endif
