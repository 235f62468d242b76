/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The map: entries sorted by address, each with the furthest end of all before it, so that looking
 * back from an address stops where nothing can reach it any more.
 */
#include "binary/jit/jit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "binary/jit/private.h"

#define JIT_FILE_BYTES_MAX ((size_t)1 << 30)
/* Generations of code at one place that a lookup considers; only a hostile map has more. */
#define OVERLAPPING_ENTRIES_TRIED_MAX 65536u

int jitmap_create(struct jitmap **ret)
{
	struct jitmap *map = calloc(1, sizeof(*map));
	if (!map)
		return -ENOMEM;
	*ret = map;
	return 0;
}

void jitmap_destroy(struct jitmap *map)
{
	if (!map)
		return;
	for (size_t i = 0; i < map->buffer_count; i++)
		free(map->buffers[i]);
	free(map->buffers);
	free(map->entries);
	free(map);
}

int jitmap_append_entry(struct jitmap *map, const struct jitmap_entry *entry)
{
	if (map->count == map->capacity) {
		size_t capacity = map->capacity ? map->capacity * 2 : 1024;
		struct jitmap_entry *entries = realloc(map->entries, capacity * sizeof(*entries));
		if (!entries)
			return -ENOMEM;
		map->entries = entries;
		map->capacity = capacity;
	}
	map->entries[map->count] = *entry;
	map->entries[map->count].order = map->count;
	map->count++;
	return 0;
}

/* Takes ownership, also on failure. */
static int append_owned_buffer(struct jitmap *map, uint8_t *bytes)
{
	if (map->buffer_count == map->buffer_capacity) {
		size_t capacity = map->buffer_capacity ? map->buffer_capacity * 2 : 4;
		uint8_t **buffers = realloc(map->buffers, capacity * sizeof(*buffers));
		if (!buffers) {
			free(bytes);
			return -ENOMEM;
		}
		map->buffers = buffers;
		map->buffer_capacity = capacity;
	}
	map->buffers[map->buffer_count++] = bytes;
	return 0;
}

static int copy_bytes(const void *from, size_t size, uint8_t **ret)
{
	uint8_t *bytes = malloc(size + 1);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, from, size);
	bytes[size] = 0;
	*ret = bytes;
	return 0;
}

int jitmap_add_perf_map(struct jitmap *map, const char *path, const struct foreign_open_policy *how)
{
	char *bytes;
	size_t size;
	int error = foreign_read_whole_file(how, path, JIT_FILE_BYTES_MAX, &bytes, &size);
	if (!error)
		error = append_owned_buffer(map, (uint8_t *)bytes);
	return error ? error : jitmap_parse_perf_map(map, (uint8_t *)bytes, size);
}

int jitmap_add_jitdump(struct jitmap *map, const char *path, const struct foreign_open_policy *how)
{
	char *bytes;
	size_t size;
	int error = foreign_read_whole_file(how, path, JIT_FILE_BYTES_MAX, &bytes, &size);
	if (!error)
		error = append_owned_buffer(map, (uint8_t *)bytes);
	return error ? error : jitmap_parse_jitdump(map, (uint8_t *)bytes, size);
}

int jitmap_add_perf_map_memory(struct jitmap *map, const void *text, size_t size)
{
	uint8_t *bytes;
	int error = copy_bytes(text, size, &bytes);
	if (!error)
		error = append_owned_buffer(map, bytes);
	return error ? error : jitmap_parse_perf_map(map, bytes, size);
}

int jitmap_add_jitdump_memory(struct jitmap *map, const void *bytes, size_t size)
{
	uint8_t *copy;
	int error = copy_bytes(bytes, size, &copy);
	if (!error)
		error = append_owned_buffer(map, copy);
	return error ? error : jitmap_parse_jitdump(map, copy, size);
}

static int compare_entry_by_address(const void *left, const void *right)
{
	const struct jitmap_entry *a = left, *b = right;
	if (a->code.address != b->code.address)
		return a->code.address < b->code.address ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

int jitmap_sort_entries(struct jitmap *map)
{
	if (map->count == 0)
		return 0;
	qsort(map->entries, map->count, sizeof(*map->entries), compare_entry_by_address);
	uint64_t reach = 0;
	for (size_t i = 0; i < map->count; i++) {
		uint64_t end = map->entries[i].code.address + map->entries[i].code.size;
		reach = end > reach ? end : reach;
		map->entries[i].highest_end_so_far = reach;
	}
	return 0;
}

/* Is `a` the better answer for that time? With times, entries that began later are nearer; a sample
 * older than all of them belongs to the oldest (clocks are read a moment apart). */
static bool entry_is_better_for_time(const struct jitmap_entry *a, const struct jitmap_entry *b,
				     uint64_t time)
{
	if (time == 0)
		return a->order > b->order;
	bool a_lived = a->code.from_ns <= time, b_lived = b->code.from_ns <= time;
	if (a_lived != b_lived)
		return a_lived;
	if (a->code.from_ns != b->code.from_ns)
		return a_lived ? a->code.from_ns > b->code.from_ns
			       : a->code.from_ns < b->code.from_ns;
	return a->order > b->order;
}

const struct jitmap_code *jitmap_find_code(const struct jitmap *map, uint64_t address,
					   uint64_t time_ns)
{
	size_t low = 0, high = map->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (map->entries[middle].code.address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	const struct jitmap_entry *best = NULL;
	for (unsigned tries = 0; low > 0 && tries < OVERLAPPING_ENTRIES_TRIED_MAX; tries++) {
		const struct jitmap_entry *entry = &map->entries[--low];
		if (entry->highest_end_so_far <= address)
			break;
		if (address - entry->code.address < entry->code.size &&
		    (!best || entry_is_better_for_time(entry, best, time_ns)))
			best = entry;
	}
	return best ? &best->code : NULL;
}

static int compare_jit_code_times(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
	return a < b ? -1 : a > b;
}

int jitmap_list_address_reuse_times(const struct jitmap *map, uint64_t **ret, size_t *ret_count)
{
	uint64_t *times = calloc(map->count + 1, sizeof(*times));
	size_t count = 0, first = 0;
	if (!times)
		return -ENOMEM;
	for (size_t i = 1; i <= map->count; i++) {
		if (i < map->count &&
		    map->entries[i].code.address < map->entries[i - 1].highest_end_so_far)
			continue;
		for (size_t k = first; i - first > 1 && k < i; k++) {
			if (map->entries[k].code.from_ns)
				times[count++] = map->entries[k].code.from_ns;
		}
		first = i;
	}
	if (count > 1)
		qsort(times, count, sizeof(*times), compare_jit_code_times);
	*ret = times;
	*ret_count = count;
	return 0;
}

size_t jitmap_get_entry_count(const struct jitmap *map)
{
	return map->count;
}
