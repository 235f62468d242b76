/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Causal experiments in memory: everything is copied, arrays grow by doubling (capacities follow
 * from counts, so that the structs need none), targets and points are kept in order of their ids
 * and windows in order of time. What has the number of something that is there replaces it: the
 * end of a run completes its beginning.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal/data.h"

/* Room for one more: arrays have the next power of two of their count. */
static int reserve_one_more(void **array, size_t count, size_t size)
{
	void *larger;

	if (count && (count & (count - 1)))
		return 0;
	if (count > SIZE_MAX / 2 / size)
		return -ENOMEM;
	larger = realloc(*array, (count ? 2 * count : 1) * size);
	if (!larger)
		return -ENOMEM;
	*array = larger;
	return 0;
}

/* NULL stays NULL. */
static int duplicate_text(const char *text, char **ret)
{
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

static int copy_array(const void *array, size_t count, size_t size, void **ret)
{
	*ret = NULL;
	if (!count)
		return 0;
	*ret = calloc(count, size);
	if (!*ret)
		return -ENOMEM;
	memcpy(*ret, array, count * size);
	return 0;
}

/* ---- runs ---- */

static void program_run_deinit(struct causal_data_program_run *run)
{
	free(run->command);
	free(run->mode);
}

int causal_data_add_run(struct causal_data *data, const struct causal_data_program_run *run)
{
	struct causal_data_program_run copy = *run;
	size_t place = 0;
	int result = duplicate_text(run->command, &copy.command);

	if (duplicate_text(run->mode, &copy.mode) < 0 || result < 0)
		goto fail;
	while (place < data->run_count && data->runs[place].number != run->number)
		place++;
	if (place < data->run_count) {
		program_run_deinit(&data->runs[place]);
	} else {
		if (reserve_one_more((void **)&data->runs, data->run_count, sizeof(*data->runs)) <
		    0)
			goto fail;
		data->run_count++;
	}
	data->runs[place] = copy;
	return 0;
fail:
	program_run_deinit(&copy);
	return -ENOMEM;
}

const struct causal_data_program_run *causal_data_find_run(const struct causal_data *data,
							   uint32_t number)
{
	for (size_t i = 0; i < data->run_count; i++) {
		if (data->runs[i].number == number)
			return &data->runs[i];
	}
	return NULL;
}

/* ---- targets and points, by id ---- */

/* Targets and points begin with their id. */
static size_t find_index_by_id(const void *array, size_t count, size_t size, uint32_t id)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		uint32_t found;

		memcpy(&found, (const char *)array + middle * size, sizeof(found));
		if (found < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

_Static_assert(offsetof(struct causal_data_target, id) == 0, "see find_index_by_id()");
_Static_assert(offsetof(struct causal_data_progress_point, id) == 0, "see find_index_by_id()");

static void target_deinit(struct causal_data_target *target)
{
	free(target->function);
	free(target->file);
	free(target->module);
}

int causal_data_add_target(struct causal_data *data, const struct causal_data_target *target)
{
	struct causal_data_target copy = *target;
	size_t size = sizeof(copy);
	size_t place = find_index_by_id(data->targets, data->target_count, size, target->id);
	int result = duplicate_text(target->function, &copy.function);

	result |= duplicate_text(target->file, &copy.file);
	result |= duplicate_text(target->module, &copy.module);
	if (result < 0)
		goto fail;
	if (place < data->target_count && data->targets[place].id == target->id) {
		target_deinit(&data->targets[place]);
	} else {
		if (reserve_one_more((void **)&data->targets, data->target_count, size) < 0)
			goto fail;
		memmove(data->targets + place + 1, data->targets + place,
			(data->target_count++ - place) * size);
	}
	data->targets[place] = copy;
	return 0;
fail:
	target_deinit(&copy);
	return -ENOMEM;
}

const struct causal_data_target *causal_data_find_target(const struct causal_data *data,
							 uint32_t id)
{
	size_t place =
		find_index_by_id(data->targets, data->target_count, sizeof(*data->targets), id);

	return place < data->target_count && data->targets[place].id == id ? &data->targets[place]
									   : NULL;
}

static void progress_point_deinit(struct causal_data_progress_point *point)
{
	free(point->name);
	free(point->origin);
}

int causal_data_add_point(struct causal_data *data, const struct causal_data_progress_point *point)
{
	struct causal_data_progress_point copy = *point;
	size_t size = sizeof(copy);
	size_t place = find_index_by_id(data->points, data->point_count, size, point->id);
	int result = duplicate_text(point->name, &copy.name);

	result |= duplicate_text(point->origin, &copy.origin);
	if (result < 0)
		goto fail;
	if (place < data->point_count && data->points[place].id == point->id) {
		progress_point_deinit(&data->points[place]);
	} else {
		if (reserve_one_more((void **)&data->points, data->point_count, size) < 0)
			goto fail;
		memmove(data->points + place + 1, data->points + place,
			(data->point_count++ - place) * size);
	}
	data->points[place] = copy;
	return 0;
fail:
	progress_point_deinit(&copy);
	return -ENOMEM;
}

const struct causal_data_progress_point *causal_data_find_point(const struct causal_data *data,
								uint32_t id)
{
	size_t place = find_index_by_id(data->points, data->point_count, sizeof(*data->points), id);

	return place < data->point_count && data->points[place].id == id ? &data->points[place]
									 : NULL;
}

/* ---- windows ---- */

static void window_deinit(struct causal_data_window *window)
{
	free(window->visits);
	free(window->times);
}

/* Runs follow each other; only within one do clocks tell, since machines are started again. */
static bool window_is_later(const struct causal_data_window *a, const struct causal_data_window *b)
{
	return a->run != b->run ? a->run > b->run : a->start_ns > b->start_ns;
}

int causal_data_add_window(struct causal_data *data, const struct causal_data_window *window)
{
	struct causal_data_window copy = *window;
	size_t place = data->window_count;
	int result = copy_array(window->visits, window->visits_entry_count, sizeof(*window->visits),
				(void **)&copy.visits);

	result |= copy_array(window->times, window->time_count, sizeof(*window->times),
			     (void **)&copy.times);
	if (result < 0 || reserve_one_more((void **)&data->windows, data->window_count,
					   sizeof(*data->windows)) < 0) {
		window_deinit(&copy);
		return -ENOMEM;
	}
	while (place && window_is_later(&data->windows[place - 1], window))
		place--;
	memmove(data->windows + place + 1, data->windows + place,
		(data->window_count++ - place) * sizeof(*data->windows));
	data->windows[place] = copy;
	return 0;
}

void causal_data_deinit(struct causal_data *data)
{
	for (size_t i = 0; i < data->run_count; i++)
		program_run_deinit(&data->runs[i]);
	for (size_t i = 0; i < data->target_count; i++)
		target_deinit(&data->targets[i]);
	for (size_t i = 0; i < data->point_count; i++)
		progress_point_deinit(&data->points[i]);
	for (size_t i = 0; i < data->window_count; i++)
		window_deinit(&data->windows[i]);
	free(data->runs);
	free(data->targets);
	free(data->points);
	free(data->windows);
	*data = (struct causal_data){0};
}
