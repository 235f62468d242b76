/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which progress point windows are cut by, and how often points are visited.
 */
#include "experiments/control_private.h"

#define WINDOW_VISITS_LEAST                                                                        \
	2 /* of a point that is visited so rarely that more would take too long */
/* A point that is visited so often can be any window's measure. */
#define FREQUENT_VISIT_PERIOD_MAX_NS (100 * MILLISECOND_NS)

/* ---- which point ---- */

static bool is_user_point(const struct causal_point_info *point)
{
	return point->origin != CAUSAL_ORIGIN_AUTOMATIC;
}

/* Nobody counts its visits any more. */
bool control_point_is_given_up(const struct causal_controller *controller, uint32_t index)
{
	return controller->points.list[index].origin == CAUSAL_ORIGIN_NAMED &&
	       causal_point_is_given_up(&controller->points, index);
}

/* A point that can end windows: progress, or the end of what begins. */
static bool point_is_window_candidate(const struct causal_controller *controller, uint32_t index,
				      bool own)
{
	const struct causal_point_info *point = &controller->points.list[index];

	return point->known && point->kind != CAUSAL_POINT_BEGIN && is_user_point(point) == own &&
	       !control_point_is_given_up(controller, index) &&
	       causal_point_get_visit_count(&controller->points, index) >
		       controller->run_start_visit_counts[index];
}

/* Candidates that are visited often take turns; else it is the one that is visited most, of those
 * that are known to be visited still. */
static uint32_t choose_point_by_origin(const struct causal_controller *controller, bool own)
{
	uint32_t often[CAUSAL_POINTS], best = CAUSAL_NO_POINT;
	size_t often_count = 0;
	uint64_t most = 0;
	bool paced = false;

	for (uint32_t i = 0; i < controller->points.count; i++) {
		const struct control_point_visit_rate *pace = &controller->visit_rates[i];
		uint64_t visits;

		if (!point_is_window_candidate(controller, i, own))
			continue;
		visits = causal_point_get_visit_count(&controller->points, i) -
			 controller->run_start_visit_counts[i];
		if ((pace->wanted && !paced) || (!pace->wanted == !paced && visits > most)) {
			paced = pace->wanted > 0;
			most = visits;
			best = i;
		}
		if (pace->wanted && pace->period_ns <= FREQUENT_VISIT_PERIOD_MAX_NS)
			often[often_count++] = i;
	}
	return often_count ? often[controller->windows % often_count] : best;
}

uint32_t control_choose_window_point(struct causal_controller *controller, bool own_only)
{
	uint32_t point;

	causal_points_find_new(&controller->points);
	point = choose_point_by_origin(controller, true);
	return point == CAUSAL_NO_POINT && !own_only ? choose_point_by_origin(controller, false)
						     : point;
}

/* ---- how often points are visited ---- */

void control_visit_rate_set(struct control_point_visit_rate *pace, uint64_t real_ns,
			    uint64_t visits)
{
	if (!visits)
		return;
	pace->period_ns = real_ns / visits;
	pace->period_ns += !pace->period_ns;
	pace->wanted = WINDOW_LENGTH_NS / pace->period_ns;
	if (pace->wanted < WINDOW_VISITS_WANTED)
		pace->wanted = control_clamp_to_range(WINDOW_LENGTH_MAX_NS / pace->period_ns,
						      WINDOW_VISITS_LEAST, WINDOW_VISITS_WANTED);
}

/* The program becomes faster or slower, or others held it up when it was paced, which only makes it
 * slower: what is quicker is believed sooner. Windows keep their number of visits as long as they
 * are about as long as they should be. */
void control_visit_rate_update(struct control_point_visit_rate *pace, uint64_t period_ns)
{
	struct control_point_visit_rate fresh = *pace;

	if (period_ns < pace->period_ns)
		pace->period_ns = (pace->period_ns + period_ns) / 2 + 1;
	else
		pace->period_ns = (pace->period_ns * 7 + period_ns) / 8;
	control_visit_rate_set(&fresh, pace->period_ns, 1);
	if (fresh.wanted > 2 * pace->wanted || fresh.wanted < pace->wanted / 2)
		pace->wanted = fresh.wanted;
}

/* Visits of the point that has most. */
static uint64_t find_max_visits_of_any_point(const struct causal_controller *controller,
					     const uint64_t *before)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < controller->points.count; i++) {
		uint64_t visits = causal_point_get_visit_count(&controller->points, i) - before[i];

		most = visits > most ? visits : most;
	}
	return most;
}

bool control_measure_visit_rates(struct causal_controller *controller)
{
	uint64_t before[CAUSAL_POINTS], begin = monotonic_ns(), now, most;

	for (uint32_t i = 0; i < controller->points.count; i++)
		before[i] = causal_point_get_visit_count(&controller->points, i);
	do {
		if (!control_sleep_and_renew_lease(controller, WINDOW_LENGTH_NS))
			return false;
		now = monotonic_ns();
		most = find_max_visits_of_any_point(controller, before);
	} while (most < 2 || (most < WINDOW_VISITS_WANTED && now - begin < WINDOW_LENGTH_MAX_NS));
	for (uint32_t i = 0; i < controller->points.count; i++) {
		if (!controller->visit_rates[i].wanted)
			control_visit_rate_set(
				&controller->visit_rates[i], now - begin,
				causal_point_get_visit_count(&controller->points, i) - before[i]);
	}
	return true;
}
