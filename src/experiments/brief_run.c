/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Programs that are over before the first window would be: a run is one experiment.
 *
 * The experiment begins before the program does, so that nothing of the run is lost to its start.
 * What is measured goes from the first visit behind the time in which threads learn what of their
 * time is the target, to the last visit that was seen: without the start and the end of the
 * process, which no target makes faster. Which windows there are is known from looks at all points,
 * the latest of which is kept: when the run is over, its processes are gone.
 */
#include <stdlib.h>

#include "experiments/window.h"

/* Threads learn for 8 ms (causal/delay.c). */
#define BRIEF_RUN_WARM_UP_NS     (10 * MILLISECOND_NS)
#define BRIEF_RUN_NAP_LEAST_NS   (MILLISECOND_NS / 5)
#define BRIEF_RUN_NAP_MAX_NS     (4 * MILLISECOND_NS)
#define BRIEF_RUN_NAPS_PER_VISIT 16

/* The point with most visits in the run before, of the user's own ones if there are any; this run's
 * visits are counted from here. */
static uint32_t choose_point_of_last_run(const struct causal_controller *controller)
{
	uint32_t best = CAUSAL_NO_POINT;
	uint64_t most = 0;
	bool own = false;

	for (uint32_t i = 0; i < controller->points.count; i++) {
		const struct causal_point_info *point = &controller->points.list[i];
		uint64_t visits = causal_point_get_visit_count(&controller->points, i) -
				  controller->run_start_visit_counts[i];
		bool is_own = point->origin != CAUSAL_ORIGIN_AUTOMATIC;

		if (!point->known || point->kind == CAUSAL_POINT_BEGIN || visits < 2 ||
		    control_point_is_given_up(controller, i) || (own && !is_own))
			continue;
		if (visits > most || is_own != own) {
			most = visits;
			best = i;
			own = is_own;
		}
	}
	return best;
}

bool control_try_switch_to_brief_runs(struct causal_controller *controller)
{
	uint32_t point;

	if (controller->end_to_end || controller->windows != controller->windows_at_run_start)
		return false;
	causal_points_find_new(&controller->points);
	point = choose_point_of_last_run(controller);
	if (point == CAUSAL_NO_POINT)
		return false;
	controller->has_brief_runs = true;
	controller->point = point;
	controller->brief_visit_period_ns =
		controller->last_run_ns /
		(causal_point_get_visit_count(&controller->points, point) -
		 controller->run_start_visit_counts[point]);
	return true;
}

/* False: the run is over. */
static bool wait_for_visit_after(struct causal_controller *controller, uint64_t count, uint64_t nap)
{
	while (causal_point_get_visit_count(&controller->points, controller->point) == count) {
		if (!control_sleep_and_renew_lease(controller, nap))
			return false;
	}
	return true;
}

static bool wait_until_threads_have_learnt(struct causal_controller *controller, uint64_t nap)
{
	uint64_t begin = controller->run_start_visit_counts[controller->point];

	return wait_for_visit_after(controller, begin, nap) &&
	       control_sleep_and_renew_lease(controller, BRIEF_RUN_WARM_UP_NS) &&
	       wait_for_visit_after(
		       controller,
		       causal_point_get_visit_count(&controller->points, controller->point), nap);
}

void control_measure_brief_run(struct causal_controller *controller)
{
	struct experiment_window *window = calloc(1, sizeof(*window));
	uint64_t nap =
		control_clamp_to_range(controller->brief_visit_period_ns / BRIEF_RUN_NAPS_PER_VISIT,
				       BRIEF_RUN_NAP_LEAST_NS, BRIEF_RUN_NAP_MAX_NS);
	uint64_t seen;

	if (!window)
		return;
	window->point = controller->point;
	window->begin_ns = monotonic_ns();
	if (!wait_until_threads_have_learnt(controller, nap)) {
		free(window);
		return;
	}
	window_start_measuring(controller, window);
	seen = window->first[window->point].visits;
	while (wait_for_visit_after(controller, seen, nap)) {
		seen = causal_point_get_visit_count(&controller->points, window->point);
		window_stop_measuring(controller, window);
		if (!control_sleep_and_renew_lease(controller, BRIEF_RUN_NAP_MAX_NS))
			break;
	}
	window->end = CAUSAL_WINDOW_ENDED_BY_VISITS;
	if (window->end_ns && seen - window->first[window->point].visits >= 2) {
		window_write_measurement(controller, window, controller->target,
					 controller->speedup_permille);
		controller->experiments_ns += window->end_ns - window->begin_ns;
	}
	free(window);
}
