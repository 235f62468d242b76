/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is known of a runtime's object, by its address: a table of fixed size without locks. An
 * object that is gone keeps its place, because runtimes give the same addresses again.
 */
#ifndef KYMO_DEVICE_POINTER_MAP_H
#define KYMO_DEVICE_POINTER_MAP_H

#include <stdbool.h>
#include <stdint.h>

#define POINTER_MAP_SLOT_COUNT 16384u

struct pointer_map {
	struct {
		_Atomic uintptr_t key;
		_Atomic uint64_t value;
	} slots[POINTER_MAP_SLOT_COUNT];
};

/* false: the table is full. */
bool pointer_map_set(struct pointer_map *map, const void *key, uint64_t value);
uint64_t pointer_map_get(struct pointer_map *map, const void *key); /* 0: unknown */
void pointer_map_clear(struct pointer_map *map);                    /* forgets all values */

#endif
