/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The node hash; see calltree.h. Open addressing with linear probing, at most half full.
 */
#include "analysis/calltree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CALLTREE_LIMIT (1u << 31)

struct calltree_slot {
	uint64_t address;
	uint32_t parent;
	uint32_t node_plus_one; /* 0: free */
};

/* Without the module, which the caller may not know; two at one address are too rare to matter. */
static uint64_t node_hash(uint32_t parent, uint64_t address)
{
	uint64_t hash = address * 0x9e3779b97f4a7c15;

	hash ^= (uint64_t)parent << 32 | parent;
	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93;
	return hash ^ hash >> 32;
}

static void slot_take(struct calltree_slot *slots, size_t count, uint32_t parent, uint64_t address,
		      uint32_t node)
{
	size_t i = node_hash(parent, address) & (count - 1);

	while (slots[i].node_plus_one)
		i = (i + 1) & (count - 1);
	slots[i] = (struct calltree_slot){address, parent, node + 1};
}

static int slots_grow(struct calltree *tree)
{
	size_t count = tree->slot_count ? tree->slot_count * 2 : 4096;
	struct calltree_slot *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t node = 0; node < tree->count; node++)
		slot_take(slots, count, tree->nodes[node].parent, tree->nodes[node].address, node);
	free(tree->slots);
	tree->slots = slots;
	tree->slot_count = count;
	return 0;
}

static int nodes_grow(struct calltree *tree)
{
	uint32_t capacity = tree->capacity ? tree->capacity * 2 : 2048;
	struct calltree_node *nodes;
	struct calltree_sums *sums;

	if (tree->capacity >= CALLTREE_LIMIT)
		return -ENOMEM;
	nodes = realloc(tree->nodes, capacity * sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	tree->nodes = nodes;
	sums = realloc(tree->sums, capacity * sizeof(*sums));
	if (!sums)
		return -ENOMEM;
	tree->sums = sums;
	tree->capacity = capacity;
	return 0;
}

uint32_t calltree_find(const struct calltree *tree, uint32_t parent, uint64_t address,
		       uint32_t module)
{
	size_t mask = tree->slot_count - 1;

	if (tree->slot_count == 0)
		return CALLTREE_NONE;
	for (size_t i = node_hash(parent, address) & mask; tree->slots[i].node_plus_one;
	     i = (i + 1) & mask) {
		const struct calltree_slot *slot = &tree->slots[i];
		uint32_t node = slot->node_plus_one - 1;

		if (slot->address == address && slot->parent == parent &&
		    (module == CALLTREE_ANY_MODULE || tree->nodes[node].module == module))
			return node;
	}
	return CALLTREE_NONE;
}

uint32_t calltree_add(struct calltree *tree, uint32_t parent, uint64_t address, uint32_t module)
{
	uint32_t node = tree->count;

	if ((size_t)tree->count * 2 >= tree->slot_count && slots_grow(tree) < 0)
		return CALLTREE_NONE;
	if (node == tree->capacity && nodes_grow(tree) < 0)
		return CALLTREE_NONE;
	slot_take(tree->slots, tree->slot_count, parent, address, node);
	tree->nodes[node] = (struct calltree_node){address, parent, module};
	memset(&tree->sums[node], 0, sizeof(tree->sums[node]));
	tree->count++;
	return node;
}

uint32_t calltree_child(struct calltree *tree, uint32_t parent, uint64_t address, uint32_t module)
{
	uint32_t node = calltree_find(tree, parent, address, module);

	return node == CALLTREE_NONE ? calltree_add(tree, parent, address, module) : node;
}

void calltree_deinit(struct calltree *tree)
{
	free(tree->nodes);
	free(tree->sums);
	free(tree->slots);
	memset(tree, 0, sizeof(*tree));
}
