/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A hash from 64-bit keys to 32-bit values, for ids that come from files and may be anything.
 */
#ifndef KYMO_ANALYSIS_ID_MAP_H
#define KYMO_ANALYSIS_ID_MAP_H

#include <stddef.h>
#include <stdint.h>

#define ID_MAP_NONE UINT32_MAX

struct id_map_slot;

struct id_map {
	struct id_map_slot *slots;
	size_t slot_count, count;
};

/* ID_MAP_NONE when there is none. */
uint32_t id_map_get(const struct id_map *map, uint64_t key);
/* Adds or replaces; value must not be ID_MAP_NONE. 0 or -ENOMEM. */
int id_map_set(struct id_map *map, uint64_t key, uint32_t value);
void id_map_deinit(struct id_map *map);

static inline uint64_t id_map_hash_key(uint64_t value)
{
	value ^= value >> 32;
	value *= 0x9e3779b97f4a7c15;
	return value ^ value >> 29;
}

#endif
