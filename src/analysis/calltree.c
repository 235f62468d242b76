/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The node hash; see calltree.h. A slot keeps half of its node's hash, so that a probe touches the
 * node itself only when it is almost certainly the right one.
 */
#include "analysis/calltree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CALLTREE_LIMIT (1u << 31)

/* Without the module, which the caller may not know; two at one address are too rare to matter. */
static uint64_t node_hash(uint32_t parent, uint64_t address)
{
	uint64_t hash = address * 0x9e3779b97f4a7c15;

	hash ^= (uint64_t)parent << 32 | parent;
	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93;
	return hash ^ hash >> 32;
}

static uint64_t slot_value(uint64_t hash, uint32_t node)
{
	return (hash & 0xffffffff00000000) | (node + 1);
}

static int slots_grow(struct calltree *tree)
{
	size_t count = tree->slot_count ? tree->slot_count * 2 : 4096;
	uint64_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (uint32_t node = 0; node < tree->count; node++) {
		const struct calltree_node *it = &tree->nodes[node];
		uint64_t hash = node_hash(it->parent, it->address);
		size_t i = hash & (count - 1);

		while (slots[i])
			i = (i + 1) & (count - 1);
		slots[i] = slot_value(hash, node);
	}
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

static bool is_child(const struct calltree_node *node, uint32_t parent, uint64_t address,
		     uint32_t module)
{
	return node->address == address && node->parent == parent &&
	       (node->module == module ||
		(module == CALLTREE_ANY_MODULE &&
		 (node->module < CALLTREE_ANY_MODULE || node->module == CALLTREE_NO_MODULE)));
}

uint32_t calltree_find(struct calltree *tree, uint32_t parent, uint64_t address, uint32_t module)
{
	uint64_t hash;
	size_t mask = tree->slot_count - 1;

	if (parent != CALLTREE_NONE) {
		uint32_t last = tree->nodes[parent].last_child;

		if (is_child(&tree->nodes[last], parent, address, module))
			return last;
	}
	if (tree->slot_count == 0)
		return CALLTREE_NONE;
	hash = node_hash(parent, address);
	for (size_t i = hash & mask; tree->slots[i]; i = (i + 1) & mask) {
		uint32_t node = (uint32_t)tree->slots[i] - 1;

		if ((tree->slots[i] ^ hash) >> 32 ||
		    !is_child(&tree->nodes[node], parent, address, module))
			continue;
		if (parent != CALLTREE_NONE)
			tree->nodes[parent].last_child = node;
		return node;
	}
	return CALLTREE_NONE;
}

uint32_t calltree_add(struct calltree *tree, uint32_t parent, uint64_t address, uint32_t module)
{
	uint64_t hash = node_hash(parent, address);
	uint32_t node = tree->count;
	size_t i;

	if ((size_t)tree->count * 2 >= tree->slot_count && slots_grow(tree) < 0)
		return CALLTREE_NONE;
	if (node == tree->capacity && nodes_grow(tree) < 0)
		return CALLTREE_NONE;
	for (i = hash & (tree->slot_count - 1); tree->slots[i];)
		i = (i + 1) & (tree->slot_count - 1);
	tree->slots[i] = slot_value(hash, node);
	tree->nodes[node] =
		(struct calltree_node){.address = address, .parent = parent, .module = module};
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
