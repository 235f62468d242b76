/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a window takes away from the run: whether that is more than it may, and what is learnt for
 * the price of the next ones.
 */
#include <math.h>
#include <stdatomic.h>

#include "cmd/causal_window.h"

/* By how much something took longer, as far as that can be the experiment's doing: by the delays,
 * and by the pauses that threads made. The rest is the machine's. */
static double window_doing(const struct causal_controller *controller, double longer,
			   uint64_t delay, uint64_t paid)
{
	double delayed = (double)control_duration(controller, delay);
	double paused = (double)control_duration(controller, paid);
	double most = fmax(0, fmin(delayed, paused));

	return fmin(fmax(longer, -most), most);
}

static uint64_t window_visits_yet(const struct causal_controller *controller,
				  const struct window *window)
{
	uint64_t visits = causal_points_visits(&controller->points, window->point);

	return visits - window->begin_visits > UINT64_MAX / 2 ? 0 : visits - window->begin_visits;
}

/* Since the experiment began; the visit that is to come next is counted as so much of one. */
static double window_cost_yet(const struct causal_controller *controller,
			      const struct window *window, double next)
{
	struct causal_control *shared = controller->shared;
	double visits = (double)window_visits_yet(controller, window) + next;
	double real = (double)(causal_clock_ns() - window->begin_ns);

	return window_doing(controller,
			    real - visits * (double)controller->paces[window->point].period_ns,
			    atomic_load(&shared->delay) - window->begin_delay,
			    atomic_load(&shared->paid) - window->begin_paid);
}

bool window_is_dear(const struct causal_controller *controller, const struct window *window)
{
	return window->most < INFINITY && window_cost_yet(controller, window, 1) > window->most;
}

/* What comes before its first visit costs as much as what is measured. */
static double window_part(const struct window *window)
{
	return (double)(window->end_ns - window->start_ns + 1) /
	       (double)(window->end_ns - window->begin_ns + 1);
}

/* Of a window that had all its visits. */
static void window_learn_price(struct causal_controller *controller, const struct window *window,
			       struct causal_budget_cell cell, uint64_t visits)
{
	uint64_t delay = window->end_delay - window->start_delay;

	cell.usual = (double)(visits * controller->paces[window->point].period_ns);
	cell.delay = (double)control_duration(controller, delay);
	cell.lost =
		window_doing(controller, (double)(window->end_ns - window->start_ns) - cell.usual,
			     delay, window->end_paid - window->start_paid);
	causal_budget_spend(&controller->budget, cell.target, cell.permille,
			    cell.lost / window_part(window));
	causal_budget_learn(&controller->budget, &cell);
}

void window_learn_least(struct causal_controller *controller, const struct window *window,
			struct causal_budget_cell cell)
{
	double visits = (double)window_visits_yet(controller, window);

	if (!cell.target)
		return;
	/* where none was seen, the next one would have been there soon, for all that is known */
	cell.usual = fmax(visits, 0.5) * (double)controller->paces[window->point].period_ns;
	cell.delay = (double)control_duration(controller, atomic_load(&controller->shared->delay) -
								  window->begin_delay);
	cell.lost = window_cost_yet(controller, window, 0);
	causal_budget_spend(&controller->budget, cell.target, cell.permille, cell.lost);
	if (window->end == CAUSAL_ENDED_CUT)
		causal_budget_learn(&controller->budget, &cell);
}

/* Of a baseline. Its end was noticed later than it came, unless visits carry times. */
static uint64_t window_period_ns(const struct causal_controller *controller,
				 const struct window *window, uint64_t usual)
{
	const struct causal_reading *first = &window->first[window->point];
	const struct causal_reading *last = &window->last[window->point];
	uint64_t visits = last->count - first->count;
	int64_t time = control_duration(controller, last->time - first->time);

	return first->timed && last->timed && time > 0 && visits && visits < UINT64_MAX / 2
		       ? (uint64_t)time / visits
		       : usual;
}

void window_learn(struct causal_controller *controller, const struct window *window,
		  uint32_t target, uint32_t permille)
{
	struct causal_budget_cell cell = {.target = target, .permille = permille};
	struct control_pace *pace = &controller->paces[window->point];
	uint64_t visits = window->last[window->point].visits - window->first[window->point].visits;
	uint64_t real = window->end_ns - window->start_ns;

	for (uint32_t i = 0; i < window->point_count; i++) {
		if (!controller->paces[i].wanted && window->last[i].visits)
			control_pace_set(&controller->paces[i], real,
					 window->last[i].visits - window->first[i].visits);
	}
	if (window->end == CAUSAL_ENDED_CUT || window->end == CAUSAL_ENDED_BY_TIME)
		window_learn_least(controller, window, cell);
	if (!visits || visits > UINT64_MAX / 2 || window->end != CAUSAL_ENDED_BY_VISITS)
		return;
	if (!target) {
		real = window_period_ns(controller, window, real / visits);
		control_pace_follow(pace, real);
		control_rests_compare(controller, window->point, real);
	} else {
		window_learn_price(controller, window, cell, visits);
	}
}
