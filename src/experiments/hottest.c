/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where the program spent its time, for advice.
 */
#include "experiments/control_private.h"

/* With more of the time, a function is the program. */
#define HOTTEST_TIME_SHARE_MAX   0.95
#define HOTTEST_TIME_SHARE_LEAST 0.05

static bool contains_id(const uint32_t *ids, size_t count, uint32_t id)
{
	for (size_t i = 0; i < count; i++) {
		if (ids[i] == id)
			return true;
	}
	return false;
}

size_t causal_control_find_hottest_targets(struct causal_controller *controller, uint32_t *ret,
					   size_t maximum)
{
	double all = 0;
	size_t count = 0;

	control_read_target_times(controller);
	for (size_t i = 0; i < controller->target_time_count; i++)
		all += (double)controller->target_times[i].self_ns;
	for (; count < maximum; count++) {
		double most = HOTTEST_TIME_SHARE_LEAST * all;
		uint32_t best = 0;

		for (size_t i = 0; i < controller->target_time_count; i++) {
			double total = (double)controller->target_times[i].total_ns;

			if (total <= most || total > HOTTEST_TIME_SHARE_MAX * all ||
			    contains_id(ret, count, controller->target_times[i].target))
				continue;
			most = total;
			best = controller->target_times[i].target;
		}
		if (!best)
			break;
		ret[count] = best;
	}
	return count;
}
