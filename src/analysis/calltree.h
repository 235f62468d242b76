/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The calling-context tree while samples are read: nodes are (parent, address, module), before
 * anything has a name. Nodes are never removed and a parent always comes before its children, so
 * loops over the array can run from leaves to roots and back.
 *
 * A node is found by a hash of its whole path, from the root on. Who keeps the hash of each frame
 * of the previous stack needs one lookup a stack, that of its innermost frame. Paths count as equal
 * when their 64-bit hashes are: with a million of them a collision has odds of one in 10^7.
 *
 * `address` is the one to look up: a return address minus one, or an exact pc.
 */
#ifndef KYMO_ANALYSIS_CALLTREE_H
#define KYMO_ANALYSIS_CALLTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/model_source.h"

#define CALLTREE_NO_NODE UINT32_MAX
/* Special values of calltree_node.module. Addresses of those inside processes have the bit
 * CALLTREE_SPECIAL_ADDRESS_BIT, which no code address has. */
#define CALLTREE_SPECIAL_ADDRESS_BIT    ((uint64_t)1 << 63)
#define CALLTREE_NO_MODULE              UINT32_MAX
#define CALLTREE_MODULE_TRUNCATED_STACK (UINT32_MAX - 1) /* address: spool_stack_end, special */
#define CALLTREE_MODULE_PROCESS_ROOT    (UINT32_MAX - 2) /* address: index of the process */
#define CALLTREE_MODULE_UNSAMPLED_TIME  (UINT32_MAX - 3)
#define CALLTREE_MODULE_SIGNAL_BLOCKED  (UINT32_MAX - 4) /* CPU time with kymo's signal blocked */
#define CALLTREE_MODULE_NO_STACK        (UINT32_MAX - 5) /* address: spool_no_stack, special */
#define CALLTREE_MODULE_WAITS_FOR_CPU   (UINT32_MAX - 6) /* its parent's time waiting for a CPU */
/* Work on a device (launched.h): address: that of its name, in the session's arena, special. */
#define CALLTREE_MODULE_DEVICE_WORK (UINT32_MAX - 7)
#define CALLTREE_MODULE_NO_LAUNCH   (UINT32_MAX - 8) /* work whose launch has no stack; as above */
/* A frame of interpreted code: the address is as in the spool. It has a name, so it counts as none
 * of the special ones. */
#define CALLTREE_MODULE_INTERPRETED (UINT32_MAX - 9)

/* Is it none of the values that stand for a module? */
static inline bool calltree_module_is_special(uint32_t module)
{
	return module >= CALLTREE_MODULE_NO_LAUNCH && module != CALLTREE_NO_MODULE;
}

struct calltree_node {
	uint64_t address;
	uint64_t hash;     /* of the path to here */
	uint64_t since_ns; /* of run-time code that replaced other code
			      (analysis/runtime_code.h), else 0 */
	uint32_t parent;
	uint32_t module;
};

struct calltree_node_self_sums {
	uint64_t samples, weight;
};

struct calltree_node_slot {
	uint64_t hash;
	uint32_t node_index_plus_one; /* 0: free */
};

struct calltree {
	struct calltree_node *nodes;
	/* Self, indexed like nodes. One array a source: most recordings have one source, and what a
	 * pass touches should fit the cache. */
	struct calltree_node_self_sums *sums[MODEL_SOURCE_COUNT];
	uint32_t count, capacity;
	struct calltree_node_slot
		*slots; /* open addressing with linear probing, at most half full */
	size_t slot_count;
};

/* The hash of a path that goes on by one step. `variant` tells apart what has one address; 0 where
 * nothing does. */
static inline uint64_t calltree_hash_path_step(uint64_t parent_hash, uint64_t address,
					       uint64_t variant)
{
	uint64_t hash = (parent_hash + variant) ^ address * 0x9e3779b97f4a7c15;

	hash *= 0xd6e8feb86659fd93;
	return hash ^ hash >> 32;
}

/* CALLTREE_NO_NODE: there is none. */
static inline uint32_t calltree_find_by_path_hash(const struct calltree *tree, uint64_t hash)
{
	const size_t mask = tree->slot_count - 1;

	if (tree->slot_count == 0)
		return CALLTREE_NO_NODE;
	for (size_t i = hash & mask; tree->slots[i].node_index_plus_one; i = (i + 1) & mask) {
		if (tree->slots[i].hash == hash)
			return tree->slots[i].node_index_plus_one - 1;
	}
	return CALLTREE_NO_NODE;
}

/* Adds a node that is not there yet. CALLTREE_NO_NODE: out of memory. */
uint32_t calltree_add_node(struct calltree *tree, const struct calltree_node *node);
/* Finds or adds a child that its address and module tell from all others. */
uint32_t calltree_find_or_add_child(struct calltree *tree, uint32_t parent, uint64_t address,
				    uint32_t module);
/* Frees the sums; nodes cannot be added after that. */
void calltree_free_sums(struct calltree *tree);
void calltree_deinit(struct calltree *tree);

#endif
