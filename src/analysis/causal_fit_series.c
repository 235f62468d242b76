/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The windows of each point, in order of time and grouped by what was tried.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/causal_data.h"
#include "analysis/causal_fit.h"

/* Where a point's visits of a window are. */
struct place {
	uint32_t point, end_point;
	const struct causal_data_window *window;
	const struct causal_data_visits *visits;
};

static int by_point(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->point != b->point)
		return a->point < b->point ? -1 : 1;
	if (a->end_point != b->end_point)
		return a->end_point < b->end_point ? -1 : 1;
	if (a->window != b->window) /* of one array: in order of time */
		return a->window < b->window ? -1 : 1;
	return a->visits < b->visits ? -1 : a->visits > b->visits;
}

static bool usable(const struct causal_data_window *window, const struct causal_data_visits *visits)
{
	if (window->end == CAUSAL_ENDED_CUT || visits->visits == 0)
		return false;
	return visits->end_point == UINT32_MAX ? visits->virtual_ns > 0 : visits->area_ns >= 0;
}

static int find_places(const struct causal_data *data, struct place **ret, size_t *ret_count)
{
	size_t count = 0;
	struct place *places;

	for (size_t i = 0; i < data->window_count; i++)
		count += data->windows[i].visit_count;
	places = calloc(count + 1, sizeof(*places));
	if (!places)
		return -ENOMEM;
	count = 0;
	for (size_t i = 0; i < data->window_count; i++) {
		const struct causal_data_window *window = &data->windows[i];

		for (size_t j = 0; j < window->visit_count; j++) {
			const struct causal_data_visits *visits = &window->visits[j];

			if (usable(window, visits))
				places[count++] = (struct place){visits->point, visits->end_point,
								 window, visits};
		}
	}
	qsort(places, count, sizeof(*places), by_point);
	*ret = places;
	*ret_count = count;
	return 0;
}

static struct fit_entry entry_of(const struct causal_data *data, const struct place *place)
{
	const struct causal_data_window *window = place->window;
	bool latency = place->end_point != UINT32_MAX;
	bool baseline = window->target == 0 || window->speedup_permille == 0;

	return (struct fit_entry){
		.time = (double)(latency ? place->visits->area_ns : place->visits->virtual_ns),
		.count = (double)place->visits->visits,
		.visits = (double)place->visits->visits,
		.run = window->run,
		.target = baseline ? 0 : window->target,
		.speedup = baseline ? 0 : window->speedup_permille,
		.window = (uint32_t)(window - data->windows)};
}

/* qsort has no context. */
struct grouped {
	uint32_t target, speedup, index;
};

static int by_group(const void *left, const void *right)
{
	const struct grouped *a = left, *b = right;

	if (a->target != b->target)
		return a->target < b->target ? -1 : 1;
	if (a->speedup != b->speedup)
		return a->speedup < b->speedup ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static void cut_groups(struct fit_series *series, const struct grouped *grouped)
{
	series->groups[0] = (struct fit_group){0};
	series->group_count = 1;
	for (uint32_t i = 0; i < series->count; i++) {
		struct fit_entry *entry = &series->entries[grouped[i].index];
		struct fit_group *group = &series->groups[series->group_count - 1];

		if (group->target != entry->target || group->speedup != entry->speedup) {
			group = &series->groups[series->group_count++];
			*group = (struct fit_group){entry->target, entry->speedup, i, 0, 0};
		}
		group->count++;
		group->visits += entry->visits;
		entry->group = series->group_count - 1;
		series->order[i] = grouped[i].index;
	}
}

int fit_series_group(struct fit_series *series)
{
	struct grouped *grouped = calloc(series->count, sizeof(*grouped));

	free(series->order);
	free(series->groups);
	series->order = calloc(series->count, sizeof(*series->order));
	series->groups = calloc((size_t)series->count + 1, sizeof(*series->groups));
	if (!grouped || !series->order || !series->groups) {
		free(grouped);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < series->count; i++)
		grouped[i] =
			(struct grouped){series->entries[i].target, series->entries[i].speedup, i};
	qsort(grouped, series->count, sizeof(*grouped), by_group);
	cut_groups(series, grouped);
	free(grouped);
	return 0;
}

static int make_one(const struct causal_data *data, const struct place *places, uint32_t count,
		    struct fit_series *series)
{
	const struct causal_data_run *run = causal_data_find_run(data, places->window->run);

	series->point = places->point;
	series->end_point = places->end_point;
	series->process = run && run->end_to_end;
	series->count = count;
	series->entries = calloc(count, sizeof(*series->entries));
	if (!series->entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		series->entries[i] = entry_of(data, &places[i]);
	return fit_series_group(series);
}

int fit_series_make(const struct causal_data *data, struct fit_series_list *ret)
{
	struct fit_series_list list = {0};
	struct place *places;
	size_t count, first = 0;
	int result = find_places(data, &places, &count);

	if (result < 0)
		return result;
	for (size_t i = 0; i < count; i++)
		list.count += i == 0 || places[i].point != places[i - 1].point ||
			      places[i].end_point != places[i - 1].end_point;
	list.series = calloc(list.count + 1, sizeof(*list.series));
	if (!list.series)
		result = -ENOMEM;
	for (size_t i = 0; result == 0 && i < list.count; i++) {
		size_t end = first;

		while (end < count && places[end].point == places[first].point &&
		       places[end].end_point == places[first].end_point)
			end++;
		result = make_one(data, places + first, (uint32_t)(end - first), &list.series[i]);
		first = end;
	}
	free(places);
	if (result < 0)
		fit_series_deinit(&list);
	else
		*ret = list;
	return result;
}

void fit_series_deinit(struct fit_series_list *list)
{
	for (size_t i = 0; list->series && i < list->count; i++) {
		free(list->series[i].entries);
		free(list->series[i].order);
		free(list->series[i].groups);
	}
	free(list->series);
	*list = (struct fit_series_list){0};
}
