/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See map_file.h.
 */
#include "causal/map_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/syscalls.h"
#include "core/base/file_copy.h"

const uint32_t causal_map_file_empty_target_list[1];

static bool map_header_is_valid(const struct causal_map_header *map, size_t size)
{
	return size >= sizeof(*map) && map->magic == CAUSAL_MAP_MAGIC &&
	       map->version == CAUSAL_MAP_VERSION && map->count && map->id_count &&
	       map->base < map->end &&
	       size == sizeof(*map) + (uint64_t)map->count * 8 + (uint64_t)map->id_count * 4;
}

bool causal_map_file_is_valid(const void *image, size_t size)
{
	const struct causal_map_header *map = image;
	const uint32_t *starts = (const uint32_t *)(map + 1), *lists, *ids;

	if (!map_header_is_valid(map, size))
		return false;
	lists = starts + map->count;
	ids = lists + map->count;
	for (uint32_t i = 0; i < map->count; i++) {
		if (lists[i] >= map->id_count || (i && starts[i] <= starts[i - 1]))
			return false;
	}
	for (uint32_t i = 0; i < map->id_count; i++) {
		if (ids[i] >= CAUSAL_TARGETS)
			return false;
	}
	return !ids[0] && !ids[map->id_count - 1];
}

const struct causal_map_header *causal_map_file_load(const char *path, size_t *ret_size)
{
	long fd = sys_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
	struct stat status;
	void *image;

	if (fd < 0)
		return NULL;
	if (sys_call2(SYS_fstat, fd, (long)&status) || !S_ISREG(status.st_mode) ||
	    status.st_size < (off_t)sizeof(struct causal_map_header)) {
		sys_close((int)fd);
		return NULL;
	}
	image = file_copy_to_memory((int)fd, (size_t)status.st_size);
	sys_close((int)fd);
	if (!image)
		return NULL;
	if (!causal_map_file_is_valid(image, (size_t)status.st_size)) {
		sys_munmap(image, (size_t)status.st_size);
		return NULL;
	}
	*ret_size = (size_t)status.st_size;
	return image;
}
