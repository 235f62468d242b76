/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See view.h.
 */
#include "output/causal/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal/data.h"
#include "common/array.h"
#include "output/causal/causal.h"

bool causal_view_targets_are_lines(const struct causal_data *data)
{
	return data->run_count && data->runs[0].mode && strcmp(data->runs[0].mode, "line") == 0;
}

static const char *get_base_name_of_path(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void format_target_file_and_line(const struct causal_data_target *target, char *buffer,
					size_t size)
{
	if (target->line)
		snprintf(buffer, size, "%s:%" PRIu32, get_base_name_of_path(target->file),
			 target->line);
	else
		snprintf(buffer, size, "%s", get_base_name_of_path(target->file));
}

void causal_view_format_target_name(const struct causal_data *data, uint32_t id, char *buffer,
				    size_t size)
{
	const struct causal_data_target *target = causal_data_find_target(data, id);

	if (target && target->function && (!causal_view_targets_are_lines(data) || !target->file))
		snprintf(buffer, size, "%s", target->function);
	else if (target && target->file)
		format_target_file_and_line(target, buffer, size);
	else
		snprintf(buffer, size, "target %" PRIu32, id);
}

void causal_view_format_target_location(const struct causal_data *data, uint32_t id, char *buffer,
					size_t size)
{
	const struct causal_data_target *target = causal_data_find_target(data, id);
	bool lines = causal_view_targets_are_lines(data);

	*buffer = 0;
	if (!target || !target->function || !target->file)
		return;
	if (lines)
		snprintf(buffer, size, "%s", target->function);
	else
		format_target_file_and_line(target, buffer, size);
}

static const char *get_point_name(const struct causal_data *data, uint32_t id)
{
	const struct causal_data_progress_point *point = causal_data_find_point(data, id);

	return point && point->name ? point->name : "(unnamed)";
}

void causal_view_format_point_name(const struct causal_data *data, uint32_t point,
				   uint32_t end_point, char *buffer, size_t size)
{
	const char *begin = get_point_name(data, point);

	/* A latency point of one name is a begin and an end of the same name. */
	if (end_point == UINT32_MAX || strcmp(begin, get_point_name(data, end_point)) == 0)
		snprintf(buffer, size, "%s", begin);
	else
		snprintf(buffer, size, "%s to %s", begin, get_point_name(data, end_point));
}

void causal_view_format_baseline_label(const struct causal_data *data, uint32_t id,
				       uint32_t end_point, char *buffer, size_t size)
{
	const struct causal_data_progress_point *point = causal_data_find_point(data, id);
	char name[2 * CAUSAL_NAME_SIZE + 8];

	causal_view_format_point_name(data, id, end_point, name, sizeof(name));
	if (end_point != UINT32_MAX)
		snprintf(buffer, size, "Latency %s: takes", name);
	else if (point && point->origin && strcmp(point->origin, "process") == 0)
		snprintf(buffer, size, "Process %s: takes", name);
	else
		snprintf(buffer, size, "Progress %s: once every", name);
}

size_t causal_view_count_predictions_of_point(const struct causal_fit_result *result, size_t first)
{
	size_t end = first;

	while (end < result->prediction_count &&
	       result->predictions[end].point == result->predictions[first].point &&
	       result->predictions[end].end_point == result->predictions[first].end_point)
		end++;
	return end - first;
}

uint32_t causal_view_get_unshared_warnings(const struct causal_fit_result *result,
					   const struct causal_prediction *prediction)
{
	static const uint32_t shared = CAUSAL_WARN_OUTSIDE_LOAD | CAUSAL_WARN_CPUS_OVERSUBSCRIBED |
				       CAUSAL_WARN_BASELINE_DRIFT;

	return prediction->warning_bits & ~(result->warning_bits & shared);
}

const char *causal_view_get_warning_name(unsigned place, enum causal_warning_bit *ret)
{
	static const char *const names[] = {"no_visits",      "few_visits", "no_samples",
					    "load",           "wide",       "few_windows",
					    "oversubscribed", "drift",      "extra_work"};

	if (place >= ARRAY_SIZE(names))
		return NULL;
	*ret = (enum causal_warning_bit)(1u << place);
	return names[place];
}

bool causal_format_given_up_point(const struct causal_data_progress_point *point, char *buffer,
				  size_t size)
{
	if (!point->was_given_up)
		return false;
	snprintf(buffer, size,
		 "breakpoints can count a line that runs at most 10,000 times a second; progress "
		 "point '%s' runs more often: name another line",
		 point->name ? point->name : "?");
	return true;
}

struct causal_view_target_times *causal_view_sum_target_times(const struct causal_data *data)
{
	struct causal_view_target_times *totals = calloc(data->target_count + 1, sizeof(*totals));

	for (size_t i = 0; totals && i < data->window_count; i++) {
		const struct causal_data_window *window = &data->windows[i];

		for (size_t j = 0; window->end != CAUSAL_WINDOW_CUT_SHORT && j < window->time_count;
		     j++) {
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

struct causal_view_experiment_sums causal_view_sum_experiments(const struct causal_data *data)
{
	struct causal_view_experiment_sums sums = {0};

	for (size_t i = 0; i < data->window_count; i++) {
		if (data->windows[i].end == CAUSAL_WINDOW_CUT_SHORT)
			continue;
		/* The file may say anything. */
		if (__builtin_add_overflow(sums.real_ns, data->windows[i].real_ns, &sums.real_ns))
			sums.real_ns = UINT64_MAX;
		sums.count++;
	}
	return sums;
}
