/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The calling-context tree while samples are read: nodes are (parent, address, module), before
 * anything has a name. A stack costs one lookup for each frame that differs from the previous
 * stack. Nodes are never removed and a parent always comes before its children, so loops over the
 * array can run from leaves to roots and back.
 *
 * `address` is the one to look up: a return address minus one, or an exact pc.
 */
#ifndef KYMO_ANALYSIS_CALLTREE_H
#define KYMO_ANALYSIS_CALLTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kymo/spool.h"

#define CALLTREE_NONE UINT32_MAX
/* Special values of calltree_node.module. */
#define CALLTREE_NO_MODULE UINT32_MAX
#define CALLTREE_TRUNCATED (UINT32_MAX - 1) /* address: spool_stack_end */
#define CALLTREE_PROCESS   (UINT32_MAX - 2) /* address: index of the process */
#define CALLTREE_UNSAMPLED (UINT32_MAX - 3)

struct calltree_node {
	uint64_t address;
	uint32_t parent;
	uint32_t module;
};

struct calltree_sums {
	uint64_t samples[SPOOL_SOURCE_COUNT];
	uint64_t weight[SPOOL_SOURCE_COUNT];
};

struct calltree {
	struct calltree_node *nodes;
	struct calltree_sums *sums; /* self, indexed like nodes */
	uint32_t count, capacity;
	uint64_t *slots; /* upper half of the hash and node + 1; 0: free */
	size_t slot_count;
};

/* The child, made where `insert` says so. CALLTREE_NONE: there is none, or out of memory. */
uint32_t calltree_child(struct calltree *tree, uint32_t parent, uint64_t address, uint32_t module,
			bool insert);
void calltree_deinit(struct calltree *tree);

#endif
