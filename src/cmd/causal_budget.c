/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_budget.h.
 *
 * Without a speedup a window takes 1. Its delays are D = s * rate * (1 + e * l), where l is what is
 * lost by it, and e whether the target goes on while others pause (1: it runs beside them) or has
 * so much to do for a visit (0). Of D, the part y is gained, the rest is lost: l = (1 - y) * D.
 */
#include "cmd/causal_budget.h"

#include <math.h>
#include <stdlib.h>

/* A share of the program's time, of which so much may be lost before it is there. */
#define BUDGET_SHARE 0.05
#define BUDGET_START 50e6
/* Of delays, as long as nothing is known of the target. */
#define BUDGET_GAINED 0.5
/* A loss must be so large a part of the window before it tells whether the target goes on in it. */
#define BUDGET_CLEAR 0.1

void causal_budget_deinit(struct causal_budget *budget)
{
	free(budget->cells);
	*budget = (struct causal_budget){0};
}

double causal_budget_allowance(uint64_t passed_ns)
{
	return fmax((double)passed_ns * BUDGET_SHARE, BUDGET_START);
}

/* ---- what is known ---- */

static struct causal_budget_cell *budget_cell(struct causal_budget *budget, uint32_t target,
					      uint32_t permille)
{
	struct causal_budget_cell *cells;
	size_t capacity = budget->capacity ? 2 * budget->capacity : 32;

	for (size_t i = 0; i < budget->count; i++) {
		if (budget->cells[i].target == target && budget->cells[i].permille == permille)
			return &budget->cells[i];
	}
	if (budget->count == budget->capacity) {
		cells = reallocarray(budget->cells, capacity, sizeof(*cells));
		if (!cells)
			return NULL;
		budget->cells = cells;
		budget->capacity = capacity;
	}
	budget->cells[budget->count] =
		(struct causal_budget_cell){.target = target, .permille = permille};
	return &budget->cells[budget->count++];
}

void causal_budget_learn(struct causal_budget *budget, const struct causal_budget_cell *window)
{
	struct causal_budget_cell *cell = budget_cell(budget, window->target, window->permille);

	if (!cell || !(window->usual > 0))
		return;
	cell->usual += window->usual;
	cell->lost += window->lost;
	cell->delay += window->delay;
}

void causal_budget_restart(struct causal_budget *budget)
{
	budget->lost = 0;
	for (size_t i = 0; i < budget->count; i++)
		budget->cells[i].spent = 0;
}

void causal_budget_spend(struct causal_budget *budget, uint32_t target, uint32_t permille,
			 double lost)
{
	struct causal_budget_cell *cell = budget_cell(budget, target, permille);

	budget->lost += lost;
	if (cell)
		cell->spent += lost;
}

double causal_budget_spent(const struct causal_budget *budget, uint32_t target)
{
	double spent = 0;

	for (size_t i = 0; i < budget->count; i++)
		spent += budget->cells[i].target == target ? budget->cells[i].spent : 0;
	return spent;
}

/* The largest speedup of the target that was tried, up to this one. */
static const struct causal_budget_cell *budget_nearest(const struct causal_budget *budget,
						       uint32_t target, uint32_t permille)
{
	const struct causal_budget_cell *best = NULL;

	for (size_t i = 0; i < budget->count; i++) {
		const struct causal_budget_cell *cell = &budget->cells[i];

		if (cell->target == target && cell->permille <= permille && cell->usual > 0 &&
		    (!best || cell->permille > best->permille))
			best = cell;
	}
	return best;
}

bool causal_budget_knows(const struct causal_budget *budget, uint32_t target)
{
	return budget_nearest(budget, target, UINT32_MAX) != NULL;
}

/* ---- prices ---- */

static double budget_clamp(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

/* Whether the target goes on while others pause. */
static double budget_goes_on(const struct causal_budget_cell *cell, double rate)
{
	double lost = cell->lost / cell->usual;
	double delay = cell->delay / cell->usual;

	if (lost < BUDGET_CLEAR || rate <= 0)
		return 1;
	return budget_clamp((delay / (rate * cell->permille / 1000) - 1) / lost, 0, 1);
}

/* What is gained by a larger speedup is in between: as large a part of the delays as by the smaller
 * one, or no more than by that. */
static double budget_gained(const struct causal_budget_cell *cell, uint32_t permille)
{
	double part =
		cell->delay > 0 ? budget_clamp(1 - cell->lost / cell->delay, 0, 1) : BUDGET_GAINED;

	return part * (1 + (double)cell->permille / permille) / 2;
}

double causal_budget_price(const struct causal_budget *budget, uint32_t target, uint32_t permille,
			   double rate)
{
	const struct causal_budget_cell *near = budget_nearest(budget, target, permille);
	double goes_on = 1, gained = BUDGET_GAINED, loses;

	if (near && near->permille == permille)
		return near->lost > 0 ? near->lost / near->usual : 0;
	if (near) {
		goes_on = budget_goes_on(near, rate);
		gained = budget_gained(near, permille);
	}
	loses = (1 - gained) * rate * permille / 1000;
	return goes_on * loses < 1 ? loses / (1 - goes_on * loses) : INFINITY;
}
