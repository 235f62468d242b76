/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The calling-context tree with functions instead of source positions: nodes of one process whose
 * frames belong to the same function and whose callers are merged become one. This is what flame
 * graphs and folded stacks show.
 *
 * Parents always stand before their children.
 */
#ifndef KYMO_OUTPUT_FUNCTION_TREE_H
#define KYMO_OUTPUT_FUNCTION_TREE_H

#include "analysis/session.h"

struct function_node {
	uint32_t parent; /* MODEL_ENTRY_INDEX_NONE for roots */
	uint32_t process;
	uint32_t frame; /* a representative one */
	uint32_t depth;
};

struct function_tree {
	struct function_node *nodes;
	uint32_t *of_node; /* by session node: its function node */
	uint32_t count;
};

/* 0 or -ENOMEM. Deinit is needed after either. */
int function_tree_build_per_process(struct function_tree *tree, const struct session *session);
/* The same with the trees of all processes in one, as if all were process 0. */
int function_tree_build_merged_processes(struct function_tree *tree, const struct session *session);
/* The first with a node for each line of interpreted functions. */
int function_tree_build_per_interpreted_line(struct function_tree *tree,
					     const struct session *session);
void function_tree_deinit(struct function_tree *tree);

#endif
