/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "output/web/html_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct function_tree_reducer {
	const struct function_tree *functions;
	struct html_tree *tree;
	uint64_t *inclusive_importance; /* importance, by function node */
	uint32_t *place; /* by function node: its node in the page, MODEL_ENTRY_INDEX_NONE if left
			    out */
	uint32_t *rest;  /* by node of the page: the node for its small branches, or 0 */
};

static void add_node_sums_to_thread_row(struct flamegraph_thread_row *row,
					const struct view_thread_node_row *source)
{
	for (int measure = 0; measure < FLAMEGRAPH_MEASURE_COUNT; measure++) {
		row->values[2 * measure] += view_sum_sources_of_measure(
			source->self_weight, (enum view_measure_kind)measure);
		row->values[2 * measure + 1] += view_sum_sources_of_measure(
			source->self_samples, (enum view_measure_kind)measure);
	}
	for (int source_index = 0; source_index < SPOOL_SOURCE_COUNT; source_index++)
		row->values[FLAMEGRAPH_COLUMN_SAMPLES] += source->self_samples[source_index];
}

/* What a row counts for when branches are compared: its samples, and something for time that no
 * sample stands for. */
static uint64_t compute_row_importance(const struct view_thread_node_row *row)
{
	uint64_t samples = 0, weight = 0;

	for (int source = 0; source < MODEL_SOURCE_COUNT; source++) {
		samples += row->self_samples[source];
		weight += row->self_weight[source];
	}
	return samples != 0 || weight == 0 ? samples : 1;
}

/* Children stand behind their parents. */
static void sum_inclusive_importance(struct function_tree_reducer *reduction,
				     const struct view_thread_node_row *rows, size_t count)
{
	const struct function_tree *functions = reduction->functions;

	for (size_t i = 0; i < count; i++)
		reduction->inclusive_importance[functions->of_node[rows[i].node]] +=
			compute_row_importance(&rows[i]);
	for (uint32_t i = functions->count; i-- > 0;) {
		uint32_t parent = functions->nodes[i].parent;
		if (parent != MODEL_ENTRY_INDEX_NONE)
			reduction->inclusive_importance[parent] +=
				reduction->inclusive_importance[i];
	}
}

/* The least importance that leaves no more than `limit` nodes; at least one. */
static uint64_t find_importance_threshold(const struct function_tree_reducer *reduction,
					  uint32_t limit)
{
	for (uint64_t threshold = 1;; threshold *= 2) {
		uint32_t kept = 0;
		for (uint32_t i = 0; i < reduction->functions->count; i++)
			kept += reduction->inclusive_importance[i] >= threshold;
		if (kept <= limit || threshold > UINT64_MAX / 2)
			return threshold;
	}
}

static void add_kept_nodes(struct function_tree_reducer *reduction, uint64_t threshold)
{
	const struct function_tree *functions = reduction->functions;
	struct html_tree *tree = reduction->tree;

	for (uint32_t i = 0; i < functions->count; i++) {
		const struct function_node *node = &functions->nodes[i];
		reduction->place[i] = MODEL_ENTRY_INDEX_NONE;
		if (reduction->inclusive_importance[i] < threshold)
			continue;
		reduction->place[i] = tree->node_count;
		tree->nodes[tree->node_count++] =
			(struct flamegraph_node){.parent = node->parent == MODEL_ENTRY_INDEX_NONE
								   ? MODEL_ENTRY_INDEX_NONE
								   : reduction->place[node->parent],
						 .process = node->process,
						 .frame = node->frame};
	}
}

/* Where the weight of a function node goes: itself, or the rest of its nearest kept caller. Roots
 * that are left out have no such caller and get a rest of their own. */
static uint32_t find_or_add_page_node(struct function_tree_reducer *reduction, uint32_t node)
{
	struct html_tree *tree = reduction->tree;
	uint32_t process = reduction->functions->nodes[node].process;

	if (reduction->place[node] != MODEL_ENTRY_INDEX_NONE)
		return reduction->place[node];
	uint32_t pruned = node, above = node;
	while (above != MODEL_ENTRY_INDEX_NONE &&
	       reduction->place[above] == MODEL_ENTRY_INDEX_NONE) {
		pruned = above;
		above = reduction->functions->nodes[above].parent;
	}
	uint32_t kept =
		above == MODEL_ENTRY_INDEX_NONE ? MODEL_ENTRY_INDEX_NONE : reduction->place[above];
	uint32_t rest = kept == MODEL_ENTRY_INDEX_NONE ? 0 : reduction->rest[kept];
	if (rest == 0) {
		rest = tree->node_count++;
		tree->nodes[rest] = (struct flamegraph_node){kept, process, MODEL_ENTRY_INDEX_NONE};
		if (kept != MODEL_ENTRY_INDEX_NONE)
			reduction->rest[kept] = rest;
	}
	if (kept == MODEL_ENTRY_INDEX_NONE)
		reduction->place[pruned] = rest;
	return rest;
}

/* Rows of the same thread and page node become one. `row_of` is by page node, zero in between. */
static void merge_rows_by_page_node(struct function_tree_reducer *reduction,
				    const struct view_thread_node_row *rows, size_t count,
				    size_t *row_of)
{
	struct html_tree *tree = reduction->tree;
	size_t first = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t node = find_or_add_page_node(reduction,
						      reduction->functions->of_node[rows[i].node]);
		if (i != 0 && rows[i].thread != rows[i - 1].thread)
			first = tree->row_count;
		size_t at = row_of[node];
		if (at < first || at >= tree->row_count || tree->rows[at].node != node) {
			at = row_of[node] = tree->row_count++;
			tree->rows[at] = (struct flamegraph_thread_row){.thread = rows[i].thread,
									.node = node};
		}
		add_node_sums_to_thread_row(&tree->rows[at], &rows[i]);
	}
	for (size_t i = 0; i < tree->row_count; i++) {
		for (int column = 0; column < FLAMEGRAPH_COLUMN_COUNT; column++)
			tree->column_totals[column] += tree->rows[i].values[column];
	}
}

static int reduce_function_tree(struct html_tree *tree, const struct function_tree *functions,
				const struct view_thread_node_row *rows, size_t count,
				uint32_t limit)
{
	/* Every kept node may get one more for its rest, every left-out root one of its own. */
	size_t room = 2 * (size_t)functions->count + 1;
	struct function_tree_reducer reduction = {
		functions, tree, calloc((size_t)functions->count + 1, sizeof(uint64_t)),
		calloc((size_t)functions->count + 1, sizeof(uint32_t)),
		calloc(room, sizeof(uint32_t))};
	size_t *row_of = calloc(room, sizeof(*row_of));
	int error = -ENOMEM;

	tree->nodes = calloc(room, sizeof(*tree->nodes));
	tree->rows = calloc(count + 1, sizeof(*tree->rows));
	if (reduction.inclusive_importance != NULL && reduction.place != NULL &&
	    reduction.rest != NULL && row_of != NULL && tree->nodes != NULL && tree->rows != NULL) {
		sum_inclusive_importance(&reduction, rows, count);
		add_kept_nodes(&reduction, find_importance_threshold(&reduction, limit));
		merge_rows_by_page_node(&reduction, rows, count, row_of);
		error = 0;
	}
	free(reduction.inclusive_importance);
	free(reduction.place);
	free(reduction.rest);
	free(row_of);
	return error;
}

int html_tree_init(struct html_tree *tree, struct session *session, uint32_t limit)
{
	struct function_tree functions;
	const struct view_thread_node_row *rows = NULL;
	size_t count = 0;

	*tree = (struct html_tree){0};
	int error = function_tree_build_per_process(&functions, session);
	if (error == 0)
		error = view_sum_by_thread_and_node(session, &rows, &count);
	if (error == 0)
		error = reduce_function_tree(tree, &functions, rows, count, limit);
	function_tree_deinit(&functions);
	return error;
}

void html_tree_deinit(struct html_tree *tree)
{
	free(tree->nodes);
	free(tree->rows);
	*tree = (struct html_tree){0};
}
