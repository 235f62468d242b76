/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The map: entries sorted by address, each with the furthest end of all before it, so that looking
 * back from an address stops where nothing can reach it any more.
 */
#include "binary/jitmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/jitmap_internal.h"

#define FILE_SIZE_MAX ((size_t)1 << 30)
/* Generations of code at one place that a lookup considers; only a hostile map has more. */
#define OVERLAPS_MAX 65536u

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

int jitmap_append(struct jitmap *map, const struct jitmap_entry *entry)
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
static int buffer_keep(struct jitmap *map, uint8_t *bytes)
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

static int read_file(const char *path, uint8_t **ret, size_t *ret_size)
{
	int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat status;
	if (descriptor < 0)
		return -errno;
	int error = fstat(descriptor, &status) ? -errno : 0;
	if (!error && (!S_ISREG(status.st_mode) || (size_t)status.st_size > FILE_SIZE_MAX))
		error = -EINVAL;
	size_t size = error ? 0 : (size_t)status.st_size, done = 0;
	uint8_t *bytes = error ? NULL : malloc(size + 1);
	while (bytes && done < size) {
		ssize_t got = pread(descriptor, bytes + done, size - done, (off_t)done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break; /* truncated meanwhile */
		done += (size_t)got;
	}
	close(descriptor);
	if (!bytes)
		return error ? error : -ENOMEM;
	bytes[done] = 0;
	*ret = bytes;
	*ret_size = done;
	return 0;
}

static int copy_memory(const void *from, size_t size, uint8_t **ret)
{
	uint8_t *bytes = malloc(size + 1);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, from, size);
	bytes[size] = 0;
	*ret = bytes;
	return 0;
}

int jitmap_add_perf_map(struct jitmap *map, const char *path)
{
	uint8_t *bytes;
	size_t size;
	int error = read_file(path, &bytes, &size);
	if (!error)
		error = buffer_keep(map, bytes);
	return error ? error : jitmap_parse_perf_map(map, bytes, size);
}

int jitmap_add_jitdump(struct jitmap *map, const char *path)
{
	uint8_t *bytes;
	size_t size;
	int error = read_file(path, &bytes, &size);
	if (!error)
		error = buffer_keep(map, bytes);
	return error ? error : jitmap_parse_jitdump(map, bytes, size);
}

int jitmap_add_perf_map_memory(struct jitmap *map, const void *text, size_t size)
{
	uint8_t *bytes;
	int error = copy_memory(text, size, &bytes);
	if (!error)
		error = buffer_keep(map, bytes);
	return error ? error : jitmap_parse_perf_map(map, bytes, size);
}

int jitmap_add_jitdump_memory(struct jitmap *map, const void *bytes, size_t size)
{
	uint8_t *copy;
	int error = copy_memory(bytes, size, &copy);
	if (!error)
		error = buffer_keep(map, copy);
	return error ? error : jitmap_parse_jitdump(map, copy, size);
}

static int entry_compare(const void *left, const void *right)
{
	const struct jitmap_entry *a = left, *b = right;
	if (a->code.address != b->code.address)
		return a->code.address < b->code.address ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

int jitmap_finish(struct jitmap *map)
{
	if (map->count == 0)
		return 0;
	qsort(map->entries, map->count, sizeof(*map->entries), entry_compare);
	uint64_t reach = 0;
	for (size_t i = 0; i < map->count; i++) {
		uint64_t end = map->entries[i].code.address + map->entries[i].code.size;
		reach = end > reach ? end : reach;
		map->entries[i].reach = reach;
	}
	return 0;
}

/* Is `a` the better answer for that time? With times, entries that began later are nearer; a sample
 * older than all of them belongs to the oldest (clocks are read a moment apart). */
static bool entry_better(const struct jitmap_entry *a, const struct jitmap_entry *b, uint64_t time)
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

const struct jitmap_code *jitmap_find(const struct jitmap *map, uint64_t address, uint64_t time_ns)
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
	for (unsigned tries = 0; low > 0 && tries < OVERLAPS_MAX; tries++) {
		const struct jitmap_entry *entry = &map->entries[--low];
		if (entry->reach <= address)
			break;
		if (address - entry->code.address < entry->code.size &&
		    (!best || entry_better(entry, best, time_ns)))
			best = entry;
	}
	return best ? &best->code : NULL;
}

static int time_compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
	return a < b ? -1 : a > b;
}

int jitmap_changes(const struct jitmap *map, uint64_t **ret, size_t *ret_count)
{
	uint64_t *times = calloc(map->count + 1, sizeof(*times));
	size_t count = 0, first = 0;
	if (!times)
		return -ENOMEM;
	for (size_t i = 1; i <= map->count; i++) {
		if (i < map->count && map->entries[i].code.address < map->entries[i - 1].reach)
			continue;
		for (size_t k = first; i - first > 1 && k < i; k++) {
			if (map->entries[k].code.from_ns)
				times[count++] = map->entries[k].code.from_ns;
		}
		first = i;
	}
	if (count > 1)
		qsort(times, count, sizeof(*times), time_compare);
	*ret = times;
	*ret_count = count;
	return 0;
}

size_t jitmap_count(const struct jitmap *map)
{
	return map->count;
}
