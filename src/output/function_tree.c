/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "output/function_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "common/splitmix64.h"

/* Open addressing from (parent, process, function) to the merged node; never more than half full,
 * since there are no more merged nodes than nodes. */
struct function_tree_merger {
	const struct session *session;
	struct function_tree *tree;
	uint32_t *slots; /* node + 1 */
	uint64_t mask;
	bool is_collapsing_processes, is_by_interpreted_line;
};

/* What is one node: a function, or one line of it. */
static uint64_t get_merge_key(const struct function_tree_merger *merge, uint32_t frame)
{
	const struct model_frame *frames = merge->session->frames;

	return merge->is_by_interpreted_line && frames[frame].kind == FRAME_INTERPRETED
		       ? (uint64_t)1 << 31 | frame
		       : frames[frame].function_id;
}

static uint32_t find_or_add_merged_child(struct function_tree_merger *merge, uint32_t parent,
					 uint32_t node)
{
	const struct model_calltree_node *source = &merge->session->nodes[node];
	uint64_t function = get_merge_key(merge, source->frame);
	uint32_t process = merge->is_collapsing_processes ? 0 : source->process;
	uint64_t slot =
		splitmix64_mix(splitmix64_mix((uint64_t)parent << 32 | function) + process) &
		merge->mask;

	for (; merge->slots[slot] != 0; slot = (slot + 1) & merge->mask) {
		const struct function_node *known = &merge->tree->nodes[merge->slots[slot] - 1];
		if (known->parent == parent && known->process == process &&
		    get_merge_key(merge, known->frame) == function)
			return merge->slots[slot] - 1;
	}
	uint32_t index = merge->tree->count++;
	merge->tree->nodes[index] = (struct function_node){
		.parent = parent,
		.process = process,
		.frame = source->frame,
		.depth = parent == MODEL_ENTRY_INDEX_NONE ? 0
							  : merge->tree->nodes[parent].depth + 1};
	merge->slots[slot] = index + 1;
	return index;
}

/* The model's nodes are in no promised order: go up to the first merged ancestor, then down again.
 */
static void merge_model_nodes(struct function_tree_merger *merge, uint32_t *path)
{
	const struct model_calltree_node *nodes = merge->session->nodes;
	uint32_t *of_node = merge->tree->of_node;

	for (uint32_t i = 0; i < merge->session->node_count; i++) {
		uint32_t length = 0, at = i;

		while (at != MODEL_ENTRY_INDEX_NONE && of_node[at] == MODEL_ENTRY_INDEX_NONE) {
			path[length++] = at;
			at = nodes[at].parent;
		}
		uint32_t parent =
			at == MODEL_ENTRY_INDEX_NONE ? MODEL_ENTRY_INDEX_NONE : of_node[at];
		while (length-- > 0)
			parent = of_node[path[length]] =
				find_or_add_merged_child(merge, parent, path[length]);
	}
}

static int fill_function_tree(struct function_tree *tree, const struct session *session,
			      bool collapsed, bool by_line)
{
	size_t count = session->node_count;
	uint64_t capacity = 64;

	while (capacity < (uint64_t)count * 2)
		capacity *= 2;
	struct function_tree_merger merge = {
		session,      tree,      calloc(capacity, sizeof(uint32_t)),
		capacity - 1, collapsed, by_line};
	uint32_t *path = calloc(count + 1, sizeof(*path));

	*tree = (struct function_tree){.nodes = calloc(count + 1, sizeof(*tree->nodes)),
				       .of_node = malloc((count + 1) * sizeof(*tree->of_node))};
	int error = -ENOMEM;
	if (merge.slots != NULL && path != NULL && tree->nodes != NULL && tree->of_node != NULL) {
		for (size_t i = 0; i < count; i++)
			tree->of_node[i] = MODEL_ENTRY_INDEX_NONE;
		merge_model_nodes(&merge, path);
		error = 0;
	}
	free(merge.slots);
	free(path);
	return error;
}

int function_tree_build_per_process(struct function_tree *tree, const struct session *session)
{
	return fill_function_tree(tree, session, false, false);
}

int function_tree_build_merged_processes(struct function_tree *tree, const struct session *session)
{
	return fill_function_tree(tree, session, true, false);
}

int function_tree_build_per_interpreted_line(struct function_tree *tree,
					     const struct session *session)
{
	return fill_function_tree(tree, session, false, true);
}

void function_tree_deinit(struct function_tree *tree)
{
	free(tree->nodes);
	free(tree->of_node);
	*tree = (struct function_tree){0};
}
