/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which objects were loaded at the last scan and what was done to them, so that the next one looks
 * at new ones only. Not synchronised.
 */
#ifndef KYMO_WRAPPERS_GOT_OBJECTS_H
#define KYMO_WRAPPERS_GOT_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

struct got_object_record {
	uint64_t base, dynamic_section_address; /* dynamic 0: free */
	uint32_t name_hash;
	uint32_t seen;                     /* last scan that found it */
	uint32_t wrapper_count_when_noted; /* wrappers known when its definitions were noted; 0:
					      never */
	uint32_t done;                   /* generation that its slots were rewritten in; 0: never */
	uint32_t loader_busy_scan_count; /* scans that found the loader at work on it */
	bool start;                      /* loaded at the start, so never unloaded */
};

struct got_object_table {
	struct got_object_record *record; /* hash table */
	uint32_t mask, count;
	struct got_object_record *spare; /* of the same size, for sweeping */
};

/* NULL when there is no memory. Pointers live until the next call. */
struct got_object_record *got_objects_find_or_add_record(struct got_object_table *objects,
							 uint64_t base, uint64_t dynamic,
							 uint32_t name_hash);
struct got_object_record *got_objects_find_record(const struct got_object_table *objects,
						  uint64_t base, uint64_t dynamic,
						  uint32_t name_hash);
/* Drops records that scan `seen` did not find; calls `gone` for each. */
void got_objects_remove_unseen(struct got_object_table *objects, uint32_t seen,
			       void (*gone)(const struct got_object_record *record));

#endif
