/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regions inside this room. The scan of a process (records.c) notes what regions are
 * called and where in the file the records of each thread and the parts of each profile lie. From
 * that regions.c makes the model: out of the process's own profile (profile.c), or out of its
 * events (tree.c), which walk.h decodes.
 */
#ifndef KYMO_ANALYSIS_REGIONS_PRIVATE_H
#define KYMO_ANALYSIS_REGIONS_PRIVATE_H

#include "analysis/id_map.h"
#include "analysis/regions/regions.h"
#include "analysis/session_kind.h"

/* Consecutive region records of one thread: bytes of a chunk, counted from its first record. */
struct thread_region_records_range {
	uint64_t ticks; /* of its beginning */
	uint32_t thread, chunk, from, to;
	size_t left_count; /* left_regions.h: regions left before it */
};

/* Ticks, from the scan; then times. */
struct region_window {
	uint64_t from_ns, to_ns;
};

/* A PROFILE record's payload. */
struct region_profile_part {
	uint32_t thread, tree, first_node;
	uint32_t chunk, from, size;
};

/* One entry of a COMPONENTS record. */
struct region_component_definition {
	struct model_region_component model;
	uint64_t scale;
	uint32_t index; /* in model_regions.components */
};

/* The scan of one process's records, while it goes on. */
struct region_record_scan_state {
	struct session *session;
	struct process_regions_data *regions;
	uint32_t process;
	uint32_t chunk;                       /* being scanned */
	const uint8_t *records;               /* its first record */
	bool in_span, is_thread_filtered_out; /* skipped: a filter leaves this thread out */
	uint64_t events;
	uint64_t ticks; /* of the last event of the span */
	uint64_t last;  /* the latest of all */
	uint64_t *used; /* ids that events name, as bits */
	size_t used_id_bitmap_word_count;
};

/* Region data of one process. */
struct process_regions_data {
	struct id_map ids;           /* region id -> index in model_regions.regions */
	uint32_t *index_by_small_id; /* the same for ids below small_id_count;
				MODEL_ENTRY_INDEX_NONE: there is none */
	size_t small_id_count;
	struct thread_region_records_range *record_ranges;
	struct region_profile_part *parts;
	struct region_component_definition *components;
	size_t record_range_count, record_range_capacity, part_count, part_capacity;
	uint32_t component_count;
	struct region_window *windows; /* in ticks, in their order */
	size_t window_count, window_capacity;
	bool has_windows; /* the process had any */
	bool has_left_regions, knows_left_regions;
	uint8_t *
		left_region_ended; /* left_regions.h: by number, whether it has an end of its own */
	size_t left_region_count, left_region_capacity;
	struct region_record_scan_state scan;
};

struct regions_array_capacities {
	size_t regions, components, nodes, rest;
};

/* What the session keeps. */
struct session_regions_storage {
	struct model_regions model; /* first: session_get_regions() */
	struct regions_array_capacities capacity;
};

static inline struct regions_array_capacities *
regions_get_array_capacities(const struct session *session)
{
	return &((struct session_regions_storage *)session_find_kind_data(session,
									  REGIONS_DATA_KIND_NAME))
			->capacity;
}

static inline struct process_regions_data *process_get_regions(const struct session *session,
							       uint32_t process)
{
	return (struct process_regions_data *)session_find_kind_data_of_processes(
		       session, REGIONS_DATA_KIND_NAME) +
	       process;
}

#define REGION_COMPONENTS_MAX 256

/* For events: after the scan, when all ids that they name are known. */
static inline uint32_t region_find_index_by_id(const struct process_regions_data *regions,
					       uint64_t id)
{
	return id < regions->small_id_count ? regions->index_by_small_id[id]
					    : id_map_get(&regions->ids, id);
}

/* The index of a region of a process; made as "[region N]" ("(more)" for 0) where it was not
 * defined. MODEL_ENTRY_INDEX_NONE: out of memory. */
uint32_t region_find_or_add_by_id(struct session *session, uint32_t process, uint64_t id);
/* Defines a region; the first definition of an id counts. 0 or -ENOMEM. */
int region_define_by_id(struct session *session, uint64_t id, const struct model_region *region);
/* A region that no record names by its id. MODEL_ENTRY_INDEX_NONE: out of memory. */
uint32_t region_add_without_id(struct session *session, const struct model_region *region);
/* A new node with empty statistics; its depth and place among its siblings are filled in by
 * regions.c in the end. MODEL_ENTRY_INDEX_NONE: out of memory. */
uint32_t region_add_node(struct session *session, const struct model_region_node *node);
struct model_component_statistics *region_get_node_statistics(const struct session *session,
							      uint32_t node);
/* Makes a component's statistics of the node's count. */
void region_set_component_to_call_count(struct session *session, uint32_t node, uint32_t component);
/* The component of this name, made if it is new. MODEL_ENTRY_INDEX_NONE: out of memory, or too
 * many. */
uint32_t region_find_or_add_component(struct session *session,
				      const struct model_region_component *component);

/* profile.c: nodes from the parts of a process's profile. */
int region_read_profile_nodes(struct session *session, uint32_t process,
			      uint64_t *ret_left_call_count, struct problem *problem);
/* tree.c: nodes from events. */
struct region_tree_arguments {
	uint32_t process;
	uint32_t wall_clock_component,
		trip_count_component; /* components that the statistics go to */
	bool calls_only;              /* of instrumented functions; regions are known otherwise */
	uint64_t unbalanced_region_count; /* out */
};
int region_build_tree_from_events(struct session *session, struct region_tree_arguments *tree,
				  struct problem *problem);

#endif
