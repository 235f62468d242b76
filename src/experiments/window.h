/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One experiment, for those that make it, write down what it says, and learn what it cost; see
 * window.c.
 */
#ifndef KYMO_EXPERIMENTS_WINDOW_H
#define KYMO_EXPERIMENTS_WINDOW_H

#include "experiments/control_private.h"

struct experiment_window {
	uint32_t point;
	uint64_t begin_ns, start_ns, end_ns; /* of the experiment, and of what is measured of it */
	uint64_t start_global_delay_ticks, end_global_delay_ticks;
	uint64_t start_paid_delay_ticks, end_paid_delay_ticks;
	uint64_t start_late_wakeup_ticks, end_late_wakeup_ticks;
	uint64_t begin_global_delay_ticks, begin_paid_delay_ticks, begin_visit_count;
	double cost_max_ns; /* that it may cost, in nanoseconds; INFINITY: as much as it does */
	struct causal_session_usage start_usage, end_usage;
	int64_t threads;
	enum causal_window_end_reason end;
	uint32_t point_count;
	struct causal_point_reading first[CAUSAL_POINTS], last[CAUSAL_POINTS];
	/* For untimed latency: how many are inside, at every look. */
	double inside;
	unsigned inside_look_count;
};

/* ---- window.c ---- */

/* All points, times and usage at the begin of what is measured, and at its end; the latter may be
 * called again. */
void window_start_measuring(struct causal_controller *controller, struct experiment_window *window);
void window_stop_measuring(struct causal_controller *controller, struct experiment_window *window);

/* ---- window_written.c ---- */

/* Writes down what it says. */
void window_write_measurement(struct causal_controller *controller,
			      const struct experiment_window *window, uint32_t target,
			      uint32_t permille);

/* ---- window_cost.c ---- */

/* It costs more than it may. What is cut so is not used, for windows that were slow by chance would
 * be missing; what it has cost is the price by which the next one is judged, so it is seldom that
 * some windows of a kind are cut and others are not. */
bool window_is_over_budget(const struct causal_controller *controller,
			   const struct experiment_window *window);
/* What the program lost by it, and how fast it is without. */
void window_update_budget(struct causal_controller *controller,
			  const struct experiment_window *window, uint32_t target,
			  uint32_t permille);
/* Learns from a window that ended before its visits came. */
void window_learn_price_of_unfinished(struct causal_controller *controller,
				      const struct experiment_window *window,
				      struct causal_budget_experiment_sums cell);

#endif
