/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The profile of a process that kept none itself, from the events of its trace: a node a call path
 * and thread, with real time and the number of calls. Memory grows with nodes, not with events, and
 * nodes are no more than PROFILE_MAX_NODES says (prune.h).
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/regions/calls_private.h"
#include "analysis/regions/prune.h"

/* Where nobody says how many (the setting's default), and what a process has in any case. */
#define PROFILE_NODES_DEFAULT    65536u
#define PROCESS_NODE_LIMIT_LEAST 1024u

struct region_tree_builder {
	struct session *session;
	struct model_regions *regions;           /* the session's */
	struct id_map node_by_parent_and_region; /* region_node_to_hash_key() -> node */
	struct region_pruner pruner;
	uint32_t last_entered_root; /* that was entered last */
	uint32_t wall_clock_component;
};

static uint32_t get_node_of_enclosing_open_region(const struct region_event_walk_state *walk,
						  size_t position)
{
	while (position > 0 && walk->open[position - 1].ended)
		position--;
	return position ? walk->open[position - 1].node : MODEL_ENTRY_INDEX_NONE;
}

static int ensure_room_by_pruning(struct region_tree_builder *builder,
				  struct region_event_walk_state *walk, size_t position)
{
	if (builder->regions->node_count - builder->pruner.first < builder->pruner.room)
		return 0;
	builder->last_entered_root = MODEL_ENTRY_INDEX_NONE;
	return region_prune_tree(builder->session, &builder->pruner, walk->open, position);
}

/* Found by a hash, or made. */
static uint32_t find_or_add_node_by_hash(struct region_tree_builder *builder,
					 struct region_event_walk_state *walk, size_t position,
					 uint32_t region)
{
	struct model_region_node node = {.parent =
						 get_node_of_enclosing_open_region(walk, position),
					 .region = region,
					 .process = walk->event.process,
					 .thread = walk->event.thread,
					 .first_child = MODEL_ENTRY_INDEX_NONE};
	uint32_t index =
		id_map_get(&builder->node_by_parent_and_region, region_node_to_hash_key(&node));

	if (index != ID_MAP_NONE)
		return index;
	if (ensure_room_by_pruning(builder, walk, position) < 0)
		return MODEL_ENTRY_INDEX_NONE;
	node.parent = get_node_of_enclosing_open_region(walk, position);
	index = region_add_node(builder->session, &node);
	if (index == MODEL_ENTRY_INDEX_NONE ||
	    id_map_set(&builder->node_by_parent_and_region, region_node_to_hash_key(&node), index) <
		    0)
		return MODEL_ENTRY_INDEX_NONE;
	return index;
}

/* The node of a region that begins at this depth. Mostly it is the one that was entered last from
 * there, for which first_child stands until all nodes are linked. */
static inline uint32_t find_or_add_entered_node(struct region_tree_builder *builder,
						struct region_event_walk_state *walk,
						size_t position, uint32_t region)
{
	const struct model_regions *regions = builder->regions;
	uint32_t parent = get_node_of_enclosing_open_region(walk, position);
	bool is_inner = parent != MODEL_ENTRY_INDEX_NONE;
	uint32_t node = is_inner ? regions->nodes[parent].first_child : builder->last_entered_root;

	if (node != MODEL_ENTRY_INDEX_NONE && regions->nodes[node].region == region &&
	    regions->nodes[node].thread == walk->event.thread)
		return node;
	node = find_or_add_node_by_hash(builder, walk, position, region);
	if (is_inner)
		regions->nodes[get_node_of_enclosing_open_region(walk, position)].first_child =
			node;
	else
		builder->last_entered_root = node;
	return node;
}

static void add_call_to_node_statistics(struct region_tree_builder *builder, uint32_t node,
					uint64_t duration_ns)
{
	struct model_component_statistics *statistics =
		&region_get_node_statistics(builder->session, node)[builder->wall_clock_component];
	double ns = (double)duration_ns;

	if (builder->regions->nodes[node].count++ == 0 || ns < statistics->minimum)
		statistics->minimum = ns;
	if (ns > statistics->maximum)
		statistics->maximum = ns;
	statistics->sum += ns;
	statistics->sum_of_squares += ns * ns;
}

/* ---- overlaps ---- */

/* Time of a region that is inside another one than that it began in: of the tree's sums it is among
 * the children of the latter, and belongs to the former. */
static void move_time_to_enclosing_region(struct region_tree_builder *builder,
					  struct region_event_walk_state *walk, size_t position,
					  uint64_t time_ns)
{
	struct region_stack_entry *entry = &walk->open[position];
	double ns = (double)(time_ns - entry->moved_ns);
	uint32_t began_in, inside;

	if (!entry->moved_ns)
		return;
	began_in = builder->regions->nodes[entry->node].parent;
	inside = get_node_of_enclosing_open_region(walk, position);
	if (began_in != MODEL_ENTRY_INDEX_NONE)
		builder->regions->nodes[began_in].self_correction += ns;
	if (inside != MODEL_ENTRY_INDEX_NONE)
		builder->regions->nodes[inside].self_correction -= ns;
	entry->moved_ns = 0;
}

/* A region ends while others go on in it: the next of them is inside the one around both from here
 * on. */
static void move_inner_region_outwards(struct region_tree_builder *builder,
				       struct region_event_walk_state *walk)
{
	size_t inner = walk->position + 1;
	uint32_t outer;

	while (inner < walk->depth && walk->open[inner].ended)
		inner++;
	if (inner == walk->depth)
		return;
	move_time_to_enclosing_region(builder, walk, inner, walk->event.time_ns);
	outer = get_node_of_enclosing_open_region(walk, walk->position);
	if (builder->regions->nodes[walk->open[inner].node].parent != outer)
		walk->open[inner].moved_ns = walk->event.time_ns;
}

/* ---- calls ---- */

/* A call that has not ended here: its time counts, but it is in no mean and no extreme. */
static void add_unfinished_time_to_node(struct region_tree_builder *builder, uint32_t node,
					uint64_t duration_ns)
{
	struct model_component_statistics *statistics =
		&region_get_node_statistics(builder->session, node)[builder->wall_clock_component];

	statistics->sum += (double)duration_ns;
	statistics->unfinished_sum += (double)duration_ns;
}

static void take_back_unfinished_time(struct region_tree_builder *builder, uint32_t node,
				      uint64_t duration_ns)
{
	struct model_component_statistics *statistics =
		&region_get_node_statistics(builder->session, node)[builder->wall_clock_component];

	statistics->sum -= (double)duration_ns;
	statistics->unfinished_sum -= (double)duration_ns;
}

/* A call that a window cut off is met again in the next one. */
static int add_begin_to_tree(struct region_tree_builder *builder,
			     struct region_event_walk_state *walk)
{
	struct region_stack_entry *open = &walk->open[walk->position];
	uint32_t before = open->node;

	open->node = find_or_add_entered_node(builder, walk, walk->position, open->region);
	if (open->node == MODEL_ENTRY_INDEX_NONE)
		return -ENOMEM;
	if (open->was_cut && open->node == before && builder->regions->nodes[before].open)
		builder->regions->nodes[before].open--;
	else
		open->earlier_ns = 0;
	return 0;
}

static void add_end_to_tree(struct region_tree_builder *builder,
			    struct region_event_walk_state *walk, struct region_stack_entry *open)
{
	uint64_t duration_ns = walk->event.time_ns - open->begin_ns;

	move_time_to_enclosing_region(builder, walk, walk->position, walk->event.time_ns);
	if (!walk->is_ended_by_data_end)
		move_inner_region_outwards(builder, walk);
	if (!open->before && !walk->is_ended_by_data_end) {
		take_back_unfinished_time(builder, open->node, open->earlier_ns);
		add_call_to_node_statistics(builder, open->node, open->earlier_ns + duration_ns);
		return;
	}
	open->earlier_ns += duration_ns;
	/* A call whose entry is elsewhere counts there. */
	if (!open->before)
		builder->regions->nodes[open->node].open++;
	add_unfinished_time_to_node(builder, open->node, duration_ns);
}

static int add_event_to_tree(struct region_event_walk_state *walk, void *context)
{
	struct region_tree_builder *builder = context;
	uint32_t node;

	switch (walk->event.kind) {
	case MODEL_EVENT_REGION_BEGIN:
		return add_begin_to_tree(builder, walk);
	case MODEL_EVENT_REGION_END:
		add_end_to_tree(builder, walk, &walk->open[walk->position]);
		return 0;
	case MODEL_EVENT_REGION_COMPLETE:
		node = find_or_add_entered_node(builder, walk, walk->depth, walk->event.region);
		if (node == MODEL_ENTRY_INDEX_NONE)
			return -ENOMEM;
		add_call_to_node_statistics(builder, node, walk->event.duration_ns);
		return 0;
	default:
		return 0;
	}
}

/* All processes together have no more than 16 times as many nodes, but for a few. */
static uint32_t compute_process_node_limit(const struct session *session)
{
	uint32_t most = session_get_private(session)->options.profile_nodes;
	uint64_t left;

	if (most == 0)
		most = PROFILE_NODES_DEFAULT;
	left = (uint64_t)16 * most;
	left = left > session_get_regions(session)->node_count
		       ? (left - session_get_regions(session)->node_count) / 2
		       : 0;
	if (left >= most)
		return most;
	return left > PROCESS_NODE_LIMIT_LEAST   ? (uint32_t)left
	       : most < PROCESS_NODE_LIMIT_LEAST ? most
						 : PROCESS_NODE_LIMIT_LEAST;
}

int region_build_tree_from_events(struct session *session, struct region_tree_arguments *tree,
				  struct problem *problem)
{
	struct region_tree_builder builder = {.session = session,
					      .regions = session_get_regions(session),
					      .last_entered_root = MODEL_ENTRY_INDEX_NONE,
					      .wall_clock_component = tree->wall_clock_component};
	struct region_event_walk_state walk = {
		.visit = add_event_to_tree, .context = &builder, .calls_only = tree->calls_only};
	uint32_t first = session_get_regions(session)->node_count;
	int result;

	builder.pruner = (struct region_pruner){.children = &builder.node_by_parent_and_region,
						.process = tree->process,
						.wall_clock_component = tree->wall_clock_component,
						.first = first,
						.room = compute_process_node_limit(session),
						.region = MODEL_ENTRY_INDEX_NONE};
	result = region_walk_process_events(&walk, session, tree->process, problem);

	for (uint32_t i = first; i < session_get_regions(session)->node_count; i++)
		region_set_component_to_call_count(session, i, tree->trip_count_component);
	tree->unbalanced_region_count = walk.unbalanced_region_count;
	session_get_calls(session)->unwound += walk.unwound_call_count;
	session_get_calls(session)->unmatched += walk.unmatched_exit_count;
	id_map_deinit(&builder.node_by_parent_and_region);
	id_map_deinit(&builder.pruner.rests);
	return result;
}
