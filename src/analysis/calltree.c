/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The node hash; see calltree.h.
 */
#include "analysis/calltree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CALLTREE_NODES_MAX (1u << 31)

static void insert_node_into_slots(struct calltree_node_slot *slots, size_t count, uint64_t hash,
				   uint32_t node)
{
	size_t i = hash & (count - 1);

	while (slots[i].node_index_plus_one)
		i = (i + 1) & (count - 1);
	slots[i] = (struct calltree_node_slot){hash, node + 1};
}

static int grow_slot_table(struct calltree *tree)
{
	size_t count = tree->slot_count ? tree->slot_count * 2 : 4096;
	struct calltree_node_slot *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t node = 0; node < tree->count; node++)
		insert_node_into_slots(slots, count, tree->nodes[node].hash, node);
	free(tree->slots);
	tree->slots = slots;
	tree->slot_count = count;
	return 0;
}

static int grow_node_arrays(struct calltree *tree)
{
	uint32_t capacity = tree->capacity ? tree->capacity * 2 : 2048;
	struct calltree_node *nodes;

	if (tree->capacity >= CALLTREE_NODES_MAX)
		return -ENOMEM;
	nodes = realloc(tree->nodes, capacity * sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	tree->nodes = nodes;
	for (unsigned source = 0; source < MODEL_SOURCE_COUNT; source++) {
		struct calltree_node_self_sums *sums =
			realloc(tree->sums[source], capacity * sizeof(*sums));

		if (!sums)
			return -ENOMEM;
		tree->sums[source] = sums;
	}
	tree->capacity = capacity;
	return 0;
}

uint32_t calltree_add_node(struct calltree *tree, const struct calltree_node *node)
{
	uint32_t index = tree->count;

	if ((size_t)tree->count * 2 >= tree->slot_count && grow_slot_table(tree) < 0)
		return CALLTREE_NO_NODE;
	if (index == tree->capacity && grow_node_arrays(tree) < 0)
		return CALLTREE_NO_NODE;
	insert_node_into_slots(tree->slots, tree->slot_count, node->hash, index);
	tree->nodes[index] = *node;
	for (unsigned source = 0; source < MODEL_SOURCE_COUNT; source++)
		tree->sums[source][index] = (struct calltree_node_self_sums){0, 0};
	tree->count++;
	return index;
}

uint32_t calltree_find_or_add_child(struct calltree *tree, uint32_t parent, uint64_t address,
				    uint32_t module)
{
	/* Not 0, which is the hash of step 0 from 0: its children would pass for roots. */
	uint64_t outer = parent == CALLTREE_NO_NODE ? 1 : tree->nodes[parent].hash;
	struct calltree_node node = {.address = address,
				     .hash = calltree_hash_path_step(outer, address, module),
				     .parent = parent,
				     .module = module};
	uint32_t index = calltree_find_by_path_hash(tree, node.hash);

	return index == CALLTREE_NO_NODE ? calltree_add_node(tree, &node) : index;
}

void calltree_free_sums(struct calltree *tree)
{
	for (unsigned source = 0; source < MODEL_SOURCE_COUNT; source++) {
		free(tree->sums[source]);
		tree->sums[source] = NULL;
	}
}

void calltree_deinit(struct calltree *tree)
{
	calltree_free_sums(tree);
	free(tree->nodes);
	free(tree->slots);
	memset(tree, 0, sizeof(*tree));
}
