/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "output/function_tree.h"

#include <errno.h>
#include <stdlib.h>

/* Open addressing from (parent, process, function) to the merged node; never more than half full,
 * since there are no more merged nodes than nodes. */
struct merge {
	const struct session *session;
	struct function_tree *tree;
	uint32_t *slots; /* node + 1 */
	uint64_t mask;
	bool collapsed;
};

/* The finaliser of splitmix64. */
static uint64_t mix(uint64_t value)
{
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

static uint32_t merged_child(struct merge *merge, uint32_t parent, uint32_t node)
{
	const struct model_frame *frames = merge->session->frames;
	const struct model_node *source = &merge->session->nodes[node];
	uint32_t function = frames[source->frame].function_id;
	uint32_t process = merge->collapsed ? 0 : source->process;
	uint64_t slot = mix(mix((uint64_t)parent << 32 | function) + process) & merge->mask;

	for (; merge->slots[slot] != 0; slot = (slot + 1) & merge->mask) {
		const struct function_node *known = &merge->tree->nodes[merge->slots[slot] - 1];
		if (known->parent == parent && known->process == process &&
		    frames[known->frame].function_id == function)
			return merge->slots[slot] - 1;
	}
	uint32_t index = merge->tree->count++;
	merge->tree->nodes[index] = (struct function_node){
		.parent = parent,
		.process = process,
		.frame = source->frame,
		.depth = parent == MODEL_NONE ? 0 : merge->tree->nodes[parent].depth + 1};
	merge->slots[slot] = index + 1;
	return index;
}

/* The model's nodes are in no promised order: go up to the first merged ancestor, then down again.
 */
static void merge_nodes(struct merge *merge, uint32_t *path)
{
	const struct model_node *nodes = merge->session->nodes;
	uint32_t *of_node = merge->tree->of_node;

	for (uint32_t i = 0; i < merge->session->node_count; i++) {
		uint32_t length = 0, at = i;

		while (at != MODEL_NONE && of_node[at] == MODEL_NONE) {
			path[length++] = at;
			at = nodes[at].parent;
		}
		uint32_t parent = at == MODEL_NONE ? MODEL_NONE : of_node[at];
		while (length-- > 0)
			parent = of_node[path[length]] = merged_child(merge, parent, path[length]);
	}
}

static int tree_init(struct function_tree *tree, const struct session *session, bool collapsed)
{
	size_t count = session->node_count;
	uint64_t capacity = 64;

	while (capacity < (uint64_t)count * 2)
		capacity *= 2;
	struct merge merge = {session, tree, calloc(capacity, sizeof(uint32_t)), capacity - 1,
			      collapsed};
	uint32_t *path = calloc(count + 1, sizeof(*path));

	*tree = (struct function_tree){.nodes = calloc(count + 1, sizeof(*tree->nodes)),
				       .of_node = malloc((count + 1) * sizeof(*tree->of_node))};
	int error = -ENOMEM;
	if (merge.slots != NULL && path != NULL && tree->nodes != NULL && tree->of_node != NULL) {
		for (size_t i = 0; i < count; i++)
			tree->of_node[i] = MODEL_NONE;
		merge_nodes(&merge, path);
		error = 0;
	}
	free(merge.slots);
	free(path);
	return error;
}

int function_tree_init(struct function_tree *tree, const struct session *session)
{
	return tree_init(tree, session, false);
}

int function_tree_init_collapsed(struct function_tree *tree, const struct session *session)
{
	return tree_init(tree, session, true);
}

void function_tree_deinit(struct function_tree *tree)
{
	free(tree->nodes);
	free(tree->of_node);
	*tree = (struct function_tree){0};
}
