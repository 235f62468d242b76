/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Prices of experiments with programs of known answers.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "experiments/budget.h"

#define USUAL 200e6

static void learn(struct causal_budget *budget, uint32_t permille, double lost, double delay)
{
	struct causal_budget_experiment_sums window = {.target = 1,
						       .permille = permille,
						       .usual_time_sum_ns = USUAL,
						       .lost = lost,
						       .delay = delay};

	causal_budget_learn_window_price(budget, &window);
}

/* A function that runs beside all others, and gains them nothing. */
static double loses_beside(uint32_t permille)
{
	return permille / 1000. / (1 - permille / 1000.);
}

static void what_is_unknown_costs_more_the_more_of_it_is_tried(void **state)
{
	struct causal_budget budget = {0};
	double before = 0;

	(void)state;
	for (uint32_t permille = 250; permille <= 1000; permille += 250) {
		double price = causal_budget_predict_loss_per_second(&budget, 1, permille, 0.9);

		assert_true(price > before);
		assert_true(price < causal_budget_predict_loss_per_second(&budget, 1, permille, 1));
		before = price;
	}
	assert_true(causal_budget_predict_loss_per_second(&budget, 1, 1000, 0) == 0);
	assert_true(isinf(causal_budget_predict_loss_per_second(&budget, 1, 1000, 2)));
}

static void what_was_tried_has_the_price_that_it_had(void **state)
{
	struct causal_budget budget = {0};

	(void)state;
	learn(&budget, 500, 90e6, 100e6);
	learn(&budget, 500, 110e6, 100e6);
	assert_true(fabs(causal_budget_predict_loss_per_second(&budget, 1, 500, 0.3) - 0.5) < 1e-9);
	assert_true(causal_budget_has_tried_target(&budget, 1));
	assert_false(causal_budget_has_tried_target(&budget, 2));
	learn(&budget, 750, -5e6, 100e6);
	assert_true(causal_budget_predict_loss_per_second(&budget, 1, 750, 0.3) == 0);
	causal_budget_deinit(&budget);
}

/* Each speedup says what the next one costs. */
static void prices_follow_what_smaller_speedups_cost(void **state)
{
	struct causal_budget budget = {0};

	(void)state;
	for (uint32_t permille = 250; permille < 1000; permille += 250) {
		double lost = loses_beside(permille) * USUAL;

		if (permille > 250)
			assert_true(fabs(causal_budget_predict_loss_per_second(&budget, 1, permille,
									       1) /
						 loses_beside(permille) -
					 1) < 0.01);
		learn(&budget, permille, lost, lost);
	}
	causal_budget_deinit(&budget);

	/* all that is delayed is gained */
	learn(&budget, 250, 0, 0.25 * 0.9 * USUAL);
	assert_true(causal_budget_predict_loss_per_second(&budget, 1, 500, 0.9) < 0.2);
	learn(&budget, 750, 0, 0.75 * 0.9 * USUAL);
	assert_true(causal_budget_predict_loss_per_second(&budget, 1, 1000, 0.9) < 0.2);
	assert_true(causal_budget_predict_loss_per_second(&budget, 2, 1000, 0.9) > 0.5);
	causal_budget_deinit(&budget);

	/* so much to do for a visit: from 30 % on the other side is the slower one */
	learn(&budget, 500, 0.2 * USUAL, 0.5 * USUAL);
	learn(&budget, 750, 0.45 * USUAL, 0.75 * USUAL);
	assert_true(fabs(causal_budget_predict_loss_per_second(&budget, 1, 1000, 1) - 0.7) < 0.1);
	causal_budget_deinit(&budget);
}

static void another_run_may_lose_as_much_again(void **state)
{
	struct causal_budget budget = {0};

	(void)state;
	learn(&budget, 500, 100e6, 100e6);
	causal_budget_record_loss(&budget, 1, 500, 100e6);
	causal_budget_record_loss(&budget, 1, 250, 10e6);
	causal_budget_record_loss(&budget, 2, 250, 5e6);
	assert_true(budget.lost == 115e6);
	assert_true(causal_budget_sum_target_loss_ns(&budget, 1) == 110e6);
	causal_budget_reset_for_run(&budget);
	assert_true(budget.lost == 0);
	assert_true(causal_budget_sum_target_loss_ns(&budget, 1) == 0);
	assert_true(causal_budget_predict_loss_per_second(&budget, 1, 500, 1) > 0.49);
	assert_true(causal_budget_compute_allowance_ns(0) > 0);
	assert_true(causal_budget_compute_allowance_ns(100000000000u) <= 5e9);
	causal_budget_deinit(&budget);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_unknown_costs_more_the_more_of_it_is_tried),
		cmocka_unit_test(what_was_tried_has_the_price_that_it_had),
		cmocka_unit_test(prices_follow_what_smaller_speedups_cost),
		cmocka_unit_test(another_run_may_lose_as_much_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
