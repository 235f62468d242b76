/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A map as it stands in memory (kymo/causal.h): looked at once from end to end, and trusted then.
 */
#ifndef KYMO_CAUSAL_MAP_FILE_H
#define KYMO_CAUSAL_MAP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kymo/causal.h"

/* What every address without targets has. */
extern const uint32_t causal_map_file_empty_target_list[1];

/* `image` is aligned to 8 bytes. */
bool causal_map_file_is_valid(const void *image, size_t size);
/* Maps the file read-only; NULL: it is not there, or no map. Raw system calls only. */
const struct causal_map_header *causal_map_file_load(const char *path, size_t *ret_size);

/* Targets of an offset in the module's file. Of a valid map. */
static inline const uint32_t *causal_map_file_find_targets(const struct causal_map_header *map,
							   uint64_t offset)
{
	const uint32_t *starts = (const uint32_t *)(map + 1), *lists = starts + map->count;
	uint32_t at, low = 0, count = map->count;

	if (offset < map->base || offset >= map->end || offset - map->base > UINT32_MAX)
		return causal_map_file_empty_target_list;
	at = (uint32_t)(offset - map->base);
	if (at < starts[0])
		return causal_map_file_empty_target_list;
	/* The last start that is not above: no branch depends on what is compared. */
	while (count > 1) {
		uint32_t half = count / 2;

		low += starts[low + half] <= at ? half : 0;
		count -= half;
	}
	return lists + map->count + lists[low];
}

#endif
