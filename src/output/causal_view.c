/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_view.h.
 */
#include "output/causal_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal_data.h"
#include "output/causal.h"

bool causal_view_lines(const struct causal_data *data)
{
	return data->run_count && data->runs[0].mode && strcmp(data->runs[0].mode, "line") == 0;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void print_line(const struct causal_data_target *target, char *buffer, size_t size)
{
	if (target->line)
		snprintf(buffer, size, "%s:%" PRIu32, last_part(target->file), target->line);
	else
		snprintf(buffer, size, "%s", last_part(target->file));
}

void causal_view_target(const struct causal_data *data, uint32_t id, char *buffer, size_t size)
{
	const struct causal_data_target *target = causal_data_find_target(data, id);

	if (target && target->function && (!causal_view_lines(data) || !target->file))
		snprintf(buffer, size, "%s", target->function);
	else if (target && target->file)
		print_line(target, buffer, size);
	else
		snprintf(buffer, size, "target %" PRIu32, id);
}

void causal_view_place(const struct causal_data *data, uint32_t id, char *buffer, size_t size)
{
	const struct causal_data_target *target = causal_data_find_target(data, id);
	bool lines = causal_view_lines(data);

	*buffer = 0;
	if (!target || !target->function || !target->file)
		return;
	if (lines)
		snprintf(buffer, size, "%s", target->function);
	else
		print_line(target, buffer, size);
}

static const char *point_name(const struct causal_data *data, uint32_t id)
{
	const struct causal_data_point *point = causal_data_find_point(data, id);

	return point && point->name ? point->name : "(unnamed)";
}

void causal_view_point(const struct causal_data *data, uint32_t point, uint32_t end_point,
		       char *buffer, size_t size)
{
	const char *begin = point_name(data, point);

	/* A latency point of one name is a begin and an end of the same name. */
	if (end_point == UINT32_MAX || strcmp(begin, point_name(data, end_point)) == 0)
		snprintf(buffer, size, "%s", begin);
	else
		snprintf(buffer, size, "%s to %s", begin, point_name(data, end_point));
}

void causal_view_baseline(const struct causal_data *data, uint32_t id, uint32_t end_point,
			  char *buffer, size_t size)
{
	const struct causal_data_point *point = causal_data_find_point(data, id);
	char name[2 * CAUSAL_NAME_SIZE + 8];

	causal_view_point(data, id, end_point, name, sizeof(name));
	if (end_point != UINT32_MAX)
		snprintf(buffer, size, "Latency %s: takes", name);
	else if (point && point->origin && strcmp(point->origin, "process") == 0)
		snprintf(buffer, size, "Process %s: takes", name);
	else
		snprintf(buffer, size, "Progress %s: once every", name);
}

size_t causal_view_same_point(const struct causal_result *result, size_t first)
{
	size_t end = first;

	while (end < result->prediction_count &&
	       result->predictions[end].point == result->predictions[first].point &&
	       result->predictions[end].end_point == result->predictions[first].end_point)
		end++;
	return end - first;
}

uint32_t causal_view_own_warnings(const struct causal_result *result,
				  const struct causal_prediction *prediction)
{
	static const uint32_t shared =
		CAUSAL_WARN_LOAD | CAUSAL_WARN_OVERSUBSCRIBED | CAUSAL_WARN_DRIFT;

	return prediction->warnings & ~(result->warnings & shared);
}

const char *causal_view_warning(unsigned place, enum causal_warning *ret)
{
	static const char *const names[] = {"no_visits", "few_visits",  "no_samples",     "load",
					    "wide",      "few_windows", "oversubscribed", "drift"};

	if (place >= sizeof(names) / sizeof(*names))
		return NULL;
	*ret = (enum causal_warning)(1u << place);
	return names[place];
}

bool causal_given_up_text(const struct causal_data_point *point, char *buffer, size_t size)
{
	if (!point->given_up)
		return false;
	snprintf(buffer, size,
		 "progress point '%s' is visited too often to be counted by breakpoints (10,000 "
		 "times "
		 "a second): name a rarer place",
		 point->name ? point->name : "?");
	return true;
}

struct causal_view_total *causal_view_totals(const struct causal_data *data)
{
	struct causal_view_total *totals = calloc(data->target_count + 1, sizeof(*totals));

	for (size_t i = 0; totals && i < data->window_count; i++) {
		const struct causal_data_window *window = &data->windows[i];

		for (size_t j = 0; window->end != CAUSAL_ENDED_CUT && j < window->time_count; j++) {
			const struct causal_data_target *target =
				causal_data_find_target(data, window->times[j].target);

			if (!target)
				continue;
			totals[target - data->targets].self_ns += window->times[j].self_ns;
			totals[target - data->targets].total_ns += window->times[j].total_ns;
		}
	}
	return totals;
}
