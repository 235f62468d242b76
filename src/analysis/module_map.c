/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sorted instances and binary search; see module_map.h.
 */
#include "analysis/module_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"

/* How many start addresses below the wanted one are tried where mappings overlap. Real ones nest
 * one or two deep; only damaged files come near this. */
#define OVERLAPPING_MAPPING_STARTS_TRIED_MAX 64

int module_map_add_instance(struct module_map *map, const struct module_instance *instance)
{
	if (array_reserve_one_more((void **)&map->instances, &map->capacity, map->count,
				   sizeof(*map->instances)) < 0)
		return -ENOMEM;
	map->instances[map->count++] = *instance;
	return 0;
}

static int compare_instances_by_start(const void *left, const void *right)
{
	const struct module_instance *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->loaded_ns < b->loaded_ns ? -1 : a->loaded_ns > b->loaded_ns;
}

static int compare_times(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

int module_map_sort_instances(struct module_map *map)
{
	uint64_t highest_end = 0;

	if (map->count > 1)
		qsort(map->instances, map->count, sizeof(*map->instances),
		      compare_instances_by_start);
	for (size_t i = 0; i < map->count; i++) {
		map->overlaps |= map->instances[i].start < highest_end;
		if (map->instances[i].end > highest_end)
			highest_end = map->instances[i].end;
	}
	if (!map->overlaps)
		return 0;
	map->times = calloc(map->count * 2, sizeof(*map->times));
	if (!map->times)
		return -ENOMEM;
	for (size_t i = 0; i < map->count; i++) {
		map->times[map->time_count++] = map->instances[i].loaded_ns;
		map->times[map->time_count++] = map->instances[i].unloaded_ns;
	}
	qsort(map->times, map->time_count, sizeof(*map->times), compare_times);
	return 0;
}

int module_map_add_change_times(struct module_map *map, const uint64_t *times, size_t count)
{
	uint64_t *all = realloc(map->times, (map->time_count + count) * sizeof(*all));

	if (!all)
		return -ENOMEM;
	memcpy(all + map->time_count, times, count * sizeof(*all));
	map->times = all;
	map->time_count += count;
	qsort(all, map->time_count, sizeof(*all), compare_times);
	return 0;
}

/* Index of the first instance that sorts after (start, loaded_ns). */
static size_t find_first_instance_sorting_after(const struct module_map *map, uint64_t start,
						uint64_t loaded_ns)
{
	size_t low = 0, high = map->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct module_instance *at = &map->instances[middle];

		if (at->start < start || (at->start == start && at->loaded_ns <= loaded_ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool instance_covers_address(const struct module_instance *instance, uint64_t address)
{
	return address - instance->start < instance->end - instance->start &&
	       instance->end > instance->start;
}

/* Tries one start address after the other downwards, in each the instance loaded last before the
 * time. One that was already unloaded, or that came later, counts only if nothing fits better. */
static size_t find_instance_at_time(const struct module_map *map, uint64_t address,
				    uint64_t time_ns)
{
	size_t next = find_first_instance_sorting_after(map, address, UINT64_MAX),
	       second_best = map->count;

	for (unsigned step = 0; next > 0 && step < OVERLAPPING_MAPPING_STARTS_TRIED_MAX; step++) {
		uint64_t start = map->instances[next - 1].start;
		size_t begin =
			start ? find_first_instance_sorting_after(map, start - 1, UINT64_MAX) : 0;
		size_t loaded = find_first_instance_sorting_after(map, start, time_ns);
		size_t candidate = loaded > begin ? loaded - 1 : begin;
		const struct module_instance *at = &map->instances[candidate];

		if (instance_covers_address(at, address)) {
			if (at->loaded_ns <= time_ns && time_ns < at->unloaded_ns)
				return candidate;
			if (second_best == map->count)
				second_best = candidate;
		}
		next = begin;
	}
	return second_best;
}

uint32_t module_map_find_module(struct module_map *map, uint64_t address, uint64_t time_ns)
{
	size_t found;

	if (map->count == 0)
		return MODULE_MAP_NO_MODULE;
	if (map->overlaps) {
		found = find_instance_at_time(map, address, time_ns);
		return found < map->count ? map->instances[found].module : MODULE_MAP_NO_MODULE;
	}
	if (instance_covers_address(&map->instances[map->last], address))
		return map->instances[map->last].module;
	found = find_first_instance_sorting_after(map, address, UINT64_MAX);
	if (found == 0 || !instance_covers_address(&map->instances[found - 1], address))
		return MODULE_MAP_NO_MODULE;
	map->last = found - 1;
	return map->instances[found - 1].module;
}

bool module_map_move_to_epoch_of_time(struct module_map *map, uint64_t time_ns)
{
	size_t low = 0, high = map->time_count;

	if (map->time_count == 0 || (time_ns >= map->epoch_start_ns && time_ns < map->epoch_end_ns))
		return false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->times[middle] <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	map->epoch_start_ns = low ? map->times[low - 1] : 0;
	map->epoch_end_ns = low < map->time_count ? map->times[low] : UINT64_MAX;
	return true;
}

void module_map_deinit(struct module_map *map)
{
	free(map->instances);
	free(map->times);
	memset(map, 0, sizeof(*map));
}
