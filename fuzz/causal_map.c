/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Fuzzes causal_map_file_is_valid(): in what it accepts, every search stays inside and ends.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "causal/map_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t find_all(const struct causal_map_header *map)
{
	const uint32_t *starts = (const uint32_t *)(map + 1);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < map->count; i++) {
		for (uint64_t delta = 0; delta < 3; delta++) {
			const uint32_t *id = causal_map_file_find_targets(
				map, map->base + starts[i] + delta - 1);

			for (; *id; id++)
				sum += *id;
		}
	}
	return sum + *causal_map_file_find_targets(map, map->base - 1) +
	       *causal_map_file_find_targets(map, map->end - 1) +
	       *causal_map_file_find_targets(map, map->end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static volatile uint64_t result;
	uint8_t *copy = malloc(size + !size); /* aligned, and no larger than said */

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	if (causal_map_file_is_valid(copy, size))
		result = result + find_all((const void *)copy);
	free(copy);
	return 0;
}
