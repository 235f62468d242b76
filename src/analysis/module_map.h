/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which module an address of one process belongs to, at a given time: libraries come and go, and
 * another one may take the same place.
 *
 * An instance is one mapping from its load to its unload. Where no two instances ever overlapped in
 * addresses (nearly always) time does not matter, and an address counts as the module's even a
 * little before its record was written.
 */
#ifndef KYMO_ANALYSIS_MODULE_MAP_H
#define KYMO_ANALYSIS_MODULE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODULE_MAP_NO_MODULE UINT32_MAX

struct module_instance {
	uint64_t start, end;
	uint64_t loaded_ns, unloaded_ns; /* UINT64_MAX: never */
	uint32_t module;                 /* what lookups give */
};

struct module_map {
	struct module_instance *instances;
	size_t count, capacity;
	bool overlaps;   /* time matters */
	size_t last;     /* instance of the last hit */
	uint64_t *times; /* when anything changed, if time matters */
	size_t time_count;
	uint64_t epoch_start_ns, epoch_end_ns; /* of the last module_map_move_to_epoch_of_time() */
};

int module_map_add_instance(struct module_map *map, const struct module_instance *instance);
/* After the last instance, before the first lookup. 0 or -ENOMEM. */
int module_map_sort_instances(struct module_map *map);
/* More times, after module_map_sort_instances(), at which something changes that modules do not
 * know. 0 or -ENOMEM. */
int module_map_add_change_times(struct module_map *map, const uint64_t *times, size_t count);
uint32_t module_map_find_module(struct module_map *map, uint64_t address, uint64_t time_ns);
/* True when a lookup at this time may differ from one at the time of the last call. */
bool module_map_move_to_epoch_of_time(struct module_map *map, uint64_t time_ns);
void module_map_deinit(struct module_map *map);

#endif
