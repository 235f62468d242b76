/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which progress point windows are cut by, and how often points are visited.
 */
#include "cmd/causal_control_private.h"

#define WINDOW_FEWEST 2 /* of a point that is visited so rarely that more would take too long */
/* A point that is visited so often can be any window's measure. */
#define WINDOW_OFTEN (100 * MILLISECOND)

/* ---- which point ---- */

static bool window_is_own(const struct causal_known_point *point)
{
	return point->origin != CAUSAL_ORIGIN_AUTOMATIC;
}

/* Nobody counts its visits any more. */
bool control_point_is_lost(const struct causal_controller *controller, uint32_t index)
{
	return controller->points.list[index].origin == CAUSAL_ORIGIN_NAMED &&
	       causal_points_given_up(&controller->points, index);
}

/* A point that can end windows: progress, or the end of what begins. */
static bool window_is_candidate(const struct causal_controller *controller, uint32_t index,
				bool own)
{
	const struct causal_known_point *point = &controller->points.list[index];

	return point->known && point->kind != CAUSAL_POINT_BEGIN && window_is_own(point) == own &&
	       !control_point_is_lost(controller, index) &&
	       causal_points_visits(&controller->points, index) > controller->start_visits[index];
}

/* Candidates that are visited often take turns; else it is the one that is visited most, of those
 * that are known to be visited still. */
static uint32_t window_choose(const struct causal_controller *controller, bool own)
{
	uint32_t often[CAUSAL_POINTS], best = CAUSAL_NO_POINT;
	size_t often_count = 0;
	uint64_t most = 0;
	bool paced = false;

	for (uint32_t i = 0; i < controller->points.count; i++) {
		const struct control_pace *pace = &controller->paces[i];
		uint64_t visits;

		if (!window_is_candidate(controller, i, own))
			continue;
		visits = causal_points_visits(&controller->points, i) - controller->start_visits[i];
		if ((pace->wanted && !paced) || (!pace->wanted == !paced && visits > most)) {
			paced = pace->wanted > 0;
			most = visits;
			best = i;
		}
		if (pace->wanted && pace->period_ns <= WINDOW_OFTEN)
			often[often_count++] = i;
	}
	return often_count ? often[controller->windows % often_count] : best;
}

uint32_t control_choose_point(struct causal_controller *controller, bool own_only)
{
	uint32_t point;

	causal_points_refresh(&controller->points);
	point = window_choose(controller, true);
	return point == CAUSAL_NO_POINT && !own_only ? window_choose(controller, false) : point;
}

/* ---- how often points are visited ---- */

void control_pace_set(struct control_pace *pace, uint64_t real_ns, uint64_t visits)
{
	if (!visits)
		return;
	pace->period_ns = real_ns / visits;
	pace->period_ns += !pace->period_ns;
	pace->wanted = WINDOW_LENGTH / pace->period_ns;
	if (pace->wanted < WINDOW_VISITS)
		pace->wanted =
			control_clamp(WINDOW_LIMIT / pace->period_ns, WINDOW_FEWEST, WINDOW_VISITS);
}

/* The program becomes faster or slower, or others held it up when it was paced, which only makes it
 * slower: what is quicker is believed sooner. Windows keep their number of visits as long as they
 * are about as long as they should be. */
void control_pace_follow(struct control_pace *pace, uint64_t period_ns)
{
	struct control_pace fresh = *pace;

	if (period_ns < pace->period_ns)
		pace->period_ns = (pace->period_ns + period_ns) / 2 + 1;
	else
		pace->period_ns = (pace->period_ns * 7 + period_ns) / 8;
	control_pace_set(&fresh, pace->period_ns, 1);
	if (fresh.wanted > 2 * pace->wanted || fresh.wanted < pace->wanted / 2)
		pace->wanted = fresh.wanted;
}

/* Visits of the point that has most. */
static uint64_t pace_most(const struct causal_controller *controller, const uint64_t *before)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < controller->points.count; i++) {
		uint64_t visits = causal_points_visits(&controller->points, i) - before[i];

		most = visits > most ? visits : most;
	}
	return most;
}

bool control_pace_points(struct causal_controller *controller)
{
	uint64_t before[CAUSAL_POINTS], begin = causal_clock_ns(), now, most;

	for (uint32_t i = 0; i < controller->points.count; i++)
		before[i] = causal_points_visits(&controller->points, i);
	do {
		if (!control_sleep(controller, WINDOW_LENGTH))
			return false;
		now = causal_clock_ns();
		most = pace_most(controller, before);
	} while (most < 2 || (most < WINDOW_VISITS && now - begin < WINDOW_LIMIT));
	for (uint32_t i = 0; i < controller->points.count; i++) {
		if (!controller->paces[i].wanted)
			control_pace_set(&controller->paces[i], now - begin,
					 causal_points_visits(&controller->points, i) - before[i]);
	}
	return true;
}
