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

#include "cmd/causal_control_private.h"

/* A window whose delays are more than so many percent of its time, all paid for by others, is cut
 * when it has lasted so long. */
#define WINDOW_STARVED 80
#define WINDOW_STARVES WINDOW_LENGTH
#define AREA_MAX       9e18 /* of latencies, in ns: what an int64_t holds */
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

struct window {
	uint32_t point;
	uint64_t begin_ns, start_ns, end_ns; /* of the experiment, and of what is measured of it */
	uint64_t start_delay, end_delay;
	uint64_t start_paid, end_paid;
	uint64_t start_late, end_late;
	uint64_t begin_delay, begin_paid, begin_visits;
	double most; /* that it may cost, in nanoseconds; INFINITY: as much as it does */
	struct causal_load start_load, end_load;
	int64_t threads;
	enum causal_window_end end;
	uint32_t point_count;
	struct causal_reading first[CAUSAL_POINTS], last[CAUSAL_POINTS];
	/* Of untimed latency: how many are inside, at every look. */
	double inside;
	unsigned looks;
};

int64_t control_duration(const struct causal_controller *controller, uint64_t ticks)
{
	return causal_clock_to_ns(&controller->clock, (int64_t)ticks);
}

/* ---- costs ---- */

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

/* It costs more than it may. What is cut so is not used, for windows that were slow by chance would
 * be missing; what it has cost is the price by which the next one is judged, so it is seldom that
 * some windows of a kind are cut and others are not. */
static bool window_is_dear(const struct causal_controller *controller, const struct window *window)
{
	return window->most < INFINITY && window_cost_yet(controller, window, 1) > window->most;
}

static uint64_t window_nap_ns(const struct window *window, uint64_t ns)
{
	return window->most < INFINITY && ns > WINDOW_WATCH ? WINDOW_WATCH : ns;
}

/* ---- edges ---- */

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

/* ---- what it says ---- */

/* Nothing in the shared file is trusted: what cannot be is left out. */
static bool window_is_possible(const struct window *window, int64_t virtual_ns)
{
	int64_t real = (int64_t)(window->end_ns - window->start_ns);

	return virtual_ns > -real && virtual_ns < 2 * real + (int64_t)SECOND;
}

static bool window_throughput(const struct causal_controller *controller,
			      const struct window *window, uint32_t index,
			      struct causal_data_visits *ret)
{
	const struct causal_reading *first = &window->first[index];
	struct causal_reading last = window->last[index];
	uint64_t wanted = first->count + controller->paces[index].wanted, time;

	if (index == window->point && first->timed && last.count > wanted &&
	    causal_points_time_of(&controller->points, index, wanted, &time)) {
		last.count = wanted;
		last.time = time;
	}
	*ret = (struct causal_data_visits){
		.point = index,
		.end_point = CAUSAL_NO_POINT,
		.visits = last.count - first->count,
		.virtual_ns = control_duration(controller, last.time - first->time)};
	if (!ret->visits && index == window->point)
		ret->virtual_ns = control_duration(controller, last.present - first->present);
	return first->timed == last.timed && first->count && ret->visits < UINT64_MAX / 2 &&
	       (ret->visits || index == window->point) &&
	       window_is_possible(window, ret->virtual_ns);
}

/* The integral of how many are inside: of those that were from the first, of those that came until
 * the end, less of those that left. Sums are modulo 2^64, and so is this. */
static double window_area(const struct causal_reading *begin_first,
			  const struct causal_reading *begin_last,
			  const struct causal_reading *end_first,
			  const struct causal_reading *end_last)
{
	uint64_t end = end_last->present;
	int64_t inside = (int64_t)(begin_first->visits - end_first->visits);
	uint64_t arrivals = begin_last->visits - begin_first->visits;
	uint64_t departures = end_last->visits - end_first->visits;
	int64_t came = (int64_t)(arrivals * end - (begin_last->sum - begin_first->sum));
	int64_t left = (int64_t)(departures * end - (end_last->sum - end_first->sum));

	return (double)inside * (double)(int64_t)(end - end_first->present) + (double)came -
	       (double)left;
}

static bool window_latency(const struct causal_controller *controller, const struct window *window,
			   uint32_t end, struct causal_data_visits *ret)
{
	uint32_t begin = controller->points.list[end].partner;
	const struct causal_reading *begin_first = &window->first[begin];
	const struct causal_reading *begin_last = &window->last[begin];
	const struct causal_reading *first = &window->first[end], *last = &window->last[end];
	double area, most;

	*ret = (struct causal_data_visits){
		.point = begin,
		.end_point = end,
		.visits = last->visits - first->visits,
		.arrivals = begin_last->visits - begin_first->visits,
		.virtual_ns = control_duration(controller, last->present - first->present)};
	if (!ret->visits || ret->visits > UINT64_MAX / 2 || ret->arrivals > UINT64_MAX / 2 ||
	    begin_first->timed != begin_last->timed || first->timed != last->timed ||
	    !window_is_possible(window, ret->virtual_ns))
		return false;
	if (first->timed && begin_first->timed)
		area = window_area(begin_first, begin_last, first, last) *
		       controller->clock.ns_per_tick;
	else if (window->looks && end == window->point)
		area = window->inside / window->looks * (double)ret->virtual_ns;
	else
		return false;
	most = ((double)(int64_t)(begin_first->visits - first->visits) + (double)ret->arrivals +
		1) *
	       (double)ret->virtual_ns * 2;
	if (most > AREA_MAX)
		most = AREA_MAX;
	if (!(area > -(double)ret->virtual_ns && area < most)) /* of nonsense it is no number */
		return false;
	ret->area_ns = (int64_t)area;
	return true;
}

/* Times that targets ran in the window; those that hardly did are left out. */
static size_t window_times(struct causal_controller *controller, uint32_t target,
			   struct causal_data_time *ret)
{
	uint64_t all = 0;
	size_t count = 0;

	for (size_t i = 0; i < controller->time_count; i++) {
		ret[i] = controller->times[i];
		if (i < controller->before_count) {
			ret[i].self_ns -= controller->times_before[i].self_ns;
			ret[i].total_ns -= controller->times_before[i].total_ns;
		}
		all += ret[i].self_ns;
	}
	for (size_t i = 0; i < controller->time_count; i++) {
		bool counts = ret[i].self_ns && ret[i].self_ns >= all / 500;

		if (ret[i].self_ns <= INT64_MAX && ret[i].total_ns <= INT64_MAX &&
		    (counts || ret[i].target == target))
			ret[count++] = ret[i];
	}
	return count;
}

void control_write_window(struct causal_controller *controller, struct causal_data_window *window)
{
	struct causal_data_time *times = calloc(controller->time_count + 1, sizeof(*times));

	if (times) {
		window->times = times;
		window->time_count = window_times(controller, window->target, times);
		for (size_t i = 0; i < window->time_count; i++)
			causal_journal_target(&controller->journal, controller->options.targets,
					      times[i].target);
	}
	causal_journal_window(&controller->journal, window);
	controller->windows++;
	free(times);
}

/* What threads waited for processors, but for the ends of pauses. */
static uint64_t window_queued_ns(const struct causal_controller *controller,
				 const struct window *window)
{
	int64_t late = control_duration(controller, window->end_late - window->start_late);
	int64_t queued = (int64_t)(window->end_load.queued_ns - window->start_load.queued_ns);

	return queued > late ? (uint64_t)(queued - late) : 0;
}

static void window_write(struct causal_controller *controller, const struct window *window,
			 uint32_t target, uint32_t permille)
{
	struct causal_data_visits visits[CAUSAL_POINTS];
	struct causal_data_window data = {
		.run = controller->run,
		.target = target,
		.speedup_permille = permille,
		.end = controller->stalled ? CAUSAL_ENDED_CUT : window->end,
		.start_ns = window->start_ns,
		.real_ns = window->end_ns - window->start_ns,
		.visits = visits,
		.cpu_ns = window->end_load.cpu_ns - window->start_load.cpu_ns,
		.involuntary_switches = window->end_load.involuntary_switches -
					window->start_load.involuntary_switches};

	data.delay_ns =
		(uint64_t)control_duration(controller, window->end_delay - window->start_delay);
	if (window->end_load.cpu_ns < window->start_load.cpu_ns ||
	    data.involuntary_switches > UINT64_MAX / 2)
		data.cpu_ns = data.involuntary_switches = 0; /* a process has gone */
	if (window->end_load.stolen_ns > window->start_load.stolen_ns)
		data.stolen_ns = window->end_load.stolen_ns - window->start_load.stolen_ns;
	data.queued_ns = window_queued_ns(controller, window);
	data.threads = window->threads > 0 ? (uint64_t)window->threads : 0;
	for (uint32_t i = 0; i < window->point_count; i++) {
		const struct causal_known_point *point = &controller->points.list[i];
		struct causal_data_visits *next = &visits[data.visit_count];
		bool good = false;

		if (point->known && point->kind == CAUSAL_POINT_PROGRESS)
			good = window_throughput(controller, window, i, next);
		else if (point->known && point->partner != CAUSAL_NO_POINT)
			good = window_latency(controller, window, i, next);
		if (!good)
			continue;
		causal_journal_point(&controller->journal, i, point);
		if (point->kind == CAUSAL_POINT_END)
			causal_journal_point(&controller->journal, point->partner,
					     &controller->points.list[point->partner]);
		data.visit_count++;
	}
	control_write_window(controller, &data);
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

/* Of one that ended before. */
static void window_learn_least(struct causal_controller *controller, const struct window *window,
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

/* What the program lost by it, and how fast it is without. */
static void window_learn(struct causal_controller *controller, const struct window *window,
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
	if (!target)
		control_pace_follow(pace, window_period_ns(controller, window, real / visits));
	else
		window_learn_price(controller, window, cell, visits);
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
	if (window->end != CAUSAL_ENDED_CUT &&
	    (!window->start_ns || window->last[point].visits == window->first[point].visits)) {
		/* it is visited no more, or more rarely */
		controller->paces[point].wanted = 0;
		controller->start_visits[point] = causal_points_visits(&controller->points, point);
	}
	free(window);
	return !controller->over;
}
