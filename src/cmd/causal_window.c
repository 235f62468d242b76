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

#include "cmd/causal_window.h"

/* A window whose delays are more than so many percent of its time, all paid for by others, is cut
 * when it has lasted so long. */
#define WINDOW_STARVED 80
#define WINDOW_STARVES WINDOW_LENGTH
/* What is inside when it begins is older than the experiment; so many times its latency, but no
 * longer than this. */
#define WINDOW_SETTLE_LATENCIES 3
#define WINDOW_SETTLE_LONGEST   (200 * MILLISECOND)
#define WINDOW_NAP              (MILLISECOND * 3 / 10) /* shortest sleep */
#define WINDOW_DOZE             (50 * MILLISECOND)     /* longest */
/* A careful session looks so often what a window costs, and cuts it when that is so much more than
 * the run may lose. */
#define WINDOW_WATCH (10 * MILLISECOND)
#define WINDOW_OVER  (25 * MILLISECOND)

int64_t control_duration(const struct causal_controller *controller, uint64_t ticks)
{
	return causal_clock_to_ns(&controller->clock, (int64_t)ticks);
}

/* ---- edges ---- */

static uint64_t window_nap_ns(const struct window *window, uint64_t ns)
{
	return window->most < INFINITY && ns > WINDOW_WATCH ? WINDOW_WATCH : ns;
}

/* Visits that carry no time are dated when they are seen. */
static bool window_poll_edge(struct causal_controller *controller, const struct window *window,
			     uint64_t limit_ns)
{
	uint32_t point = window->point;
	uint64_t period = controller->paces[point].period_ns;
	uint64_t visits = causal_points_visits(&controller->points, point);
	uint64_t nap = control_clamp(period / 64, MILLISECOND / 5, 2 * MILLISECOND);

	if (period < 2 * MILLISECOND)
		return true; /* one more or less is nothing */
	while (causal_points_visits(&controller->points, point) == visits &&
	       causal_clock_ns() < limit_ns && !window_is_dear(controller, window)) {
		if (!control_sleep(controller, nap))
			return false;
	}
	return true;
}

/* A window of so many visits as all have may last longer where these are delayed; but not for ever.
 */
static uint64_t window_limit_ns(const struct causal_controller *controller, uint32_t point)
{
	uint64_t some = controller->paces[point].period_ns * WINDOW_VISITS / 2;

	return some > WINDOW_LIMIT ? some : WINDOW_LIMIT;
}

/* A point without visits for so long is visited no more: another part of the program runs. */
static uint64_t window_patience_ns(const struct causal_controller *controller, uint32_t point)
{
	return SECOND + controller->paces[point].period_ns * WINDOW_VISITS;
}

/* Waits for a visit that happened after `not_before` (virtual ticks). False: there was none. */
static bool window_await_begin(struct causal_controller *controller, struct window *window,
			       uint64_t not_before)
{
	uint64_t limit = causal_clock_ns() + window_patience_ns(controller, window->point);
	uint64_t nap = control_clamp(controller->paces[window->point].period_ns / 4, WINDOW_NAP,
				     WINDOW_DOZE);
	struct causal_reading reading;

	for (;;) {
		causal_points_read(&controller->points, window->point,
				   control_virtual_now(controller), &reading);
		if (!reading.timed)
			return window_poll_edge(controller, window, limit);
		if ((int64_t)(reading.time - not_before) >= 0)
			return true;
		if (window_is_dear(controller, window)) {
			window->end = CAUSAL_ENDED_CUT;
			return false;
		}
		if (causal_clock_ns() > limit || control_point_is_lost(controller, window->point) ||
		    !control_sleep(controller, window_nap_ns(window, nap)))
			return false;
	}
}

static void window_read(struct causal_controller *controller, struct causal_reading *readings,
			uint32_t *count)
{
	uint64_t now = control_virtual_now(controller);

	causal_points_refresh(&controller->points);
	*count = controller->points.count;
	for (uint32_t i = 0; i < *count; i++) {
		if (controller->points.list[i].known)
			causal_points_read(&controller->points, i, now, &readings[i]);
	}
}

/* How many have begun and not ended, where only numbers are known. */
static void window_look_inside(struct causal_controller *controller, struct window *window)
{
	uint32_t begin = controller->points.list[window->point].partner;

	if (begin == CAUSAL_NO_POINT)
		return;
	window->inside +=
		(double)(int64_t)(causal_points_visits(&controller->points, begin) -
				  causal_points_visits(&controller->points, window->point));
	window->looks++;
}

/* The target runs nearly all the time and others hardly do, because they pay for that: nothing is
 * to be learnt by it, for what remains of their time is paying. */
static bool window_is_starved(const struct causal_controller *controller,
			      const struct window *window, uint64_t now)
{
	int64_t real = (int64_t)(now - window->start_ns);
	int64_t delay = control_duration(controller, atomic_load(&controller->shared->delay) -
							     window->start_delay);
	int64_t paid = control_duration(controller, atomic_load(&controller->shared->paid) -
							    window->start_paid);

	return now - window->start_ns > WINDOW_STARVES && delay > real / 100 * WINDOW_STARVED &&
	       paid > delay / 2;
}

/* Until the visit that ends the window. */
static void window_await_end(struct causal_controller *controller, struct window *window)
{
	const struct control_pace *pace = &controller->paces[window->point];
	const struct causal_reading *first = &window->first[window->point];
	uint64_t limit = window->start_ns + window_limit_ns(controller, window->point);
	uint64_t patience = window_patience_ns(controller, window->point);
	uint64_t seen = 0, seen_ns = window->start_ns, nap;

	window->end = CAUSAL_ENDED_BY_VISITS;
	for (;;) {
		uint64_t now = causal_clock_ns(), period = pace->period_ns;
		uint64_t done =
			causal_points_visits(&controller->points, window->point) - first->count;

		window_look_inside(controller, window);
		if (done >= pace->wanted && done < UINT64_MAX / 2)
			break;
		seen_ns = done == seen ? seen_ns : now;
		seen = done;
		if (now > limit || now - seen_ns > patience ||
		    control_point_is_lost(controller, window->point)) {
			window->end = CAUSAL_ENDED_BY_TIME;
			break;
		}
		if (window_is_starved(controller, window, now) ||
		    window_is_dear(controller, window)) {
			window->end = CAUSAL_ENDED_CUT;
			return;
		}
		if (done >= 4 && done < UINT64_MAX / 2)
			period = (now - window->start_ns) / done;
		nap = control_clamp((pace->wanted - done) * period, WINDOW_NAP,
				    first->timed ? WINDOW_DOZE : WINDOW_DOZE / 10);
		if (!control_sleep(controller, window_nap_ns(window, nap))) {
			window->end = CAUSAL_ENDED_BY_EXIT;
			return;
		}
	}
	window->most = INFINITY; /* it is whole but for a visit */
	if (!first->timed && !window_poll_edge(controller, window, limit))
		window->end = CAUSAL_ENDED_BY_EXIT;
}

/* ---- an experiment ---- */

static void window_begin(struct causal_controller *controller, struct window *window)
{
	control_times(controller);
	controller->before_count = controller->time_count;
	if (controller->time_count)
		memcpy(controller->times_before, controller->times,
		       controller->time_count * sizeof(*controller->times));
	causal_load_read(controller->options.session, &window->start_load);
	window->start_delay = atomic_load(&controller->shared->delay);
	window->start_paid = atomic_load(&controller->shared->paid);
	window->start_late = atomic_load(&controller->shared->late);
	window->start_ns = causal_clock_ns();
	window_read(controller, window->first, &window->point_count);
}

/* Of forked children only that they are there: their threads are not counted. */
static int64_t window_threads(const struct causal_controller *controller)
{
	struct causal_control *shared = controller->shared;
	uint32_t processes = atomic_load(&shared->processes);

	return atomic_load(&shared->took_part[controller->epoch % 2]) +
	       (processes ? (int64_t)processes - 1 : 0);
}

static void window_finish(struct causal_controller *controller, struct window *window)
{
	window_read(controller, window->last, &window->point_count);
	window->end_ns = causal_clock_ns();
	window->end_delay = atomic_load(&controller->shared->delay);
	window->end_paid = atomic_load(&controller->shared->paid);
	window->end_late = atomic_load(&controller->shared->late);
	window->threads = window_threads(controller);
	control_times(controller);
	causal_load_read(controller->options.session, &window->end_load);
}

static uint64_t window_settle_ns(const struct causal_controller *controller, uint32_t point)
{
	uint32_t begin = controller->points.list[point].partner;
	uint64_t inside;

	if (begin == CAUSAL_NO_POINT)
		return WINDOW_SETTLE;
	inside = causal_points_visits(&controller->points, begin) -
		 causal_points_visits(&controller->points, point);
	if (inside > UINT32_MAX)
		return WINDOW_SETTLE;
	return control_clamp(inside * controller->paces[point].period_ns * WINDOW_SETTLE_LATENCIES,
			     WINDOW_SETTLE, WINDOW_SETTLE_LONGEST);
}

/* Returns the virtual time when half of it was over. In real time it lasts the same in all
 * experiments: virtual time may hardly pass in them. */
static bool window_settle(struct causal_controller *controller, uint64_t ns, uint64_t *ret)
{
	bool going = control_sleep(controller, ns / 2);

	*ret = control_virtual_now(controller);
	return going && control_sleep(controller, ns - ns / 2);
}

static void window_activate(struct causal_controller *controller, struct window *window,
			    uint32_t target, uint32_t permille)
{
	window->most = target && control_is_careful(controller)
			       ? fmax(0, control_may_lose(controller)) + WINDOW_OVER
			       : INFINITY;
	window->begin_ns = causal_clock_ns();
	window->begin_visits = causal_points_visits(&controller->points, window->point);
	window->begin_paid = atomic_load(&controller->shared->paid);
	window->begin_delay = atomic_load(&controller->shared->delay);
	controller->stalled = false;
	control_activate(controller, target, permille);
}

bool control_window(struct causal_controller *controller, uint32_t point, uint32_t target,
		    uint32_t permille)
{
	struct window *window = calloc(1, sizeof(*window));
	uint64_t settle = window_settle_ns(controller, point), settled;

	if (!window)
		return control_sleep(controller, SECOND);
	window->point = point;
	window_activate(controller, window, target, permille);
	if (window_settle(controller, settle, &settled) &&
	    window_await_begin(controller, window, settled)) {
		window_begin(controller, window);
		window_await_end(controller, window);
		window_finish(controller, window);
		control_deactivate(controller);
		window_write(controller, window, target, permille);
		window_learn(controller, window, target, permille);
	} else {
		control_deactivate(controller);
		window_learn_least(
			controller, window,
			(struct causal_budget_cell){.target = target, .permille = permille});
	}
	control_rests_follow(controller, target, causal_clock_ns() - window->begin_ns);
	if (window->end != CAUSAL_ENDED_CUT &&
	    (!window->start_ns || window->last[point].visits == window->first[point].visits)) {
		/* it is visited no more, or more rarely */
		controller->paces[point].wanted = 0;
		controller->start_visits[point] = causal_points_visits(&controller->points, point);
	}
	free(window);
	return !controller->over;
}
