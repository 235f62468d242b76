/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Keeps the tree that is made of events small: whenever there are too many nodes, the lightest call
 * paths become one node "(more)" below what they began in, until half of the nodes are left. What
 * their calls took stays known by region (model_regions.rest), so sums by region stay exact; a path
 * that was forgotten and comes again is counted from then on.
 */
#ifndef KYMO_ANALYSIS_REGIONS_PRUNE_H
#define KYMO_ANALYSIS_REGIONS_PRUNE_H

#include "analysis/regions/walk.h"

/* The pruner of one process's tree. */
struct region_pruner {
	struct id_map *children; /* key of a node -> the node */
	struct id_map rests;     /* thread and region -> model_regions.rest */
	uint32_t process;
	uint32_t wall_clock_component; /* the component that is real time */
	uint32_t first;                /* node of the process */
	uint32_t room;   /* nodes that it may have; more only where that many are open */
	uint32_t region; /* "(more)", or MODEL_ENTRY_INDEX_NONE until it is needed */
};

/* Roots of different threads are different nodes: their parent is the thread, counted from above.
 * Nodes are never that many. */
static inline uint64_t region_node_to_hash_key(const struct model_region_node *node)
{
	uint32_t above =
		node->parent == MODEL_ENTRY_INDEX_NONE ? UINT32_MAX - node->thread : node->parent;

	return (uint64_t)above << 32 | node->region;
}

/* Regions in `open` are known to have nodes, which may have others afterwards. 0 or -ENOMEM. */
int region_prune_tree(struct session *session, struct region_pruner *pruner,
		      struct region_stack_entry *open, size_t depth);

#endif
