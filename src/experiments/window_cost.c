/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a window takes away from the run: whether that is more than it may, and what is learnt for
 * the price of the next ones.
 */
#include <math.h>
#include <stdatomic.h>

#include "experiments/window.h"

/* By how much something took longer, as far as that can be the experiment's doing: by the delays,
 * and by the pauses that threads made. The rest is the machine's. */
static double window_limit_loss_to_delays_ns(const struct causal_controller *controller,
					     double longer, uint64_t delay, uint64_t paid)
{
	double delayed = (double)control_ticks_to_ns(controller, delay);
	double paused = (double)control_ticks_to_ns(controller, paid);
	double most = fmax(0, fmin(delayed, paused));

	return fmin(fmax(longer, -most), most);
}

static uint64_t window_get_visits_so_far(const struct causal_controller *controller,
					 const struct experiment_window *window)
{
	uint64_t visits = causal_point_get_visit_count(&controller->points, window->point);

	return visits - window->begin_visit_count > UINT64_MAX / 2
		       ? 0
		       : visits - window->begin_visit_count;
}

/* Since the experiment began; the visit that is to come next is counted as so much of one. */
static double window_estimate_cost_so_far_ns(const struct causal_controller *controller,
					     const struct experiment_window *window, double next)
{
	struct causal_control *shared = controller->shared;
	double visits = (double)window_get_visits_so_far(controller, window) + next;
	double real = (double)(monotonic_ns() - window->begin_ns);

	return window_limit_loss_to_delays_ns(
		controller,
		real - visits * (double)controller->visit_rates[window->point].period_ns,
		atomic_load(&shared->global_delay) - window->begin_global_delay_ticks,
		atomic_load(&shared->paid) - window->begin_paid_delay_ticks);
}

bool window_is_over_budget(const struct causal_controller *controller,
			   const struct experiment_window *window)
{
	return window->cost_max_ns < INFINITY &&
	       window_estimate_cost_so_far_ns(controller, window, 1) > window->cost_max_ns;
}

/* What comes before its first visit costs as much as what is measured. */
static double window_compute_measured_share(const struct experiment_window *window)
{
	return (double)(window->end_ns - window->start_ns + 1) /
	       (double)(window->end_ns - window->begin_ns + 1);
}

/* Learns the price of a window that had all its visits. */
static void window_learn_price_of_finished(struct causal_controller *controller,
					   const struct experiment_window *window,
					   struct causal_budget_experiment_sums cell,
					   uint64_t visits)
{
	uint64_t delay = window->end_global_delay_ticks - window->start_global_delay_ticks;

	cell.usual_time_sum_ns =
		(double)(visits * controller->visit_rates[window->point].period_ns);
	cell.delay = (double)control_ticks_to_ns(controller, delay);
	cell.lost = window_limit_loss_to_delays_ns(
		controller, (double)(window->end_ns - window->start_ns) - cell.usual_time_sum_ns,
		delay, window->end_paid_delay_ticks - window->start_paid_delay_ticks);
	causal_budget_record_loss(&controller->budget, cell.target, cell.permille,
				  cell.lost / window_compute_measured_share(window));
	causal_budget_learn_window_price(&controller->budget, &cell);
}

void window_learn_price_of_unfinished(struct causal_controller *controller,
				      const struct experiment_window *window,
				      struct causal_budget_experiment_sums cell)
{
	double visits = (double)window_get_visits_so_far(controller, window);

	if (!cell.target)
		return;
	/* where none was seen, the next one would have been there soon, for all that is known */
	cell.usual_time_sum_ns =
		fmax(visits, 0.5) * (double)controller->visit_rates[window->point].period_ns;
	cell.delay = (double)control_ticks_to_ns(controller,
						 atomic_load(&controller->shared->global_delay) -
							 window->begin_global_delay_ticks);
	cell.lost = window_estimate_cost_so_far_ns(controller, window, 0);
	causal_budget_record_loss(&controller->budget, cell.target, cell.permille, cell.lost);
	if (window->end == CAUSAL_WINDOW_CUT_SHORT)
		causal_budget_learn_window_price(&controller->budget, &cell);
}

/* The period of a baseline. Its end was noticed later than it came, unless visits carry times. */
static uint64_t window_compute_visit_period_ns(const struct causal_controller *controller,
					       const struct experiment_window *window,
					       uint64_t usual)
{
	const struct causal_point_reading *first = &window->first[window->point];
	const struct causal_point_reading *last = &window->last[window->point];
	uint64_t visits = last->count - first->count;
	int64_t time = control_ticks_to_ns(controller, last->time - first->time);

	return first->timed && last->timed && time > 0 && visits && visits < UINT64_MAX / 2
		       ? (uint64_t)time / visits
		       : usual;
}

void window_update_budget(struct causal_controller *controller,
			  const struct experiment_window *window, uint32_t target,
			  uint32_t permille)
{
	struct causal_budget_experiment_sums cell = {.target = target, .permille = permille};
	struct control_point_visit_rate *pace = &controller->visit_rates[window->point];
	uint64_t visits = window->last[window->point].visits - window->first[window->point].visits;
	uint64_t real = window->end_ns - window->start_ns;

	for (uint32_t i = 0; i < window->point_count; i++) {
		if (!controller->visit_rates[i].wanted && window->last[i].visits)
			control_visit_rate_set(&controller->visit_rates[i], real,
					       window->last[i].visits - window->first[i].visits);
	}
	if (window->end == CAUSAL_WINDOW_CUT_SHORT ||
	    window->end == CAUSAL_WINDOW_ENDED_BY_TIME_LIMIT)
		window_learn_price_of_unfinished(controller, window, cell);
	if (!visits || visits > UINT64_MAX / 2 || window->end != CAUSAL_WINDOW_ENDED_BY_VISITS)
		return;
	if (!target) {
		real = window_compute_visit_period_ns(controller, window, real / visits);
		control_visit_rate_update(pace, real);
		control_cooldown_add_baseline(controller, window->point, real);
	} else {
		window_learn_price_of_finished(controller, window, cell, visits);
	}
}
