/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See budget.h.
 *
 * Without a speedup a window takes 1. Its delays are D = s * rate * (1 + e * l), where l is what is
 * lost by it, and e whether the target goes on while others pause (1: it runs beside them) or has
 * so much to do for a visit (0). Of D, the part y is gained, the rest is lost: l = (1 - y) * D.
 */
#include "experiments/budget.h"

#include <math.h>
#include <stdlib.h>

/* A share of the program's time, of which so much may be lost before it is there. */
#define BUDGET_ALLOWED_LOSS_SHARE   0.05
#define BUDGET_INITIAL_ALLOWANCE_NS 50e6
/* The share of delays that is gained, as long as nothing is known of the target. */
#define BUDGET_GAINED_DELAY_SHARE_DEFAULT 0.5
/* A loss must be so large a part of the window before it tells whether the target goes on in it. */
#define BUDGET_SIGNIFICANT_LOSS_SHARE 0.1

void causal_budget_deinit(struct causal_budget *budget)
{
	free(budget->experiment_sums);
	*budget = (struct causal_budget){0};
}

double causal_budget_compute_allowance_ns(uint64_t passed_ns)
{
	return fmax((double)passed_ns * BUDGET_ALLOWED_LOSS_SHARE, BUDGET_INITIAL_ALLOWANCE_NS);
}

/* ---- what is known ---- */

static struct causal_budget_experiment_sums *
budget_find_or_add_sums(struct causal_budget *budget, uint32_t target, uint32_t permille)
{
	struct causal_budget_experiment_sums *cells;
	size_t capacity = budget->capacity ? 2 * budget->capacity : 32;

	for (size_t i = 0; i < budget->count; i++) {
		if (budget->experiment_sums[i].target == target &&
		    budget->experiment_sums[i].permille == permille)
			return &budget->experiment_sums[i];
	}
	if (budget->count == budget->capacity) {
		cells = reallocarray(budget->experiment_sums, capacity, sizeof(*cells));
		if (!cells)
			return NULL;
		budget->experiment_sums = cells;
		budget->capacity = capacity;
	}
	budget->experiment_sums[budget->count] =
		(struct causal_budget_experiment_sums){.target = target, .permille = permille};
	return &budget->experiment_sums[budget->count++];
}

void causal_budget_learn_window_price(struct causal_budget *budget,
				      const struct causal_budget_experiment_sums *window)
{
	struct causal_budget_experiment_sums *cell =
		budget_find_or_add_sums(budget, window->target, window->permille);

	if (!cell || !(window->usual_time_sum_ns > 0))
		return;
	cell->usual_time_sum_ns += window->usual_time_sum_ns;
	cell->lost += window->lost;
	cell->delay += window->delay;
}

void causal_budget_reset_for_run(struct causal_budget *budget)
{
	budget->lost = 0;
	for (size_t i = 0; i < budget->count; i++)
		budget->experiment_sums[i].spent_by_run_ns = 0;
}

void causal_budget_record_loss(struct causal_budget *budget, uint32_t target, uint32_t permille,
			       double lost)
{
	struct causal_budget_experiment_sums *cell =
		budget_find_or_add_sums(budget, target, permille);

	budget->lost += lost;
	if (cell)
		cell->spent_by_run_ns += lost;
}

double causal_budget_sum_target_loss_ns(const struct causal_budget *budget, uint32_t target)
{
	double spent = 0;

	for (size_t i = 0; i < budget->count; i++)
		spent += budget->experiment_sums[i].target == target
				 ? budget->experiment_sums[i].spent_by_run_ns
				 : 0;
	return spent;
}

/* The largest speedup of the target that was tried, up to this one. */
static const struct causal_budget_experiment_sums *
budget_find_sums_at_or_below_speedup(const struct causal_budget *budget, uint32_t target,
				     uint32_t permille)
{
	const struct causal_budget_experiment_sums *best = NULL;

	for (size_t i = 0; i < budget->count; i++) {
		const struct causal_budget_experiment_sums *cell = &budget->experiment_sums[i];

		if (cell->target == target && cell->permille <= permille &&
		    cell->usual_time_sum_ns > 0 && (!best || cell->permille > best->permille))
			best = cell;
	}
	return best;
}

bool causal_budget_has_tried_target(const struct causal_budget *budget, uint32_t target)
{
	return budget_find_sums_at_or_below_speedup(budget, target, UINT32_MAX) != NULL;
}

/* ---- prices ---- */

static double clamp_double(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

/* Whether the target goes on while others pause. */
static double budget_estimate_progress_in_pauses(const struct causal_budget_experiment_sums *cell,
						 double rate)
{
	double lost = cell->lost / cell->usual_time_sum_ns;
	double delay = cell->delay / cell->usual_time_sum_ns;

	if (lost < BUDGET_SIGNIFICANT_LOSS_SHARE || rate <= 0)
		return 1;
	return clamp_double((delay / (rate * cell->permille / 1000) - 1) / lost, 0, 1);
}

/* What is gained by a larger speedup is in between: as large a part of the delays as by the smaller
 * one, or no more than by that. */
static double budget_estimate_gained_delay_share(const struct causal_budget_experiment_sums *cell,
						 uint32_t permille)
{
	double part = cell->delay > 0 ? clamp_double(1 - cell->lost / cell->delay, 0, 1)
				      : BUDGET_GAINED_DELAY_SHARE_DEFAULT;

	return part * (1 + (double)cell->permille / permille) / 2;
}

double causal_budget_predict_loss_per_second(const struct causal_budget *budget, uint32_t target,
					     uint32_t permille, double rate)
{
	const struct causal_budget_experiment_sums *near =
		budget_find_sums_at_or_below_speedup(budget, target, permille);
	double goes_on = 1, gained = BUDGET_GAINED_DELAY_SHARE_DEFAULT, loses;

	if (near && near->permille == permille)
		return near->lost > 0 ? near->lost / near->usual_time_sum_ns : 0;
	if (near) {
		goes_on = budget_estimate_progress_in_pauses(near, rate);
		gained = budget_estimate_gained_delay_share(near, permille);
	}
	loses = (1 - gained) * rate * permille / 1000;
	return goes_on * loses < 1 ? loses / (1 - goes_on * loses) : INFINITY;
}
