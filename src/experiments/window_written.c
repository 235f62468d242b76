/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a window says: visits of each point in its virtual time, the area of latencies, times of
 * targets, and what else went on. Nothing in the shared file is trusted: what cannot be is left
 * out.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "experiments/window.h"

#define LATENCY_AREA_NS_MAX 9e18 /* of latencies, in ns: what an int64_t holds */

/* Nothing in the shared file is trusted: what cannot be is left out. */
static bool virtual_time_is_possible(const struct experiment_window *window, int64_t virtual_ns)
{
	int64_t real = (int64_t)(window->end_ns - window->start_ns);

	return virtual_ns > -real && virtual_ns < 2 * real + (int64_t)SECOND_NS;
}

static bool window_compute_visits_of_point(const struct causal_controller *controller,
					   const struct experiment_window *window, uint32_t index,
					   struct causal_data_window_visits *ret)
{
	const struct causal_point_reading *first = &window->first[index];
	struct causal_point_reading last = window->last[index];
	uint64_t wanted = first->count + controller->visit_rates[index].wanted, time;

	/* A run that is an experiment by itself is measured to its end, however few its visits. */
	if (index == window->point && wanted != first->count && first->timed &&
	    last.count > wanted &&
	    causal_point_read_time_of_visit(&controller->points, index, wanted, &time)) {
		last.count = wanted;
		last.time = time;
	}
	*ret = (struct causal_data_window_visits){
		.point = index,
		.end_point = CAUSAL_NO_POINT,
		.visits = last.count - first->count,
		.intervals_virtual_ns = control_ticks_to_ns(controller, last.time - first->time)};
	if (!ret->visits && index == window->point)
		ret->intervals_virtual_ns =
			control_ticks_to_ns(controller, last.present - first->present);
	return first->timed == last.timed && first->count && ret->visits < UINT64_MAX / 2 &&
	       (ret->visits || index == window->point) &&
	       virtual_time_is_possible(window, ret->intervals_virtual_ns);
}

/* The integral of how many are inside: of those that were from the first, of those that came until
 * the end, less of those that left. Sums are modulo 2^64, and so is this. */
static double window_compute_latency_area(const struct causal_point_reading *begin_first,
					  const struct causal_point_reading *begin_last,
					  const struct causal_point_reading *end_first,
					  const struct causal_point_reading *end_last)
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

static bool window_compute_latency(const struct causal_controller *controller,
				   const struct experiment_window *window, uint32_t end,
				   struct causal_data_window_visits *ret)
{
	uint32_t begin = controller->points.list[end].begin_point_index;
	const struct causal_point_reading *begin_first = &window->first[begin];
	const struct causal_point_reading *begin_last = &window->last[begin];
	const struct causal_point_reading *first = &window->first[end], *last = &window->last[end];
	double area, most;

	*ret = (struct causal_data_window_visits){
		.point = begin,
		.end_point = end,
		.visits = last->visits - first->visits,
		.arrivals = begin_last->visits - begin_first->visits,
		.intervals_virtual_ns =
			control_ticks_to_ns(controller, last->present - first->present)};
	if (!ret->visits || ret->visits > UINT64_MAX / 2 || ret->arrivals > UINT64_MAX / 2 ||
	    begin_first->timed != begin_last->timed || first->timed != last->timed ||
	    !virtual_time_is_possible(window, ret->intervals_virtual_ns))
		return false;
	if (first->timed && begin_first->timed)
		area = window_compute_latency_area(begin_first, begin_last, first, last) *
		       controller->clock.ns_per_tick;
	else if (window->inside_look_count && end == window->point)
		area = window->inside / window->inside_look_count *
		       (double)ret->intervals_virtual_ns;
	else
		return false;
	most = ((double)(int64_t)(begin_first->visits - first->visits) + (double)ret->arrivals +
		1) *
	       (double)ret->intervals_virtual_ns * 2;
	if (most > LATENCY_AREA_NS_MAX)
		most = LATENCY_AREA_NS_MAX;
	if (!(area > -(double)ret->intervals_virtual_ns &&
	      area < most)) /* of nonsense it is no number */
		return false;
	ret->inside_count_integral_ns = (int64_t)area;
	return true;
}

/* Times that targets ran in the window; those that hardly did are left out. */
static size_t window_compute_target_times(struct causal_controller *controller, uint32_t target,
					  struct causal_data_target_time_row *ret)
{
	uint64_t all = 0;
	size_t count = 0;

	for (size_t i = 0; i < controller->target_time_count; i++) {
		ret[i] = controller->target_times[i];
		if (i < controller->target_time_count_at_begin) {
			ret[i].self_ns -= controller->target_times_at_begin[i].self_ns;
			ret[i].total_ns -= controller->target_times_at_begin[i].total_ns;
		}
		all += ret[i].self_ns;
	}
	for (size_t i = 0; i < controller->target_time_count; i++) {
		bool counts = (ret[i].self_ns && ret[i].self_ns >= all / 500) ||
			      (ret[i].total_ns && ret[i].total_ns >= all / 50);

		if (ret[i].self_ns <= INT64_MAX && ret[i].total_ns <= INT64_MAX &&
		    (counts || ret[i].target == target))
			ret[count++] = ret[i];
	}
	return count;
}

void control_write_window_to_journal(struct causal_controller *controller,
				     struct causal_data_window *window)
{
	struct causal_data_target_time_row *times =
		calloc(controller->target_time_count + 1, sizeof(*times));

	if (times) {
		window->times = times;
		window->time_count = window_compute_target_times(controller, window->target, times);
		for (size_t i = 0; i < window->time_count; i++)
			causal_journal_write_target_once(
				&controller->journal, controller->options.targets, times[i].target);
	}
	causal_journal_write_window(&controller->journal, window);
	controller->windows++;
	free(times);
}

/* What threads waited for processors, but for the ends of pauses. */
static uint64_t window_compute_run_queue_wait_ns(const struct causal_controller *controller,
						 const struct experiment_window *window)
{
	int64_t late = control_ticks_to_ns(controller, window->end_late_wakeup_ticks -
							       window->start_late_wakeup_ticks);
	int64_t queued = (int64_t)(window->end_usage.run_queue_wait_ns -
				   window->start_usage.run_queue_wait_ns);

	return queued > late ? (uint64_t)(queued - late) : 0;
}

void window_write_measurement(struct causal_controller *controller,
			      const struct experiment_window *window, uint32_t target,
			      uint32_t permille)
{
	struct causal_data_window_visits visits[CAUSAL_POINTS];
	struct causal_data_window data = {
		.run = controller->run,
		.target = target,
		.speedup_permille = permille,
		.end = controller->has_stalled ? CAUSAL_WINDOW_CUT_SHORT : window->end,
		.start_ns = window->start_ns,
		.real_ns = window->end_ns - window->start_ns,
		.visits = visits,
		.cpu_ns = window->end_usage.cpu_ns - window->start_usage.cpu_ns,
		.involuntary_switches = window->end_usage.involuntary_switches -
					window->start_usage.involuntary_switches};

	data.delay_ns = (uint64_t)control_ticks_to_ns(
		controller, window->end_global_delay_ticks - window->start_global_delay_ticks);
	if (window->end_usage.cpu_ns < window->start_usage.cpu_ns ||
	    data.involuntary_switches > UINT64_MAX / 2)
		data.cpu_ns = data.involuntary_switches = 0; /* a process has gone */
	if (window->end_usage.stolen_ns > window->start_usage.stolen_ns)
		data.stolen_ns = window->end_usage.stolen_ns - window->start_usage.stolen_ns;
	data.queued_ns = window_compute_run_queue_wait_ns(controller, window);
	data.threads = window->threads > 0 ? (uint64_t)window->threads : 0;
	for (uint32_t i = 0; i < window->point_count; i++) {
		const struct causal_point_info *point = &controller->points.list[i];
		struct causal_data_window_visits *next = &visits[data.visits_entry_count];
		bool good = false;

		if (point->known && point->kind == CAUSAL_POINT_PROGRESS)
			good = window_compute_visits_of_point(controller, window, i, next);
		else if (point->known && point->begin_point_index != CAUSAL_NO_POINT)
			good = window_compute_latency(controller, window, i, next);
		if (!good)
			continue;
		causal_journal_write_point_once(&controller->journal, i, point);
		if (point->kind == CAUSAL_POINT_END)
			causal_journal_write_point_once(
				&controller->journal, point->begin_point_index,
				&controller->points.list[point->begin_point_index]);
		data.visits_entry_count++;
	}
	control_write_window_to_journal(controller, &data);
}
