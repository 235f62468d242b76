/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The profile of a process that kept none itself, from the events of its trace: a node a call path
 * and thread, with real time and the number of calls. Memory grows with nodes, not with events.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/calls_private.h"
#include "analysis/region_walk.h"

struct builder {
	struct session *session;
	struct id_map children; /* parent and region -> node */
	uint32_t root;          /* that was entered last */
	uint32_t wall;
};

/* Found by a hash, or made. Roots of different threads are different nodes: their parent is the
 * thread, counted from above. Nodes are never that many. */
static uint32_t look_up(struct builder *builder, const struct region_walk *walk, uint32_t parent,
			uint32_t region)
{
	uint32_t above = parent == MODEL_NONE ? UINT32_MAX - walk->event.thread : parent;
	uint64_t key = (uint64_t)above << 32 | region;
	uint32_t node = id_map_get(&builder->children, key);

	if (node != ID_MAP_NONE)
		return node;
	node = region_node_add(builder->session,
			       &(struct model_region_node){.parent = parent,
							   .region = region,
							   .process = walk->event.process,
							   .thread = walk->event.thread,
							   .first_child = MODEL_NONE});
	if (node == MODEL_NONE || id_map_set(&builder->children, key, node) < 0)
		return MODEL_NONE;
	return node;
}

/* The node of a region that begins at this depth. Mostly it is the one that was entered last from
 * there, for which first_child stands until all nodes are linked. */
static inline uint32_t enter(struct builder *builder, const struct region_walk *walk,
			     size_t position, uint32_t region)
{
	const struct model_regions *regions = builder->session->regions;
	uint32_t parent = position ? walk->open[position - 1].node : MODEL_NONE;
	uint32_t node = position ? regions->nodes[parent].first_child : builder->root;

	if (node != MODEL_NONE && regions->nodes[node].region == region &&
	    regions->nodes[node].thread == walk->event.thread)
		return node;
	node = look_up(builder, walk, parent, region);
	if (position)
		regions->nodes[parent].first_child = node;
	else
		builder->root = node;
	return node;
}

static void count_call(struct builder *builder, uint32_t node, uint64_t duration_ns)
{
	struct model_statistics *statistics =
		&region_statistics(builder->session, node)[builder->wall];
	double ns = (double)duration_ns;

	if (builder->session->regions->nodes[node].count++ == 0 || ns < statistics->minimum)
		statistics->minimum = ns;
	if (ns > statistics->maximum)
		statistics->maximum = ns;
	statistics->sum += ns;
	statistics->sum_of_squares += ns * ns;
}

static int visit(struct region_walk *walk, void *context)
{
	struct builder *builder = context;
	struct region_open *open;
	uint32_t node;

	switch (walk->event.kind) {
	case MODEL_REGION_BEGIN:
		open = &walk->open[walk->position];
		open->node = enter(builder, walk, walk->position, open->region);
		return open->node == MODEL_NONE ? -ENOMEM : 0;
	case MODEL_REGION_END:
		open = &walk->open[walk->position];
		if (walk->unfinished)
			builder->session->regions->nodes[open->node].open++;
		else
			count_call(builder, open->node, walk->event.time_ns - open->begin_ns);
		return 0;
	case MODEL_REGION_WHOLE:
		node = enter(builder, walk, walk->depth, walk->event.region);
		if (node == MODEL_NONE)
			return -ENOMEM;
		count_call(builder, node, walk->event.duration_ns);
		return 0;
	default:
		return 0;
	}
}

int region_tree_read(struct session *session, struct region_tree *tree, struct problem *problem)
{
	struct builder builder = {.session = session, .root = MODEL_NONE, .wall = tree->wall};
	struct region_walk walk = {
		.visit = visit, .context = &builder, .calls_only = tree->calls_only};
	uint32_t first = session->regions->node_count;
	int result = region_walk_process(&walk, session, tree->process, problem);

	for (uint32_t i = first; i < session->regions->node_count; i++)
		region_count_calls(session, i, tree->trips);
	tree->unbalanced = walk.unbalanced;
	session->calls->unwound += walk.unwound;
	session->calls->unmatched += walk.unmatched;
	id_map_deinit(&builder.children);
	return result;
}
