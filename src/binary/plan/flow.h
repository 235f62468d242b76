/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which blocks of a function are executed equally often, by its graph alone: then counting one of
 * them counts the others.
 *
 * What enters a block leaves it, so two blocks whose removal takes the graph apart (with an edge
 * from each end to the entry) have the same count. Each block gets a label, and those with the same
 * one are executed equally often; 0: nothing is known.
 */
#ifndef KYMO_BINARY_PLAN_FLOW_H
#define KYMO_BINARY_PLAN_FLOW_H

#include "binary/functions/blocks.h"

enum plan_block_flow_flag {
	PLAN_FLOW_ENTERS_GRAPH = 1,  /* control may come from outside the graph */
	PLAN_FLOW_LEAVES_GRAPH = 2,  /* ... or go there */
	PLAN_FLOW_NEVER_EXECUTED = 4 /* never executed: padding */
};

struct plan_block_flow_labels {
	uint64_t *labels; /* of each block */
	size_t label_capacity, node_sum_capacity, graph_array_capacity;
	uint64_t *node_sums;
	uint32_t *graph_arrays;
};

/* `kinds`: bits of a byte per block. -ENOMEM. */
int plan_label_equally_executed_blocks(struct plan_block_flow_labels *flow,
				       const struct basic_blocks *blocks, const uint8_t *kinds);
void plan_block_flow_labels_deinit(struct plan_block_flow_labels *flow);

#endif
