/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 */
#include "device/pointer_map.h"
#include "common/hot.h"

#include <stdatomic.h>

static uint32_t hash_key_to_slot(uintptr_t key)
{
	return (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 40) % POINTER_MAP_SLOT_COUNT;
}

bool pointer_map_set(struct pointer_map *map, const void *key, uint64_t value)
{
	uintptr_t wanted = (uintptr_t)key;
	uint32_t slot = hash_key_to_slot(wanted);

	for (uint32_t i = 0; i < POINTER_MAP_SLOT_COUNT;
	     i++, slot = (slot + 1) % POINTER_MAP_SLOT_COUNT) {
		uintptr_t found = atomic_load_explicit(&map->slots[slot].key, memory_order_acquire);

		if (found == 0 &&
		    atomic_compare_exchange_strong(&map->slots[slot].key, &found, wanted))
			found = wanted;
		if (found == wanted) {
			atomic_store_explicit(&map->slots[slot].value, value, memory_order_release);
			return true;
		}
	}
	return false;
}

KYMO_HOT uint64_t pointer_map_get(struct pointer_map *map, const void *key)
{
	uintptr_t wanted = (uintptr_t)key;
	uint32_t slot = hash_key_to_slot(wanted);

	for (uint32_t i = 0; i < POINTER_MAP_SLOT_COUNT;
	     i++, slot = (slot + 1) % POINTER_MAP_SLOT_COUNT) {
		uintptr_t found = atomic_load_explicit(&map->slots[slot].key, memory_order_acquire);

		if (found == wanted)
			return atomic_load_explicit(&map->slots[slot].value, memory_order_acquire);
		if (found == 0)
			break;
	}
	return 0;
}

void pointer_map_clear(struct pointer_map *map)
{
	for (uint32_t i = 0; i < POINTER_MAP_SLOT_COUNT; i++)
		atomic_store_explicit(&map->slots[i].value, 0, memory_order_relaxed);
}
