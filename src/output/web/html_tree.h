/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the flame graph page gets to know: the function tree, without branches too small to be seen
 * when it is very large, and for each thread the weights of the nodes it was seen in.
 */
#ifndef KYMO_OUTPUT_WEB_HTML_TREE_H
#define KYMO_OUTPUT_WEB_HTML_TREE_H

#include "analysis/views.h"
#include "output/function_tree.h"

enum {
	FLAMEGRAPH_MEASURE_COUNT = VIEW_MEASURE_COUNT,
	FLAMEGRAPH_COLUMN_COUNT = 2 * FLAMEGRAPH_MEASURE_COUNT + 1,
	FLAMEGRAPH_COLUMN_SAMPLES =
		2 * FLAMEGRAPH_MEASURE_COUNT, /* all samples; before: weight, count pairs */
};

struct flamegraph_node {
	uint32_t parent; /* before this node; MODEL_ENTRY_INDEX_NONE for roots */
	uint32_t process;
	uint32_t frame; /* MODEL_ENTRY_INDEX_NONE: stands for branches left out */
};

struct flamegraph_thread_row {
	uint32_t thread, node;
	uint64_t values[FLAMEGRAPH_COLUMN_COUNT];
};

struct html_tree {
	struct flamegraph_node *nodes;
	struct flamegraph_thread_row *rows; /* sorted by thread */
	uint32_t node_count;
	size_t row_count;
	uint64_t column_totals[FLAMEGRAPH_COLUMN_COUNT];
};

/* Trees of more than `limit` nodes lose their lightest branches, whose weight goes to a node that
 * says so. 0 or negative errno; deinit is needed after either. */
int html_tree_init(struct html_tree *tree, struct session *session, uint32_t limit);
void html_tree_deinit(struct html_tree *tree);

#endif
