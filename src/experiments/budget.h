/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What experiments have cost a program that was not asked how long it may take, and what the next
 * one is going to.
 *
 * A single experiment may cost more than a short run may lose by all of them: a function that runs
 * all the time beside the others, 75 % faster, stops them for three times as long as its window
 * lasts otherwise. So each has a price before it begins, by what the same target has cost at this
 * speedup or smaller ones; small ones come first, since for large ones nobody can tell. All that is
 * decided by price is decided before the window begins, so it is no matter of what is measured in
 * it.
 */
#ifndef KYMO_EXPERIMENTS_BUDGET_H
#define KYMO_EXPERIMENTS_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sums over all windows of a target at a speedup, in nanoseconds. */
struct causal_budget_experiment_sums {
	uint32_t target, permille;
	double usual_time_sum_ns; /* that they would have taken without */
	double lost;
	double delay;
	double spent_by_run_ns; /* by the run, with what came before the windows */
};

/* Zeroed is empty. */
struct causal_budget {
	struct causal_budget_experiment_sums *experiment_sums;
	size_t count, capacity;
	double lost; /* of the run, until causal_budget_reset_for_run() */
};

void causal_budget_deinit(struct causal_budget *budget);
/* Another run begins: prices are known, nothing is spent. */
void causal_budget_reset_for_run(struct causal_budget *budget);
/* A window has cost that much. */
void causal_budget_record_loss(struct causal_budget *budget, uint32_t target, uint32_t permille,
			       double lost);
/* What all of a target have. */
double causal_budget_sum_target_loss_ns(const struct causal_budget *budget, uint32_t target);
/* What a whole window of that usual length costs is known, as far as this one tells. */
void causal_budget_learn_window_price(struct causal_budget *budget,
				      const struct causal_budget_experiment_sums *window);
/* Whether a window of the target has been tried. */
bool causal_budget_has_tried_target(const struct causal_budget *budget, uint32_t target);
/* What a window of a target would cost for each second that it takes without. `rate`: seconds of
 * CPU time in the target for each second. INFINITY: it may not end at all. */
double causal_budget_predict_loss_per_second(const struct causal_budget *budget, uint32_t target,
					     uint32_t permille, double rate);
/* What may have been lost after so long, in nanoseconds. */
double causal_budget_compute_allowance_ns(uint64_t passed_ns);

#endif
