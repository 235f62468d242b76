/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The profile of a process that kept none itself, from the events of its trace: a node a call path
 * and thread, with real time and the number of calls. Memory grows with nodes, not with events, and
 * nodes are no more than PROFILE_MAX_NODES says (region_prune.h).
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/calls_private.h"
#include "analysis/region_prune.h"

/* Where nobody says how many (the setting's default), and what a process has in any case. */
#define PROFILE_NODES 65536u
#define ROOM_MIN      1024u

struct builder {
	struct session *session;
	struct id_map children; /* region_node_key() -> node */
	struct region_pruner pruner;
	uint32_t root; /* that was entered last */
	uint32_t wall;
};

static uint32_t parent_at(const struct region_walk *walk, size_t position)
{
	return position ? walk->open[position - 1].node : MODEL_NONE;
}

static int make_room(struct builder *builder, struct region_walk *walk, size_t position)
{
	if (builder->session->regions->node_count - builder->pruner.first < builder->pruner.room)
		return 0;
	builder->root = MODEL_NONE;
	return region_prune(builder->session, &builder->pruner, walk->open, position);
}

/* Found by a hash, or made. */
static uint32_t look_up(struct builder *builder, struct region_walk *walk, size_t position,
			uint32_t region)
{
	struct model_region_node node = {.parent = parent_at(walk, position),
					 .region = region,
					 .process = walk->event.process,
					 .thread = walk->event.thread,
					 .first_child = MODEL_NONE};
	uint32_t index = id_map_get(&builder->children, region_node_key(&node));

	if (index != ID_MAP_NONE)
		return index;
	if (make_room(builder, walk, position) < 0)
		return MODEL_NONE;
	node.parent = parent_at(walk, position);
	index = region_node_add(builder->session, &node);
	if (index == MODEL_NONE ||
	    id_map_set(&builder->children, region_node_key(&node), index) < 0)
		return MODEL_NONE;
	return index;
}

/* The node of a region that begins at this depth. Mostly it is the one that was entered last from
 * there, for which first_child stands until all nodes are linked. */
static inline uint32_t enter(struct builder *builder, struct region_walk *walk, size_t position,
			     uint32_t region)
{
	const struct model_regions *regions = builder->session->regions;
	uint32_t parent = parent_at(walk, position);
	uint32_t node = position ? regions->nodes[parent].first_child : builder->root;

	if (node != MODEL_NONE && regions->nodes[node].region == region &&
	    regions->nodes[node].thread == walk->event.thread)
		return node;
	node = look_up(builder, walk, position, region);
	if (position)
		regions->nodes[parent_at(walk, position)].first_child = node;
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
		if (open->before) /* it counts where its entry is */
			region_statistics(builder->session, open->node)[builder->wall].sum +=
				(double)(walk->event.time_ns - open->begin_ns);
		else if (walk->unfinished)
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

/* Of all processes together there are no more than 16 times as many nodes, but for a few. */
static uint32_t room_for(const struct session *session)
{
	uint32_t most = session_private(session)->options.profile_nodes;
	uint64_t left;

	if (most == 0)
		most = PROFILE_NODES;
	left = (uint64_t)16 * most;
	left = left > session->regions->node_count ? (left - session->regions->node_count) / 2 : 0;
	if (left >= most)
		return most;
	return left > ROOM_MIN ? (uint32_t)left : most < ROOM_MIN ? most : ROOM_MIN;
}

int region_tree_read(struct session *session, struct region_tree *tree, struct problem *problem)
{
	struct builder builder = {.session = session, .root = MODEL_NONE, .wall = tree->wall};
	struct region_walk walk = {
		.visit = visit, .context = &builder, .calls_only = tree->calls_only};
	uint32_t first = session->regions->node_count;
	int result;

	builder.pruner = (struct region_pruner){.children = &builder.children,
						.process = tree->process,
						.wall = tree->wall,
						.first = first,
						.room = room_for(session),
						.region = MODEL_NONE};
	result = region_walk_process(&walk, session, tree->process, problem);

	for (uint32_t i = first; i < session->regions->node_count; i++)
		region_count_calls(session, i, tree->trips);
	tree->unbalanced = walk.unbalanced;
	session->calls->unwound += walk.unwound;
	session->calls->unmatched += walk.unmatched;
	id_map_deinit(&builder.children);
	id_map_deinit(&builder.pruner.rests);
	return result;
}
