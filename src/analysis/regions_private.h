/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regions inside this room. The scan of a process (scan_regions.h) notes what regions are called
 * and where in the file the records of each thread and the parts of each profile lie. From that
 * regions.c makes the model: out of the process's own profile (region_profile.c), or out of its
 * events (region_tree.c), which region_walk.h decodes.
 */
#ifndef KYMO_ANALYSIS_REGIONS_PRIVATE_H
#define KYMO_ANALYSIS_REGIONS_PRIVATE_H

#include "analysis/id_map.h"
#include "analysis/regions.h"

/* Consecutive region records of one thread: bytes of a chunk, counted from its first record. */
struct region_span {
	uint32_t thread, chunk, from, to;
};

/* A PROFILE record's payload. */
struct region_part {
	uint32_t thread, tree, first_node;
	uint32_t chunk, from, size;
};

/* One entry of a COMPONENTS record. */
struct region_component {
	struct model_component model;
	uint64_t scale;
	uint32_t index; /* in model_regions.components */
};

/* Of one process. */
struct process_regions {
	struct id_map ids;   /* region id -> index in model_regions.regions */
	uint32_t *small_ids; /* the same for ids below small_count; MODEL_NONE: there is none */
	size_t small_count;
	struct region_span *spans;
	struct region_part *parts;
	struct region_component *components;
	size_t span_count, span_capacity, part_count, part_capacity;
	uint32_t component_count;
};

struct regions_capacity {
	size_t regions, components, nodes, rest;
};

#define REGION_COMPONENTS_MAX 256

/* For events: after the scan, when all ids that they name are known. */
static inline uint32_t region_of_id(const struct process_regions *regions, uint64_t id)
{
	return id < regions->small_count ? regions->small_ids[id] : id_map_get(&regions->ids, id);
}

/* The index of a region of a process; made as "[region N]" ("(more)" for 0) where it was not
 * defined. MODEL_NONE: out of memory. */
uint32_t region_index(struct session *session, uint32_t process, uint64_t id);
/* Defines a region; the first definition of an id counts. 0 or -ENOMEM. */
int region_define(struct session *session, uint64_t id, const struct model_region *region);
/* A region that no record names by its id. MODEL_NONE: out of memory. */
uint32_t region_add_anonymous(struct session *session, const struct model_region *region);
/* A new node with empty statistics; its depth and place among its siblings are filled in by
 * regions.c in the end. MODEL_NONE: out of memory. */
uint32_t region_node_add(struct session *session, const struct model_region_node *node);
struct model_statistics *region_statistics(const struct session *session, uint32_t node);
/* Makes a component's statistics of the node's count. */
void region_count_calls(struct session *session, uint32_t node, uint32_t component);
/* The component of this name, made if it is new. MODEL_NONE: out of memory, or too many. */
uint32_t region_component_add(struct session *session, const struct model_component *component);

/* regions.c: after the samples were read. 0 or negative errno. */
int session_read_regions(struct session *session, struct problem *problem);
void process_regions_deinit(struct process_regions *regions);
void session_free_regions(struct session *session);

/* region_profile.c: nodes from the parts of a process's profile. */
int region_profile_read(struct session *session, uint32_t process, struct problem *problem);
/* region_tree.c: nodes from events. */
struct region_tree {
	uint32_t process;
	uint32_t wall, trips; /* components that the statistics go to */
	bool calls_only;      /* of instrumented functions; regions are known otherwise */
	uint64_t unbalanced;  /* out */
};
int region_tree_read(struct session *session, struct region_tree *tree, struct problem *problem);

#endif
