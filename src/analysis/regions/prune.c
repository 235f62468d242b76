/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See prune.h. The lightest call paths are those whose calls took the least time so far;
 * a path is never lighter than what it leads to, so what goes are whole branches. Outermost regions
 * and what is open stay.
 */
#include "analysis/regions/prune.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/region_categories.h"

struct tree_pruning_state {
	struct session *session;
	struct region_pruner *pruner;
	struct model_region_node *nodes; /* those of the process, and so are all indexes here */
	struct model_component_statistics *statistics;
	uint32_t count, component_count;
	uint8_t *open;                /* a call of it is, or of what it leads to */
	uint8_t *is_kept;             /* at the threshold that is being looked at */
	double *inner_calls_ns;       /* what the calls inside its calls took */
	uint32_t *dropped_paths_node; /* the node for what goes below this one */
	uint32_t *pruned_index;       /* where it is afterwards */
	uint32_t *first_child, *next_sibling;
	uint32_t *enclosing_nodes_by_region; /* by region: how many of its nodes are around the one
						looked at */
};

static uint32_t get_node_parent(const struct tree_pruning_state *pruning, uint32_t node)
{
	uint32_t parent = pruning->nodes[node].parent;

	return parent == MODEL_ENTRY_INDEX_NONE ? MODEL_ENTRY_INDEX_NONE
						: parent - pruning->pruner->first;
}

static struct model_component_statistics *
get_node_real_time_statistics(const struct tree_pruning_state *pruning, uint32_t node)
{
	return &pruning->statistics[(size_t)node * pruning->component_count +
				    pruning->pruner->wall_clock_component];
}

static bool node_stands_for_dropped_paths(const struct tree_pruning_state *pruning, uint32_t node)
{
	return session_get_regions(pruning->session)
		->regions[pruning->nodes[node].region]
		.stands_for_dropped_paths;
}

/* ---- what goes ---- */

static void mark_open_nodes(struct tree_pruning_state *pruning,
			    const struct region_stack_entry *open, size_t depth)
{
	for (size_t i = 0; i < depth; i++) {
		uint32_t node = open[i].node - pruning->pruner->first;

		for (; node != MODEL_ENTRY_INDEX_NONE && !pruning->open[node];
		     node = get_node_parent(pruning, node))
			pruning->open[node] = 1;
	}
}

/* How many nodes there would be if what took less than this went. */
static uint32_t mark_nodes_above_threshold(struct tree_pruning_state *pruning, double threshold)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < pruning->count; i++) {
		pruning->dropped_paths_node[i] = MODEL_ENTRY_INDEX_NONE;
		if (get_node_parent(pruning, i) != MODEL_ENTRY_INDEX_NONE &&
		    node_stands_for_dropped_paths(pruning, i))
			pruning->dropped_paths_node[get_node_parent(pruning, i)] = i;
	}
	for (uint32_t i = 0; i < pruning->count; i++) {
		uint32_t parent = get_node_parent(pruning, i);

		pruning->is_kept[i] =
			parent == MODEL_ENTRY_INDEX_NONE || pruning->open[i] ||
			(pruning->is_kept[parent] &&
			 (node_stands_for_dropped_paths(pruning, i) ||
			  get_node_real_time_statistics(pruning, i)->sum >= threshold));
		if (!pruning->is_kept[i] && pruning->is_kept[parent] &&
		    pruning->dropped_paths_node[parent] == MODEL_ENTRY_INDEX_NONE) {
			pruning->dropped_paths_node[parent] = i;
			kept++;
		}
		kept += pruning->is_kept[i];
	}
	return kept;
}

static void choose_kept_nodes(struct tree_pruning_state *pruning)
{
	uint32_t most = pruning->pruner->room / 2, kept = UINT32_MAX;

	for (double threshold = 1; kept > most && threshold < 1e19; threshold *= 2)
		kept = mark_nodes_above_threshold(pruning, threshold);
	if (kept > most)
		pruning->pruner->room = kept < UINT32_MAX / 4 ? 2 * kept : kept;
}

/* ---- what is kept of it ---- */

static struct model_region_dropped_sum *find_or_add_dropped_sum(struct tree_pruning_state *pruning,
								uint32_t node)
{
	struct model_regions *regions = session_get_regions(pruning->session);
	const struct model_region_node *from = &pruning->nodes[node];
	uint64_t key = (uint64_t)from->thread << 32 | from->region;
	uint32_t index = id_map_get(&pruning->pruner->rests, key);

	if (index != ID_MAP_NONE)
		return &regions->dropped_sums[index];
	index = regions->dropped_sum_count;
	if (array_reserve_one_more((void **)&regions->dropped_sums,
				   &regions_get_array_capacities(pruning->session)->rest, index,
				   sizeof(*regions->dropped_sums)) < 0 ||
	    id_map_set(&pruning->pruner->rests, key, index) < 0)
		return NULL;
	regions->dropped_sums[index] = (struct model_region_dropped_sum){
		.process = from->process, .thread = from->thread, .region = from->region};
	regions->dropped_sum_count++;
	return &regions->dropped_sums[index];
}

static void merge_statistics(struct model_component_statistics *to, bool first,
			     const struct model_component_statistics *from, bool has_calls)
{
	to->sum += from->sum;
	to->unfinished_sum += from->unfinished_sum;
	if (!has_calls)
		return;
	to->sum_of_squares += from->sum_of_squares;
	if (first || from->minimum < to->minimum)
		to->minimum = from->minimum;
	if (first || from->maximum > to->maximum)
		to->maximum = from->maximum;
}

static int add_node_to_dropped_sum(struct tree_pruning_state *pruning, uint32_t node)
{
	const struct model_region_node *from = &pruning->nodes[node];
	const struct model_component_statistics *wall =
		get_node_real_time_statistics(pruning, node);
	struct model_region_dropped_sum *rest;
	double self;

	if (pruning->is_kept[node] || node_stands_for_dropped_paths(pruning, node))
		return 0;
	rest = find_or_add_dropped_sum(pruning, node);
	if (!rest)
		return -ENOMEM;
	merge_statistics(&rest->calls, rest->count == 0, wall, from->count > 0);
	rest->count += from->count;
	rest->open += from->open;
	if (!pruning->enclosing_nodes_by_region[from->region])
		rest->inclusive += wall->sum;
	self = wall->sum - pruning->inner_calls_ns[node] + from->self_correction;
	if (self > 0)
		rest->self += self;
	return 0;
}

static void link_children(struct tree_pruning_state *pruning)
{
	for (uint32_t i = 0; i < pruning->count; i++)
		pruning->first_child[i] = pruning->next_sibling[i] = MODEL_ENTRY_INDEX_NONE;
	for (uint32_t i = pruning->count; i-- > 0;) {
		uint32_t parent = get_node_parent(pruning, i);

		if (parent == MODEL_ENTRY_INDEX_NONE)
			continue;
		pruning->inner_calls_ns[parent] += get_node_real_time_statistics(pruning, i)->sum;
		pruning->next_sibling[i] = pruning->first_child[parent];
		pruning->first_child[parent] = i;
	}
}

/* Whether the time of a node's calls is in sums of its region. */
static bool node_has_calls_or_is_open(const struct tree_pruning_state *pruning, uint32_t node)
{
	return pruning->nodes[node].count || pruning->open[node];
}

static uint32_t find_next_node_in_preorder(struct tree_pruning_state *pruning, uint32_t node)
{
	if (pruning->first_child[node] != MODEL_ENTRY_INDEX_NONE) {
		pruning->enclosing_nodes_by_region[pruning->nodes[node].region] +=
			node_has_calls_or_is_open(pruning, node);
		return pruning->first_child[node];
	}
	while (pruning->next_sibling[node] == MODEL_ENTRY_INDEX_NONE) {
		node = get_node_parent(pruning, node);
		if (node == MODEL_ENTRY_INDEX_NONE)
			return MODEL_ENTRY_INDEX_NONE;
		pruning->enclosing_nodes_by_region[pruning->nodes[node].region] -=
			node_has_calls_or_is_open(pruning, node);
	}
	return pruning->next_sibling[node];
}

static int add_all_nodes_to_dropped_sums(struct tree_pruning_state *pruning)
{
	int result = 0;

	for (uint32_t i = 0; i < pruning->count; i++) {
		if (get_node_parent(pruning, i) != MODEL_ENTRY_INDEX_NONE)
			continue;
		for (uint32_t at = i; result == 0 && at != MODEL_ENTRY_INDEX_NONE;
		     at = find_next_node_in_preorder(pruning, at))
			result = add_node_to_dropped_sum(pruning, at);
	}
	return result;
}

/* ---- the tree without it ---- */

static uint32_t find_or_add_region_of_dropped_paths(struct tree_pruning_state *pruning)
{
	struct region_pruner *pruner = pruning->pruner;
	struct arena *arena = &session_get_private(pruning->session)->arena;
	struct model_region region = {.process = pruner->process, .stands_for_dropped_paths = true};

	if (pruner->region != MODEL_ENTRY_INDEX_NONE)
		return pruner->region;
	region.name = arena_intern_string(arena, "(more)");
	region.category = arena_intern_string(arena, region_categories[REGION_INSTRUMENTED].name);
	if (region.name && region.category)
		pruner->region = region_add_without_id(pruning->session, &region);
	return pruner->region;
}

/* Branches that go are one node below what they began in. */
static void merge_dropped_branches(struct tree_pruning_state *pruning, uint32_t region)
{
	for (uint32_t i = 0; i < pruning->count; i++) {
		uint32_t parent = get_node_parent(pruning, i), more;

		if (pruning->is_kept[i] || !pruning->is_kept[parent])
			continue;
		more = pruning->dropped_paths_node[parent];
		if (more == i) {
			pruning->nodes[i].region = region;
			continue;
		}
		merge_statistics(get_node_real_time_statistics(pruning, more),
				 pruning->nodes[more].count == 0,
				 get_node_real_time_statistics(pruning, i),
				 pruning->nodes[i].count > 0);
		pruning->nodes[more].count += pruning->nodes[i].count;
		pruning->nodes[more].open += pruning->nodes[i].open;
		pruning->nodes[more].self_correction += pruning->nodes[i].self_correction;
	}
	for (uint32_t i = 0; i < pruning->count; i++) {
		if (pruning->dropped_paths_node[i] != MODEL_ENTRY_INDEX_NONE && pruning->is_kept[i])
			pruning->is_kept[pruning->dropped_paths_node[i]] = 1;
	}
}

static int compact_kept_nodes(struct tree_pruning_state *pruning)
{
	uint32_t first = pruning->pruner->first, count = 0;
	size_t size = pruning->component_count * sizeof(*pruning->statistics);
	int result = 0;

	id_map_deinit(pruning->pruner->children);
	for (uint32_t i = 0; result == 0 && i < pruning->count; i++) {
		struct model_region_node *node = &pruning->nodes[count];
		uint32_t parent = get_node_parent(pruning, i);

		pruning->pruned_index[i] = MODEL_ENTRY_INDEX_NONE;
		if (!pruning->is_kept[i])
			continue;
		pruning->pruned_index[i] = first + count;
		memmove(&pruning->statistics[(size_t)count * pruning->component_count],
			&pruning->statistics[(size_t)i * pruning->component_count], size);
		*node = pruning->nodes[i];
		node->first_child = MODEL_ENTRY_INDEX_NONE;
		if (parent != MODEL_ENTRY_INDEX_NONE)
			node->parent = pruning->pruned_index[parent];
		result = id_map_set(pruning->pruner->children, region_node_to_hash_key(node),
				    first + count++);
	}
	session_get_regions(pruning->session)->node_count = first + count;
	return result;
}

static int prune_tree(struct tree_pruning_state *pruning, struct region_stack_entry *open,
		      size_t depth)
{
	uint32_t region = find_or_add_region_of_dropped_paths(pruning);
	int result;

	if (region == MODEL_ENTRY_INDEX_NONE)
		return -ENOMEM;
	pruning->enclosing_nodes_by_region =
		calloc(session_get_regions(pruning->session)->region_count,
		       sizeof(*pruning->enclosing_nodes_by_region));
	if (!pruning->enclosing_nodes_by_region)
		return -ENOMEM;
	mark_open_nodes(pruning, open, depth);
	choose_kept_nodes(pruning);
	link_children(pruning);
	result = add_all_nodes_to_dropped_sums(pruning);
	if (result < 0)
		return result;
	merge_dropped_branches(pruning, region);
	result = compact_kept_nodes(pruning);
	for (size_t i = 0; result == 0 && i < depth; i++)
		open[i].node = pruning->pruned_index[open[i].node - pruning->pruner->first];
	return result;
}

int region_prune_tree(struct session *session, struct region_pruner *pruner,
		      struct region_stack_entry *open, size_t depth)
{
	struct tree_pruning_state pruning = {
		.session = session,
		.pruner = pruner,
		.nodes = &session_get_regions(session)->nodes[pruner->first],
		.statistics = region_get_node_statistics(session, pruner->first),
		.count = session_get_regions(session)->node_count - pruner->first,
		.component_count = session_get_regions(session)->component_count};
	uint32_t *numbers = calloc((size_t)pruning.count + 1, 4 * sizeof(*numbers));
	int result = -ENOMEM;

	pruning.open = calloc(pruning.count, 2);
	pruning.inner_calls_ns = calloc(pruning.count, sizeof(*pruning.inner_calls_ns));
	if (numbers && pruning.open && pruning.inner_calls_ns) {
		pruning.is_kept = pruning.open + pruning.count;
		pruning.dropped_paths_node = numbers;
		pruning.pruned_index = numbers + pruning.count;
		pruning.first_child = pruning.pruned_index + pruning.count;
		pruning.next_sibling = pruning.first_child + pruning.count;
		result = prune_tree(&pruning, open, depth);
	}
	free(numbers);
	free(pruning.open);
	free(pruning.inner_calls_ns);
	free(pruning.enclosing_nodes_by_region);
	return result;
}
