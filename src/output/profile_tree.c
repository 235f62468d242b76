/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See profile_tree.h. `rows` first collects the touched nodes, and is then put in order in place.
 */
#include "output/profile_tree.h"

#include <errno.h>
#include <stdlib.h>

int profile_tree_init(struct profile_tree *tree, const struct session *session, bool collapsed)
{
	*tree = (struct profile_tree){0};
	if ((collapsed ? function_tree_build_merged_processes
		       : function_tree_build_per_process)(&tree->functions, session) < 0)
		return -ENOMEM;
	size_t count = (size_t)tree->functions.count + 1;

	tree->sums = calloc(count, sizeof(*tree->sums));
	tree->first_child_of_node = calloc(count, sizeof(*tree->first_child_of_node));
	tree->next_sibling_of_node = calloc(count, sizeof(*tree->next_sibling_of_node));
	tree->rows = calloc(count, sizeof(*tree->rows));
	return tree->sums && tree->first_child_of_node && tree->next_sibling_of_node && tree->rows
		       ? 0
		       : -ENOMEM;
}

void profile_tree_deinit(struct profile_tree *tree)
{
	function_tree_deinit(&tree->functions);
	free(tree->sums);
	free(tree->first_child_of_node);
	free(tree->next_sibling_of_node);
	free(tree->rows);
	*tree = (struct profile_tree){0};
}

static void profile_tree_clear_sums(struct profile_tree *tree)
{
	for (uint32_t i = 0; i < tree->row_count; i++)
		tree->sums[tree->rows[i]] = (struct profile_sums){0};
	tree->row_count = 0;
	tree->total = tree->total_samples = 0;
}

/* Adds to a node and all its callers; the first touch puts a node into `rows`. */
static void profile_tree_add_to_node_and_callers(struct profile_tree *tree, uint32_t node,
						 uint64_t weight, uint64_t samples)
{
	if (weight == 0 && samples == 0)
		return;
	tree->total += weight;
	tree->total_samples += samples;
	tree->sums[node].self += weight;
	tree->sums[node].self_samples += samples;
	for (; node != MODEL_ENTRY_INDEX_NONE; node = tree->functions.nodes[node].parent) {
		struct profile_sums *sums = &tree->sums[node];

		if (sums->inclusive == 0 && sums->inclusive_samples == 0)
			tree->rows[tree->row_count++] = node;
		sums->inclusive += weight;
		sums->inclusive_samples += samples;
	}
}

/* Later processes and lighter nodes first: each is then pushed in front of its siblings. */
static int compare_nodes_by_reverse_row_order(const void *left, const void *right, void *context)
{
	const struct profile_tree *tree = context;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct function_node *x = &tree->functions.nodes[a], *y = &tree->functions.nodes[b];

	if (x->process != y->process)
		return x->process > y->process ? -1 : 1;
	if (tree->sums[a].inclusive != tree->sums[b].inclusive)
		return tree->sums[a].inclusive < tree->sums[b].inclusive ? -1 : 1;
	return a > b ? -1 : a < b;
}

static void sort_rows_depth_first(struct profile_tree *tree)
{
	const struct function_node *nodes = tree->functions.nodes;
	uint32_t root = MODEL_ENTRY_INDEX_NONE, count = tree->row_count, at;

	qsort_r(tree->rows, count, sizeof(*tree->rows), compare_nodes_by_reverse_row_order, tree);
	for (uint32_t i = 0; i < count; i++)
		tree->first_child_of_node[tree->rows[i]] = MODEL_ENTRY_INDEX_NONE;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t node = tree->rows[i], parent = nodes[node].parent;
		uint32_t *list = parent == MODEL_ENTRY_INDEX_NONE
					 ? &root
					 : &tree->first_child_of_node[parent];

		tree->next_sibling_of_node[node] = *list;
		*list = node;
	}
	tree->row_count = 0;
	for (at = root; at != MODEL_ENTRY_INDEX_NONE;) {
		tree->rows[tree->row_count++] = at;
		if (tree->first_child_of_node[at] != MODEL_ENTRY_INDEX_NONE) {
			at = tree->first_child_of_node[at];
			continue;
		}
		while (at != MODEL_ENTRY_INDEX_NONE &&
		       tree->next_sibling_of_node[at] == MODEL_ENTRY_INDEX_NONE)
			at = nodes[at].parent;
		if (at != MODEL_ENTRY_INDEX_NONE)
			at = tree->next_sibling_of_node[at];
	}
}

void profile_tree_fill_sums_of_session(struct profile_tree *tree, const struct session *session,
				       enum view_measure_kind measure)
{
	profile_tree_clear_sums(tree);
	for (uint32_t i = 0; i < session->node_count; i++) {
		const struct model_calltree_node *node = &session->nodes[i];

		profile_tree_add_to_node_and_callers(
			tree, tree->functions.of_node[i],
			view_sum_sources_of_measure(node->self_weight, measure),
			view_sum_sources_of_measure(node->self_samples, measure));
	}
	sort_rows_depth_first(tree);
}

void profile_tree_fill_sums_of_thread(struct profile_tree *tree,
				      const struct view_thread_node_row *entries, size_t count,
				      enum view_measure_kind measure)
{
	profile_tree_clear_sums(tree);
	for (size_t i = 0; i < count; i++)
		profile_tree_add_to_node_and_callers(
			tree, tree->functions.of_node[entries[i].node],
			view_sum_sources_of_measure(entries[i].self_weight, measure),
			view_sum_sources_of_measure(entries[i].self_samples, measure));
	sort_rows_depth_first(tree);
}
