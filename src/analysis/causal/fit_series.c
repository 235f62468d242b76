/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The windows of each point, in order of time and grouped by what was tried.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/causal/data.h"
#include "analysis/causal/fit.h"

/* Where a point's visits of a window are. */
struct point_window_visits {
	uint32_t point_id, end_point_id;
	const struct causal_data_window *window;
	const struct causal_data_window_visits *visits;
};

static int compare_visits_by_point(const void *left, const void *right)
{
	const struct point_window_visits *a = left, *b = right;

	if (a->point_id != b->point_id)
		return a->point_id < b->point_id ? -1 : 1;
	if (a->end_point_id != b->end_point_id)
		return a->end_point_id < b->end_point_id ? -1 : 1;
	if (a->window != b->window) /* of one array: in order of time */
		return a->window < b->window ? -1 : 1;
	return a->visits < b->visits ? -1 : a->visits > b->visits;
}

static bool visits_can_be_fitted(const struct causal_data_window *window,
				 const struct causal_data_window_visits *visits)
{
	if (window->end == CAUSAL_WINDOW_CUT_SHORT || visits->visits == 0)
		return false;
	return visits->end_point == UINT32_MAX ? visits->intervals_virtual_ns > 0
					       : visits->inside_count_integral_ns >= 0;
}

static int collect_point_visits(const struct causal_data *data, struct point_window_visits **ret,
				size_t *ret_count)
{
	size_t count = 0;
	struct point_window_visits *places;

	for (size_t i = 0; i < data->window_count; i++)
		count += data->windows[i].visits_entry_count;
	places = calloc(count + 1, sizeof(*places));
	if (!places)
		return -ENOMEM;
	count = 0;
	for (size_t i = 0; i < data->window_count; i++) {
		const struct causal_data_window *window = &data->windows[i];

		for (size_t j = 0; j < window->visits_entry_count; j++) {
			const struct causal_data_window_visits *visits = &window->visits[j];

			if (visits_can_be_fitted(window, visits))
				places[count++] = (struct point_window_visits){
					visits->point, visits->end_point, window, visits};
		}
	}
	qsort(places, count, sizeof(*places), compare_visits_by_point);
	*ret = places;
	*ret_count = count;
	return 0;
}

static struct series_window make_entry_from_visits(const struct causal_data *data,
						   const struct point_window_visits *place)
{
	const struct causal_data_window *window = place->window;
	bool latency = place->end_point_id != UINT32_MAX;
	bool baseline = window->target == 0 || window->speedup_permille == 0;

	return (struct series_window){
		.time_ns = (double)(latency ? place->visits->inside_count_integral_ns
					    : place->visits->intervals_virtual_ns),
		.count = (double)place->visits->visits,
		.visits = (double)place->visits->visits,
		.run = window->run,
		.target = baseline ? 0 : window->target,
		.speedup_permille = baseline ? 0 : window->speedup_permille,
		.window = (uint32_t)(window - data->windows)};
}

/* qsort has no context. */
struct group_sort_key {
	uint32_t target, speedup_permille, entry_index;
};

static int compare_keys_by_group(const void *left, const void *right)
{
	const struct group_sort_key *a = left, *b = right;

	if (a->target != b->target)
		return a->target < b->target ? -1 : 1;
	if (a->speedup_permille != b->speedup_permille)
		return a->speedup_permille < b->speedup_permille ? -1 : 1;
	return a->entry_index < b->entry_index ? -1 : a->entry_index > b->entry_index;
}

static void divide_series_into_groups(struct point_window_series *series,
				      const struct group_sort_key *grouped)
{
	series->groups[0] = (struct series_window_group){0};
	series->group_count = 1;
	for (uint32_t i = 0; i < series->count; i++) {
		struct series_window *entry = &series->entries[grouped[i].entry_index];
		struct series_window_group *group = &series->groups[series->group_count - 1];

		if (group->target != entry->target ||
		    group->speedup_permille != entry->speedup_permille) {
			group = &series->groups[series->group_count++];
			*group = (struct series_window_group){entry->target,
							      entry->speedup_permille, i, 0, 0};
		}
		group->count++;
		group->visits += entry->visits;
		entry->group = series->group_count - 1;
		series->order[i] = grouped[i].entry_index;
	}
}

int group_windows_of_series(struct point_window_series *series)
{
	struct group_sort_key *grouped = calloc(series->count, sizeof(*grouped));

	free(series->order);
	free(series->groups);
	series->order = calloc(series->count, sizeof(*series->order));
	series->groups = calloc((size_t)series->count + 1, sizeof(*series->groups));
	if (!grouped || !series->order || !series->groups) {
		free(grouped);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < series->count; i++)
		grouped[i] = (struct group_sort_key){series->entries[i].target,
						     series->entries[i].speedup_permille, i};
	qsort(grouped, series->count, sizeof(*grouped), compare_keys_by_group);
	divide_series_into_groups(series, grouped);
	free(grouped);
	return 0;
}

static int make_series_of_point(const struct causal_data *data,
				const struct point_window_visits *places, uint32_t count,
				struct point_window_series *series)
{
	const struct causal_data_program_run *run = causal_data_find_run(data, places->window->run);

	series->point = places->point_id;
	series->end_point = places->end_point_id;
	series->process = run && run->end_to_end;
	series->count = count;
	series->entries = calloc(count, sizeof(*series->entries));
	if (!series->entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		series->entries[i] = make_entry_from_visits(data, &places[i]);
	return group_windows_of_series(series);
}

int fit_make_series_of_points(const struct causal_data *data, struct window_series_list *ret)
{
	struct window_series_list list = {0};
	struct point_window_visits *places;
	size_t count, first = 0;
	int result = collect_point_visits(data, &places, &count);

	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		list.count += i == 0 || places[i].point_id != places[i - 1].point_id ||
			      places[i].end_point_id != places[i - 1].end_point_id;
	list.series = calloc(list.count + 1, sizeof(*list.series));
	if (!list.series)
		result = -ENOMEM;
	for (size_t i = 0; result == 0 && i < list.count; i++) {
		size_t end = first;

		while (end < count && places[end].point_id == places[first].point_id &&
		       places[end].end_point_id == places[first].end_point_id)
			end++;
		result = make_series_of_point(data, places + first, (uint32_t)(end - first),
					      &list.series[i]);
		first = end;
	}
	free(places);
	if (result < 0)
		window_series_list_deinit(&list);
	else
		*ret = list;
	return result;
}

void window_series_list_deinit(struct window_series_list *list)
{
	for (size_t i = 0; list->series && i < list->count; i++) {
		free(list->series[i].entries);
		free(list->series[i].order);
		free(list->series[i].groups);
	}
	free(list->series);
	*list = (struct window_series_list){0};
}
