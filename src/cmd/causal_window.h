/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One experiment, for those that make it, write down what it says, and learn what it cost; see
 * causal_window.c.
 */
#ifndef KYMO_CMD_CAUSAL_WINDOW_H
#define KYMO_CMD_CAUSAL_WINDOW_H

#include "cmd/causal_control_private.h"

struct window {
	uint32_t point;
	uint64_t begin_ns, start_ns, end_ns; /* of the experiment, and of what is measured of it */
	uint64_t start_delay, end_delay;
	uint64_t start_paid, end_paid;
	uint64_t start_late, end_late;
	uint64_t begin_delay, begin_paid, begin_visits;
	double most; /* that it may cost, in nanoseconds; INFINITY: as much as it does */
	struct causal_load start_load, end_load;
	int64_t threads;
	enum causal_window_end end;
	uint32_t point_count;
	struct causal_reading first[CAUSAL_POINTS], last[CAUSAL_POINTS];
	/* Of untimed latency: how many are inside, at every look. */
	double inside;
	unsigned looks;
};

/* ---- causal_window_written.c ---- */

/* Writes down what it says. */
void window_write(struct causal_controller *controller, const struct window *window,
		  uint32_t target, uint32_t permille);

/* ---- causal_window_cost.c ---- */

/* It costs more than it may. What is cut so is not used, for windows that were slow by chance would
 * be missing; what it has cost is the price by which the next one is judged, so it is seldom that
 * some windows of a kind are cut and others are not. */
bool window_is_dear(const struct causal_controller *controller, const struct window *window);
/* What the program lost by it, and how fast it is without. */
void window_learn(struct causal_controller *controller, const struct window *window,
		  uint32_t target, uint32_t permille);
/* Of one that ended before. */
void window_learn_least(struct causal_controller *controller, const struct window *window,
			struct causal_budget_cell cell);

#endif
