/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a window says: visits of each point in its virtual time, the area of latencies, times of
 * targets, and what else went on. Nothing in the shared file is trusted: what cannot be is left
 * out.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "cmd/causal_window.h"

#define AREA_MAX 9e18 /* of latencies, in ns: what an int64_t holds */

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

void window_write(struct causal_controller *controller, const struct window *window,
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
