/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See region_prune.h. The lightest call paths are those whose calls took the least time so far;
 * a path is never lighter than what it leads to, so what goes are whole branches. Outermost regions
 * and what is open stay.
 */
#include "analysis/region_prune.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/region_categories.h"

struct pruning {
	struct session *session;
	struct region_pruner *pruner;
	struct model_region_node *nodes; /* those of the process, and so are all indexes here */
	struct model_statistics *statistics;
	uint32_t count, components;
	uint8_t *open;    /* a call of it is, or of what it leads to */
	uint8_t *kept;    /* at the threshold that is being looked at */
	double *within;   /* what the calls inside its calls took */
	uint32_t *more;   /* the node for what goes below this one */
	uint32_t *places; /* where it is afterwards */
	uint32_t *child, *next;
	uint32_t *around; /* by region: how many of its nodes are around the one looked at */
};

static uint32_t parent_of(const struct pruning *pruning, uint32_t node)
{
	uint32_t parent = pruning->nodes[node].parent;

	return parent == MODEL_NONE ? MODEL_NONE : parent - pruning->pruner->first;
}

static struct model_statistics *wall_of(const struct pruning *pruning, uint32_t node)
{
	return &pruning->statistics[(size_t)node * pruning->components + pruning->pruner->wall];
}

static bool stands_for_more(const struct pruning *pruning, uint32_t node)
{
	return pruning->session->regions->regions[pruning->nodes[node].region].more;
}

/* ---- what goes ---- */

static void mark_open(struct pruning *pruning, const struct region_open *open, size_t depth)
{
	for (size_t i = 0; i < depth; i++) {
		uint32_t node = open[i].node - pruning->pruner->first;

		for (; node != MODEL_NONE && !pruning->open[node]; node = parent_of(pruning, node))
			pruning->open[node] = 1;
	}
}

/* How many nodes there would be if what took less than this went. */
static uint32_t mark_kept(struct pruning *pruning, double threshold)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < pruning->count; i++) {
		pruning->more[i] = MODEL_NONE;
		if (parent_of(pruning, i) != MODEL_NONE && stands_for_more(pruning, i))
			pruning->more[parent_of(pruning, i)] = i;
	}
	for (uint32_t i = 0; i < pruning->count; i++) {
		uint32_t parent = parent_of(pruning, i);

		pruning->kept[i] =
			parent == MODEL_NONE || pruning->open[i] ||
			(pruning->kept[parent] &&
			 (stands_for_more(pruning, i) || wall_of(pruning, i)->sum >= threshold));
		if (!pruning->kept[i] && pruning->kept[parent] &&
		    pruning->more[parent] == MODEL_NONE) {
			pruning->more[parent] = i;
			kept++;
		}
		kept += pruning->kept[i];
	}
	return kept;
}

static void choose(struct pruning *pruning)
{
	uint32_t most = pruning->pruner->room / 2, kept = UINT32_MAX;

	for (double threshold = 1; kept > most && threshold < 1e19; threshold *= 2)
		kept = mark_kept(pruning, threshold);
	if (kept > most)
		pruning->pruner->room = kept < UINT32_MAX / 4 ? 2 * kept : kept;
}

/* ---- what is kept of it ---- */

static struct model_region_rest *rest_of(struct pruning *pruning, uint32_t node)
{
	struct model_regions *regions = pruning->session->regions;
	const struct model_region_node *from = &pruning->nodes[node];
	uint64_t key = (uint64_t)from->thread << 32 | from->region;
	uint32_t index = id_map_get(&pruning->pruner->rests, key);

	if (index != ID_MAP_NONE)
		return &regions->rest[index];
	index = regions->rest_count;
	if (array_reserve((void **)&regions->rest,
			  &session_private(pruning->session)->regions_capacity.rest, index,
			  sizeof(*regions->rest)) < 0 ||
	    id_map_set(&pruning->pruner->rests, key, index) < 0)
		return NULL;
	regions->rest[index] = (struct model_region_rest){
		.process = from->process, .thread = from->thread, .region = from->region};
	regions->rest_count++;
	return &regions->rest[index];
}

static void add(struct model_statistics *to, bool first, const struct model_statistics *from)
{
	if (first || from->minimum < to->minimum)
		to->minimum = from->minimum;
	if (from->maximum > to->maximum)
		to->maximum = from->maximum;
	to->sum += from->sum;
	to->sum_of_squares += from->sum_of_squares;
}

static int add_rest(struct pruning *pruning, uint32_t node)
{
	const struct model_region_node *from = &pruning->nodes[node];
	const struct model_statistics *wall = wall_of(pruning, node);
	struct model_region_rest *rest;

	if (pruning->kept[node] || stands_for_more(pruning, node))
		return 0;
	rest = rest_of(pruning, node);
	if (!rest)
		return -ENOMEM;
	if (from->count)
		add(&rest->calls, rest->count == 0, wall);
	rest->count += from->count;
	rest->open += from->open;
	if (!pruning->around[from->region])
		rest->inclusive += wall->sum;
	if (wall->sum > pruning->within[node])
		rest->self += wall->sum - pruning->within[node];
	return 0;
}

static void link_nodes(struct pruning *pruning)
{
	for (uint32_t i = 0; i < pruning->count; i++)
		pruning->child[i] = pruning->next[i] = MODEL_NONE;
	for (uint32_t i = pruning->count; i-- > 0;) {
		uint32_t parent = parent_of(pruning, i);

		if (parent == MODEL_NONE)
			continue;
		pruning->within[parent] += wall_of(pruning, i)->sum;
		pruning->next[i] = pruning->child[parent];
		pruning->child[parent] = i;
	}
}

/* Whether the time of a node's calls is in sums of its region. */
static bool has_time(const struct pruning *pruning, uint32_t node)
{
	return pruning->nodes[node].count || pruning->open[node];
}

static uint32_t next_node(struct pruning *pruning, uint32_t node)
{
	if (pruning->child[node] != MODEL_NONE) {
		pruning->around[pruning->nodes[node].region] += has_time(pruning, node);
		return pruning->child[node];
	}
	while (pruning->next[node] == MODEL_NONE) {
		node = parent_of(pruning, node);
		if (node == MODEL_NONE)
			return MODEL_NONE;
		pruning->around[pruning->nodes[node].region] -= has_time(pruning, node);
	}
	return pruning->next[node];
}

static int add_rests(struct pruning *pruning)
{
	int result = 0;

	for (uint32_t i = 0; i < pruning->count; i++) {
		if (parent_of(pruning, i) != MODEL_NONE)
			continue;
		for (uint32_t at = i; result == 0 && at != MODEL_NONE; at = next_node(pruning, at))
			result = add_rest(pruning, at);
	}
	return result;
}

/* ---- the tree without it ---- */

static uint32_t region_of_more(struct pruning *pruning)
{
	struct region_pruner *pruner = pruning->pruner;
	struct arena *arena = &session_private(pruning->session)->arena;
	struct model_region region = {.process = pruner->process, .more = true};

	if (pruner->region != MODEL_NONE)
		return pruner->region;
	region.name = arena_intern(arena, "(more)");
	region.category = arena_intern(arena, region_categories[REGION_HOST].name);
	if (region.name && region.category)
		pruner->region = region_add_anonymous(pruning->session, &region);
	return pruner->region;
}

/* Branches that go are one node below what they began in. */
static void merge(struct pruning *pruning, uint32_t region)
{
	for (uint32_t i = 0; i < pruning->count; i++) {
		uint32_t parent = parent_of(pruning, i), more;

		if (pruning->kept[i] || !pruning->kept[parent])
			continue;
		more = pruning->more[parent];
		if (more == i) {
			pruning->nodes[i].region = region;
			continue;
		}
		if (pruning->nodes[i].count)
			add(wall_of(pruning, more), pruning->nodes[more].count == 0,
			    wall_of(pruning, i));
		pruning->nodes[more].count += pruning->nodes[i].count;
		pruning->nodes[more].open += pruning->nodes[i].open;
	}
	for (uint32_t i = 0; i < pruning->count; i++) {
		if (pruning->more[i] != MODEL_NONE && pruning->kept[i])
			pruning->kept[pruning->more[i]] = 1;
	}
}

static int compact(struct pruning *pruning)
{
	uint32_t first = pruning->pruner->first, count = 0;
	size_t size = pruning->components * sizeof(*pruning->statistics);
	int result = 0;

	id_map_deinit(pruning->pruner->children);
	for (uint32_t i = 0; result == 0 && i < pruning->count; i++) {
		struct model_region_node *node = &pruning->nodes[count];
		uint32_t parent = parent_of(pruning, i);

		pruning->places[i] = MODEL_NONE;
		if (!pruning->kept[i])
			continue;
		pruning->places[i] = first + count;
		memmove(&pruning->statistics[(size_t)count * pruning->components],
			&pruning->statistics[(size_t)i * pruning->components], size);
		*node = pruning->nodes[i];
		node->first_child = MODEL_NONE;
		if (parent != MODEL_NONE)
			node->parent = pruning->places[parent];
		result = id_map_set(pruning->pruner->children, region_node_key(node),
				    first + count++);
	}
	pruning->session->regions->node_count = first + count;
	return result;
}

static int prune(struct pruning *pruning, struct region_open *open, size_t depth)
{
	uint32_t region = region_of_more(pruning);
	int result;

	if (region == MODEL_NONE)
		return -ENOMEM;
	pruning->around = calloc(pruning->session->regions->region_count, sizeof(*pruning->around));
	if (!pruning->around)
		return -ENOMEM;
	mark_open(pruning, open, depth);
	choose(pruning);
	link_nodes(pruning);
	result = add_rests(pruning);
	if (result < 0)
		return result;
	merge(pruning, region);
	result = compact(pruning);
	for (size_t i = 0; result == 0 && i < depth; i++)
		open[i].node = pruning->places[open[i].node - pruning->pruner->first];
	return result;
}

int region_prune(struct session *session, struct region_pruner *pruner, struct region_open *open,
		 size_t depth)
{
	struct pruning pruning = {.session = session,
				  .pruner = pruner,
				  .nodes = &session->regions->nodes[pruner->first],
				  .statistics = region_statistics(session, pruner->first),
				  .count = session->regions->node_count - pruner->first,
				  .components = session->regions->component_count};
	uint32_t *numbers = calloc((size_t)pruning.count + 1, 4 * sizeof(*numbers));
	int result = -ENOMEM;

	pruning.open = calloc(pruning.count, 2);
	pruning.within = calloc(pruning.count, sizeof(*pruning.within));
	if (numbers && pruning.open && pruning.within) {
		pruning.kept = pruning.open + pruning.count;
		pruning.more = numbers;
		pruning.places = numbers + pruning.count;
		pruning.child = pruning.places + pruning.count;
		pruning.next = pruning.child + pruning.count;
		result = prune(&pruning, open, depth);
	}
	free(numbers);
	free(pruning.open);
	free(pruning.within);
	free(pruning.around);
	return result;
}
