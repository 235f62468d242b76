/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One experiment: a window from one visit of a progress point to a later one.
 *
 * A window has as many visits as all others of its point, some 200 ms of them. Were it as long in
 * time instead, the visits cut off at its ends would be noise, and in a program with phases the
 * slow ones would weigh more the slower they are. Virtual times come with the visits, so nothing
 * has to be read at a certain moment: the thread sleeps until about the last visit, and finds its
 * time in the ring of the point. Only points that a program counts by itself are polled.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "experiments/window.h"

/* A window whose delays are more than so many percent of its time, all paid for by others, is cut
 * when it has lasted so long. */
#define WINDOW_STARVED_DELAY_PERCENT 80
#define WINDOW_STARVED_AFTER_NS      WINDOW_LENGTH_NS
/* What is inside when it begins is older than the experiment; so many times its latency, but no
 * longer than this. */
#define WINDOW_WARM_UP_LATENCIES 3
#define WINDOW_WARM_UP_MAX_NS    (200 * MILLISECOND_NS)
#define WINDOW_SLEEP_LEAST_NS    (MILLISECOND_NS * 3 / 10) /* shortest sleep */
#define WINDOW_SLEEP_MAX_NS      (50 * MILLISECOND_NS)     /* longest */
/* A careful session looks so often what a window costs, and cuts it when that is so much more than
 * the run may lose. */
#define WINDOW_COST_CHECK_INTERVAL_NS (10 * MILLISECOND_NS)
#define WINDOW_LOSS_TOLERANCE_NS      (25 * MILLISECOND_NS)

int64_t control_ticks_to_ns(const struct causal_controller *controller, uint64_t ticks)
{
	return causal_clock_ticks_to_ns(&controller->clock, (int64_t)ticks);
}

/* ---- edges ---- */

static uint64_t window_cap_sleep_for_cost_check(const struct experiment_window *window, uint64_t ns)
{
	return window->cost_max_ns < INFINITY && ns > WINDOW_COST_CHECK_INTERVAL_NS
		       ? WINDOW_COST_CHECK_INTERVAL_NS
		       : ns;
}

/* Visits that carry no time are dated when they are seen. */
static bool window_wait_for_next_visit(struct causal_controller *controller,
				       const struct experiment_window *window, uint64_t limit_ns)
{
	uint32_t point = window->point;
	uint64_t period = controller->visit_rates[point].period_ns;
	uint64_t visits = causal_point_get_visit_count(&controller->points, point);
	uint64_t nap = control_clamp_to_range(period / 64, MILLISECOND_NS / 5, 2 * MILLISECOND_NS);

	if (period < 2 * MILLISECOND_NS)
		return true; /* one more or less is nothing */
	while (causal_point_get_visit_count(&controller->points, point) == visits &&
	       monotonic_ns() < limit_ns && !window_is_over_budget(controller, window)) {
		if (!control_sleep_and_renew_lease(controller, nap))
			return false;
	}
	return true;
}

/* A window of so many visits as all have may last longer where these are delayed; but not for ever.
 */
static uint64_t window_compute_length_limit_ns(const struct causal_controller *controller,
					       uint32_t point)
{
	uint64_t some = controller->visit_rates[point].period_ns * WINDOW_VISITS_WANTED / 2;

	return some > WINDOW_LENGTH_MAX_NS ? some : WINDOW_LENGTH_MAX_NS;
}

/* A point without visits for so long is visited no more: another part of the program runs. */
static uint64_t window_compute_no_visit_limit_ns(const struct causal_controller *controller,
						 uint32_t point)
{
	return SECOND_NS + controller->visit_rates[point].period_ns * WINDOW_VISITS_WANTED;
}

/* Waits for a visit that happened after `not_before` (virtual ticks). False: there was none. */
static bool window_wait_for_first_visit(struct causal_controller *controller,
					struct experiment_window *window, uint64_t not_before)
{
	uint64_t limit =
		monotonic_ns() + window_compute_no_visit_limit_ns(controller, window->point);
	uint64_t nap = control_clamp_to_range(controller->visit_rates[window->point].period_ns / 4,
					      WINDOW_SLEEP_LEAST_NS, WINDOW_SLEEP_MAX_NS);
	struct causal_point_reading reading;

	for (;;) {
		causal_point_read(&controller->points, window->point,
				  control_get_virtual_now_ticks(controller), &reading);
		if (!reading.timed)
			return window_wait_for_next_visit(controller, window, limit);
		if ((int64_t)(reading.time - not_before) >= 0)
			return true;
		if (window_is_over_budget(controller, window)) {
			window->end = CAUSAL_WINDOW_CUT_SHORT;
			return false;
		}
		if (monotonic_ns() > limit ||
		    control_point_is_given_up(controller, window->point) ||
		    !control_sleep_and_renew_lease(controller,
						   window_cap_sleep_for_cost_check(window, nap)))
			return false;
	}
}

static void window_read_all_points(struct causal_controller *controller,
				   struct causal_point_reading *readings, uint32_t *count)
{
	uint64_t now = control_get_virtual_now_ticks(controller);

	causal_points_find_new(&controller->points);
	*count = controller->points.count;
	for (uint32_t i = 0; i < *count; i++) {
		if (controller->points.list[i].known)
			causal_point_read(&controller->points, i, now, &readings[i]);
	}
}

/* How many have begun and not ended, where only numbers are known. */
static void window_add_units_in_progress(struct causal_controller *controller,
					 struct experiment_window *window)
{
	uint32_t begin = controller->points.list[window->point].begin_point_index;

	if (begin == CAUSAL_NO_POINT)
		return;
	window->inside +=
		(double)(int64_t)(causal_point_get_visit_count(&controller->points, begin) -
				  causal_point_get_visit_count(&controller->points, window->point));
	window->inside_look_count++;
}

/* The target runs nearly all the time and others hardly do, because they pay for that: nothing is
 * to be learnt by it, for what remains of their time is paying. */
static bool window_is_starved_by_delays(const struct causal_controller *controller,
					const struct experiment_window *window, uint64_t now)
{
	int64_t real = (int64_t)(now - window->start_ns);
	int64_t delay =
		control_ticks_to_ns(controller, atomic_load(&controller->shared->global_delay) -
							window->start_global_delay_ticks);
	int64_t paid = control_ticks_to_ns(controller, atomic_load(&controller->shared->paid) -
							       window->start_paid_delay_ticks);

	return now - window->start_ns > WINDOW_STARVED_AFTER_NS &&
	       delay > real / 100 * WINDOW_STARVED_DELAY_PERCENT && paid > delay / 2;
}

/* Until the visit that ends the window. */
static void window_wait_for_last_visit(struct causal_controller *controller,
				       struct experiment_window *window)
{
	const struct control_point_visit_rate *pace = &controller->visit_rates[window->point];
	const struct causal_point_reading *first = &window->first[window->point];
	uint64_t limit =
		window->start_ns + window_compute_length_limit_ns(controller, window->point);
	uint64_t patience = window_compute_no_visit_limit_ns(controller, window->point);
	uint64_t seen = 0, seen_ns = window->start_ns, nap;

	window->end = CAUSAL_WINDOW_ENDED_BY_VISITS;
	for (;;) {
		uint64_t now = monotonic_ns(), period = pace->period_ns;
		uint64_t done = causal_point_get_visit_count(&controller->points, window->point) -
				first->count;

		window_add_units_in_progress(controller, window);
		if (done >= pace->wanted && done < UINT64_MAX / 2)
			break;
		seen_ns = done == seen ? seen_ns : now;
		seen = done;
		if (now > limit || now - seen_ns > patience ||
		    control_point_is_given_up(controller, window->point)) {
			window->end = CAUSAL_WINDOW_ENDED_BY_TIME_LIMIT;
			break;
		}
		if (window_is_starved_by_delays(controller, window, now) ||
		    window_is_over_budget(controller, window)) {
			window->end = CAUSAL_WINDOW_CUT_SHORT;
			return;
		}
		if (done >= 4 && done < UINT64_MAX / 2)
			period = (now - window->start_ns) / done;
		nap = control_clamp_to_range((pace->wanted - done) * period, WINDOW_SLEEP_LEAST_NS,
					     first->timed ? WINDOW_SLEEP_MAX_NS
							  : WINDOW_SLEEP_MAX_NS / 10);
		if (!control_sleep_and_renew_lease(controller,
						   window_cap_sleep_for_cost_check(window, nap))) {
			window->end = CAUSAL_WINDOW_ENDED_BY_PROGRAM_EXIT;
			return;
		}
	}
	window->cost_max_ns = INFINITY; /* it is whole but for a visit */
	if (!first->timed && !window_wait_for_next_visit(controller, window, limit))
		window->end = CAUSAL_WINDOW_ENDED_BY_PROGRAM_EXIT;
}

/* ---- an experiment ---- */

void window_start_measuring(struct causal_controller *controller, struct experiment_window *window)
{
	control_read_target_times(controller);
	controller->target_time_count_at_begin = controller->target_time_count;
	if (controller->target_time_count)
		memcpy(controller->target_times_at_begin, controller->target_times,
		       controller->target_time_count * sizeof(*controller->target_times));
	causal_session_read_usage(controller->options.session, &window->start_usage);
	window->start_global_delay_ticks = atomic_load(&controller->shared->global_delay);
	window->start_paid_delay_ticks = atomic_load(&controller->shared->paid);
	window->start_late_wakeup_ticks = atomic_load(&controller->shared->late);
	window->start_ns = monotonic_ns();
	window_read_all_points(controller, window->first, &window->point_count);
}

/* Forked children count only as being there: their threads are not counted. */
static int64_t window_count_participating_threads(const struct causal_controller *controller)
{
	struct causal_control *shared = controller->shared;
	uint32_t processes = atomic_load(&shared->processes);

	return atomic_load(&shared->took_part[controller->experiment_epoch % 2]) +
	       (processes ? (int64_t)processes - 1 : 0);
}

void window_stop_measuring(struct causal_controller *controller, struct experiment_window *window)
{
	window_read_all_points(controller, window->last, &window->point_count);
	window->end_ns = monotonic_ns();
	window->end_global_delay_ticks = atomic_load(&controller->shared->global_delay);
	window->end_paid_delay_ticks = atomic_load(&controller->shared->paid);
	window->end_late_wakeup_ticks = atomic_load(&controller->shared->late);
	window->threads = window_count_participating_threads(controller);
	control_read_target_times(controller);
	causal_session_read_usage(controller->options.session, &window->end_usage);
}

static uint64_t window_compute_warm_up_ns(const struct causal_controller *controller,
					  uint32_t point)
{
	uint32_t begin = controller->points.list[point].begin_point_index;
	uint64_t inside;

	if (begin == CAUSAL_NO_POINT)
		return WINDOW_WARM_UP_NS;
	inside = causal_point_get_visit_count(&controller->points, begin) -
		 causal_point_get_visit_count(&controller->points, point);
	if (inside > UINT32_MAX)
		return WINDOW_WARM_UP_NS;
	return control_clamp_to_range(inside * controller->visit_rates[point].period_ns *
					      WINDOW_WARM_UP_LATENCIES,
				      WINDOW_WARM_UP_NS, WINDOW_WARM_UP_MAX_NS);
}

/* Returns the virtual time when half of it was over. In real time it lasts the same in all
 * experiments: virtual time may hardly pass in them. */
static bool sleep_through_window_warm_up(struct causal_controller *controller, uint64_t ns,
					 uint64_t *ret)
{
	bool going = control_sleep_and_renew_lease(controller, ns / 2);

	*ret = control_get_virtual_now_ticks(controller);
	return going && control_sleep_and_renew_lease(controller, ns - ns / 2);
}

static void window_activate_experiment(struct causal_controller *controller,
				       struct experiment_window *window, uint32_t target,
				       uint32_t permille)
{
	window->cost_max_ns = target && control_is_cost_limited(controller)
				      ? fmax(0, control_compute_allowance_left_ns(controller)) +
						WINDOW_LOSS_TOLERANCE_NS
				      : INFINITY;
	window->begin_ns = monotonic_ns();
	window->begin_visit_count =
		causal_point_get_visit_count(&controller->points, window->point);
	window->begin_paid_delay_ticks = atomic_load(&controller->shared->paid);
	window->begin_global_delay_ticks = atomic_load(&controller->shared->global_delay);
	controller->has_stalled = false;
	control_activate_experiment(controller, target, permille);
}

bool control_run_window(struct causal_controller *controller, uint32_t point, uint32_t target,
			uint32_t permille)
{
	struct experiment_window *window = calloc(1, sizeof(*window));
	uint64_t settle = window_compute_warm_up_ns(controller, point), settled;

	if (!window)
		return control_sleep_and_renew_lease(controller, SECOND_NS);
	window->point = point;
	window_activate_experiment(controller, window, target, permille);
	if (sleep_through_window_warm_up(controller, settle, &settled) &&
	    window_wait_for_first_visit(controller, window, settled)) {
		window_start_measuring(controller, window);
		window_wait_for_last_visit(controller, window);
		window_stop_measuring(controller, window);
		control_deactivate_experiment(controller);
		window_write_measurement(controller, window, target, permille);
		window_update_budget(controller, window, target, permille);
	} else {
		control_deactivate_experiment(controller);
		window_learn_price_of_unfinished(controller, window,
						 (struct causal_budget_experiment_sums){
							 .target = target, .permille = permille});
	}
	control_cooldown_record_window(controller, target, monotonic_ns() - window->begin_ns);
	if (window->end != CAUSAL_WINDOW_CUT_SHORT &&
	    (!window->start_ns || window->last[point].visits == window->first[point].visits)) {
		/* it is visited no more, or more rarely */
		controller->visit_rates[point].wanted = 0;
		controller->run_start_visit_counts[point] =
			causal_point_get_visit_count(&controller->points, point);
	}
	free(window);
	return !controller->is_run_over;
}
