/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The calling-context tree while samples are read: nodes are (parent, address, module), before
 * anything has a name. A stack costs one lookup for each frame that differs from the previous
 * stack. Nodes are never removed and a parent always comes before its children, so loops over the
 * array can run from leaves to roots and back.
 *
 * `address` is the one to look up: a return address minus one, or an exact pc.
 *
 * Cost of a lookup: one cache line, since the hash holds the keys themselves.
 */
#ifndef KYMO_ANALYSIS_CALLTREE_H
#define KYMO_ANALYSIS_CALLTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kymo/spool.h"

#define CALLTREE_NONE UINT32_MAX
/* Special values of calltree_node.module. Addresses of those inside processes have the bit
 * CALLTREE_SPECIAL, which no code address has. */
#define CALLTREE_SPECIAL   ((uint64_t)1 << 63)
#define CALLTREE_NO_MODULE UINT32_MAX
#define CALLTREE_TRUNCATED (UINT32_MAX - 1) /* address: spool_stack_end, special */
#define CALLTREE_PROCESS   (UINT32_MAX - 2) /* address: index of the process */
#define CALLTREE_UNSAMPLED (UINT32_MAX - 3)
/* For calltree_find() only: the address alone says which module it is. */
#define CALLTREE_ANY_MODULE (UINT32_MAX - 4)

struct calltree_node {
	uint64_t address;
	uint32_t parent;
	uint32_t module;
};

struct calltree_sums {
	uint64_t samples[SPOOL_SOURCE_COUNT];
	uint64_t weight[SPOOL_SOURCE_COUNT];
};

struct calltree_slot;

struct calltree {
	struct calltree_node *nodes;
	struct calltree_sums *sums; /* self, indexed like nodes */
	uint32_t count, capacity;
	struct calltree_slot *slots;
	size_t slot_count;
};

/* CALLTREE_NONE: there is none. */
uint32_t calltree_find(const struct calltree *tree, uint32_t parent, uint64_t address,
		       uint32_t module);
/* Adds a child that is not there yet. CALLTREE_NONE: out of memory. */
uint32_t calltree_add(struct calltree *tree, uint32_t parent, uint64_t address, uint32_t module);
/* Finds or adds. */
uint32_t calltree_child(struct calltree *tree, uint32_t parent, uint64_t address, uint32_t module);
void calltree_deinit(struct calltree *tree);

#endif
