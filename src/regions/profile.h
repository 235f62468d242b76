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

struct profile_tree;

/* A tree for the thread: a new one, or that of an ended thread when there are PROFILE_MAX_THREADS.
 * NULL when memory is short. */
struct profile_tree *profile_acquire(struct region_thread *thread);
/* The thread ends; another may go on with the tree. */
void profile_release(struct profile_tree *tree);
/* In a forked child: all trees are the parent's. */
void profile_forget_all(void);

/* The child of `parent` (0: the root) for the region, made if need be; counts the call as open.
 * Where no node can be had the parent's own "(more)" child takes it. 0: not even that. */
uint32_t profile_enter(struct profile_tree *tree, uint32_t parent, region_id region);
/* A call of the node ended; values: one a component in bundle order. */
void profile_leave(struct profile_tree *tree, uint32_t node, const uint64_t *values);

#endif
