/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What experiments may cost a session that was not told how long it may take, and which ones wait
 * until it may lose as much.
 */
#include "cmd/causal_control_private.h"

/* Of what a careful session may lose by all windows: by those of one target. Dearer ones are left
 * until the run has lasted longer, and cheap ones need not wait for them. */
#define CONTROL_COST_OF_ONE 0.5
/* Windows are not all alike: they begin when there is somewhat more than they are likely to cost.
 */
#define CONTROL_COST_RESERVE   1.25
#define CONTROL_COST_BASELINES 12

bool control_is_careful(const struct causal_controller *controller)
{
	const struct causal_options *request = controller->options.request;

	return !request->duration_ns && !(request->until_ci > 0) && !request->speedups_given &&
	       !controller->end_to_end;
}

static double control_allowance(const struct causal_controller *controller)
{
	return causal_budget_allowance(causal_clock_ns() - controller->run_start_ns);
}

double control_may_lose(const struct causal_controller *controller)
{
	return control_allowance(controller) - controller->budget.lost;
}

/* Seconds of CPU time in the target for each second, by the last baselines; 0: there is none. */
static double control_rate(const struct causal_controller *controller, uint32_t target)
{
	const struct causal_data *data = &controller->journal.data;
	unsigned found = 0;
	double time = 0, real = 0;

	for (size_t i = data->window_count; i-- && found < CONTROL_COST_BASELINES;) {
		const struct causal_data_window *window = &data->windows[i];

		if (window->target || window->end == CAUSAL_ENDED_CUT)
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

/* Of a window, and of what is before it. A target that nothing is known of is tried once: where
 * windows are long, most cost much less than they might, and else it is cut. */
static double control_price(const struct causal_controller *controller, uint32_t target,
			    uint32_t permille)
{
	const struct control_pace *pace = &controller->paces[controller->point];
	double usual = (double)(pace->wanted * pace->period_ns + WINDOW_SETTLE);
	double price = CONTROL_COST_RESERVE * usual *
		       causal_budget_price(&controller->budget, target, permille,
					   control_rate(controller, target));
	double once = causal_budget_allowance(0);

	if (price > once && permille == controller->options.request->speedups.permille[0] &&
	    !causal_budget_knows(&controller->budget, target))
		return once;
	return price;
}

/* Some dozen milliseconds are lost by any window: by those a session begins. */
bool control_may_try(void *context, uint32_t target, uint32_t permille)
{
	const struct causal_controller *controller = context;
	double most = control_allowance(controller) * CONTROL_COST_OF_ONE;
	double least = causal_budget_allowance(0);

	return causal_budget_spent(&controller->budget, target) +
		       control_price(controller, target, permille) <=
	       (most > least ? most : least);
}

void control_afford(struct causal_controller *controller, uint32_t *target, uint32_t *permille)
{
	controller->postponed =
		control_is_careful(controller) && *target &&
		control_price(controller, *target, *permille) > control_may_lose(controller);
	if (!controller->postponed)
		return;
	controller->postponed_target = *target;
	controller->postponed_permille = *permille;
	*target = *permille = 0;
}

bool control_choose_postponed(struct causal_controller *controller, uint32_t *target,
			      uint32_t *permille)
{
	if (!controller->postponed || !control_may_try(controller, controller->postponed_target,
						       controller->postponed_permille))
		return false;
	*target = controller->postponed_target;
	*permille = controller->postponed_permille;
	return true;
}

bool control_needs_baseline(const struct causal_controller *controller)
{
	return control_is_careful(controller) &&
	       (!controller->windows || control_may_lose(controller) < 0);
}
