/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The function tree (function_tree.h) with sums, in the order in which people read it: depth first,
 * heaviest child first, one process after the other. Filled for everything or for one thread; a
 * fill costs what it touches, so that ten thousand threads do not cost ten thousand trees.
 */
#ifndef KYMO_OUTPUT_PROFILE_TREE_H
#define KYMO_OUTPUT_PROFILE_TREE_H

#include "analysis/views.h"
#include "output/function_tree.h"

struct profile_sums {
	uint64_t self, inclusive, self_samples, inclusive_samples;
};

struct profile_tree {
	struct function_tree functions;
	struct profile_sums *sums;                            /* by function node */
	uint32_t *first_child_of_node, *next_sibling_of_node; /* by function node */
	uint32_t *rows;                                       /* function nodes in reading order */
	uint32_t row_count;
	uint64_t total, total_samples;
};

/* collapsed: all processes in one tree. 0 or -ENOMEM. Deinit is needed after either. */
int profile_tree_init(struct profile_tree *tree, const struct session *session, bool collapsed);
void profile_tree_deinit(struct profile_tree *tree);
void profile_tree_fill_sums_of_session(struct profile_tree *tree, const struct session *session,
				       enum view_measure_kind measure);
void profile_tree_fill_sums_of_thread(struct profile_tree *tree,
				      const struct view_thread_node_row *entries, size_t count,
				      enum view_measure_kind measure);

#endif
