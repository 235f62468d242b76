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

#include "binary/blocks.h"

enum plan_flow_kind {
	PLAN_FLOW_ENTERED = 1, /* control may come from outside the graph */
	PLAN_FLOW_LEAVES = 2,  /* ... or go there */
	PLAN_FLOW_NOWHERE = 4  /* never executed: padding */
};

struct plan_flow {
	uint64_t *labels; /* of each block */
	size_t label_capacity, value_capacity, index_capacity;
	uint64_t *values;
	uint32_t *indices;
};

/* `kinds`: bits of a byte per block. -ENOMEM. */
int plan_flow_find(struct plan_flow *flow, const struct blocks *blocks, const uint8_t *kinds);
void plan_flow_deinit(struct plan_flow *flow);

#endif
