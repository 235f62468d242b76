/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Open addressing with linear probing, at most half full; see id_map.h.
 */
#include "analysis/id_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct id_map_slot {
	uint64_t key;
	uint32_t value_plus_one; /* 0: free */
};

static struct id_map_slot *find_key_slot(struct id_map_slot *slots, size_t count, uint64_t key)
{
	size_t i = id_map_hash_key(key) & (count - 1);

	while (slots[i].value_plus_one && slots[i].key != key)
		i = (i + 1) & (count - 1);
	return &slots[i];
}

uint32_t id_map_get(const struct id_map *map, uint64_t key)
{
	return map->count ? find_key_slot(map->slots, map->slot_count, key)->value_plus_one - 1
			  : ID_MAP_NONE;
}

static int id_map_grow(struct id_map *map)
{
	size_t count = map->slot_count ? map->slot_count * 2 : 16;
	struct id_map_slot *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < map->slot_count; i++) {
		if (map->slots[i].value_plus_one)
			*find_key_slot(slots, count, map->slots[i].key) = map->slots[i];
	}
	free(map->slots);
	map->slots = slots;
	map->slot_count = count;
	return 0;
}

int id_map_set(struct id_map *map, uint64_t key, uint32_t value)
{
	struct id_map_slot *slot;

	if (map->count * 2 >= map->slot_count && id_map_grow(map) < 0)
		return -ENOMEM;
	slot = find_key_slot(map->slots, map->slot_count, key);
	map->count += slot->value_plus_one == 0;
	*slot = (struct id_map_slot){key, value + 1};
	return 0;
}

void id_map_deinit(struct id_map *map)
{
	free(map->slots);
	memset(map, 0, sizeof(*map));
}
