/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The call-tree profile that the process keeps of its own regions: a tree a thread, whose nodes lie
 * in chunks of the spool and are updated in place. It is part of the file at every moment and needs
 * neither finishing nor writing out; its memory is bounded by PROFILE_MAX_NODES and
 * PROFILE_MAX_THREADS however long the program runs.
 *
 * What is needed to find nodes again (a hash table over parent and region) is private memory.
 */
#ifndef KYMO_REGIONS_PROFILE_H
#define KYMO_REGIONS_PROFILE_H

#include "regions/components.h"
#include "regions/state.h"

struct profile_node_lookup_entry {
	struct spool_profile_node *node;
	uint32_t parent, region; /* the key */
	uint32_t hint;           /* child that was entered last */
	uint32_t reserved;
};

struct profile_tree {
	uint32_t id, count, capacity;              /* nodes; room in entries */
	uint32_t slots;                            /* power of two, at least twice the capacity */
	struct profile_node_lookup_entry *entries; /* by node number */
	uint32_t *table;                           /* node number; 0: free */
	struct spool_profile_part *part;
	uint32_t part_nodes_left; /* nodes that still fit */
	bool uses_large_chunks;
	struct thread *thread;
	struct profile_tree *next;
};

/* A tree for the thread: a new one, or that of an ended thread when there are PROFILE_MAX_THREADS.
 * NULL when memory is short. */
struct profile_tree *profile_make_or_reuse_tree(struct region_thread_state *thread);
/* The thread ends; another may go on with the tree. */
void profile_release_tree_for_reuse(struct profile_tree *tree);
/* In a forked child: all trees are the parent's. */
void profile_forget_all_trees(void);

/* The two that follow, for what their short ways do not cover. */
uint32_t profile_enter_node_slow(struct profile_tree *tree, uint32_t parent, uint32_t region,
				 uint64_t begin_ticks);
void profile_add_component_values(struct spool_profile_node *node, const uint64_t *values);

/* The child of `parent` for the region, which becomes its hint; 0: there is none. It keeps all
 * registers: a caller that has to do so saves none for it. */
__attribute__((no_caller_saved_registers)) uint32_t
profile_find_node(const struct profile_tree *tree, uint32_t parent, uint32_t region);

static inline struct spool_profile_open *profile_get_open_calls(struct spool_profile_node *node)
{
	return (struct spool_profile_open *)((struct spool_profile_value *)(node + 1) +
					     kymo_regions.stored);
}

static inline void profile_count_call_as_open(struct spool_profile_node *node, uint64_t begin_ticks)
{
	node->open++;
	profile_get_open_calls(node)->begin_ticks_sum += begin_ticks;
}

static inline void profile_count_call_as_ended(struct spool_profile_node *node,
					       uint64_t begin_ticks)
{
	profile_get_open_calls(node)->begin_ticks_sum -= begin_ticks;
	node->count++;
	node->open--;
}

/* The thread of a call that is open has ended. */
static inline void profile_stop_open_call(const struct profile_tree *tree, uint32_t number,
					  uint64_t begin_ticks, uint64_t end_ticks)
{
	struct spool_profile_open *open = profile_get_open_calls(tree->entries[number].node);

	open->begin_ticks_sum -= begin_ticks;
	open->stopped++;
	open->stopped_ticks += end_ticks > begin_ticks ? end_ticks - begin_ticks : 0;
}

/* The child of `parent` (0: the root) for the region, made if need be; counts the call as open.
 * Where no node can be had the parent's own "(more)" child takes it. 0: not even that. */
static inline uint32_t profile_enter_node(struct profile_tree *tree, uint32_t parent,
					  region_id region, uint64_t begin_ticks)
{
	const struct profile_node_lookup_entry *entries = tree->entries;
	uint32_t number = entries[parent].hint, wanted = region & REGION_NUMBER_MASK;

	if (__builtin_expect(!number || entries[number].region != wanted, 0))
		return profile_enter_node_slow(tree, parent, wanted, begin_ticks);
	profile_count_call_as_open(entries[number].node, begin_ticks);
	return number;
}

static inline void profile_add_to_value_statistics(struct spool_profile_value *sum, uint64_t value,
						   bool first)
{
	unsigned __int128 square = (unsigned __int128)value * value;

	sum->sum += value;
	if (first || value < sum->minimum)
		sum->minimum = value;
	if (value > sum->maximum)
		sum->maximum = value;
	square += (unsigned __int128)sum->square_high << 64 | sum->square_low;
	sum->square_low = (uint64_t)square;
	sum->square_high = (uint64_t)(square >> 64);
}

/* A call of the node ended; values: one a component in bundle order. */
static inline void profile_leave_node(struct profile_tree *tree, uint32_t number,
				      const uint64_t *values, uint64_t begin_ticks)
{
	struct spool_profile_node *node = tree->entries[number].node;

	if (kymo_regions.profiles_ticks_only)
		profile_add_to_value_statistics((struct spool_profile_value *)(node + 1), values[0],
						!node->count);
	else
		profile_add_component_values(node, values);
	profile_count_call_as_ended(node, begin_ticks);
}

#endif
