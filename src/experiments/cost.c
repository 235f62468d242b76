/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What experiments may cost a session that was not told how long it may take, and which ones wait
 * until it may lose as much.
 */
#include "experiments/control_private.h"

/* The share of what a careful session may lose that one target's windows may take. Costlier ones
 * are left until the run has lasted longer, and cheap ones need not wait for them. */
#define CONTROL_COST_SHARE_PER_TARGET 0.5
/* Windows are not all alike: they begin when there is somewhat more than they are likely to cost.
 */
#define CONTROL_COST_RESERVE_FACTOR        1.25
#define TARGET_CPU_RATE_BASELINES_READ_MAX 12
/* Five percent of less are too little for an experiment. */
#define CONTROL_SHORT_RUN_MAX_NS (4 * SECOND_NS)

/* A program that is run again and again for the experiments alone may be slow in them. */
static bool control_repeats_short_runs(const struct causal_controller *controller)
{
	return controller->has_brief_runs ||
	       (controller->runs > 1 && controller->last_run_ns < CONTROL_SHORT_RUN_MAX_NS);
}

bool control_is_cost_limited(const struct causal_controller *controller)
{
	const struct causal_options *request = controller->options.request;

	return !request->experiments_duration_max_ns && !(request->until_ci_width > 0) &&
	       !request->speedups_given && !controller->end_to_end &&
	       !control_repeats_short_runs(controller);
}

static double control_compute_total_allowance_ns(const struct causal_controller *controller)
{
	return causal_budget_compute_allowance_ns(monotonic_ns() - controller->run_start_ns);
}

double control_compute_allowance_left_ns(const struct causal_controller *controller)
{
	return control_compute_total_allowance_ns(controller) - controller->budget.lost;
}

/* Seconds of CPU time in the target for each second, by the last baselines; 0: there is none. */
static double control_compute_target_code_cpu_rate(const struct causal_controller *controller,
						   uint32_t target)
{
	const struct causal_data *data = &controller->journal.data;
	unsigned found = 0;
	double time = 0, real = 0;

	for (size_t i = data->window_count; i-- && found < TARGET_CPU_RATE_BASELINES_READ_MAX;) {
		const struct causal_data_window *window = &data->windows[i];

		if (window->target || window->end == CAUSAL_WINDOW_CUT_SHORT)
			continue;
		found++;
		real += (double)window->real_ns;
		for (size_t j = 0; j < window->time_count; j++) {
			if (window->times[j].target == target)
				time += (double)window->times[j].total_ns;
		}
	}
	return real > 0 ? time / real : 0;
}

/* The price of a window, and of what is before it. A target that nothing is known of is tried once:
 * where windows are long, most cost much less than they might, and else it is cut. */
static double control_predict_window_price_ns(const struct causal_controller *controller,
					      uint32_t target, uint32_t permille)
{
	const struct control_point_visit_rate *pace = &controller->visit_rates[controller->point];
	double usual = (double)(pace->wanted * pace->period_ns + WINDOW_WARM_UP_NS);
	double price = CONTROL_COST_RESERVE_FACTOR * usual *
		       causal_budget_predict_loss_per_second(
			       &controller->budget, target, permille,
			       control_compute_target_code_cpu_rate(controller, target));
	double once = causal_budget_compute_allowance_ns(0);

	if (price > once && permille == controller->options.request->speedups.permille[0] &&
	    !causal_budget_has_tried_target(&controller->budget, target))
		return once;
	return price;
}

/* Some dozen milliseconds are lost by any window: by those a session begins. */
bool control_can_afford_experiment(void *context, uint32_t target, uint32_t permille)
{
	const struct causal_controller *controller = context;

	if (!control_is_cost_limited(controller))
		return true;
	double most =
		control_compute_total_allowance_ns(controller) * CONTROL_COST_SHARE_PER_TARGET;
	double least = causal_budget_compute_allowance_ns(0);

	return causal_budget_sum_target_loss_ns(&controller->budget, target) +
		       control_predict_window_price_ns(controller, target, permille) <=
	       (most > least ? most : least);
}

void control_postpone_if_costly(struct causal_controller *controller, uint32_t *target,
				uint32_t *permille)
{
	controller->has_postponed_experiment =
		control_is_cost_limited(controller) && *target &&
		control_predict_window_price_ns(controller, *target, *permille) >
			control_compute_allowance_left_ns(controller);
	if (!controller->has_postponed_experiment)
		return;
	controller->postponed_target = *target;
	controller->postponed_speedup_permille = *permille;
	*target = *permille = 0;
}

bool control_choose_postponed_if_affordable(struct causal_controller *controller, uint32_t *target,
					    uint32_t *permille)
{
	if (!controller->has_postponed_experiment ||
	    !control_can_afford_experiment(controller, controller->postponed_target,
					   controller->postponed_speedup_permille))
		return false;
	*target = controller->postponed_target;
	*permille = controller->postponed_speedup_permille;
	return true;
}

bool control_needs_baseline(const struct causal_controller *controller)
{
	return control_is_cost_limited(controller) &&
	       (!controller->windows || control_compute_allowance_left_ns(controller) < 0);
}
