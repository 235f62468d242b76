/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the files of the allocation wrappers share.
 *
 * All state lies in memory that the kernel empties in forked children (MADV_WIPEONFORK), so that a
 * child begins with nothing and never meets a lock that another thread of its parent held. What the
 * parent allocated is unknown in the child.
 */
#ifndef KYMO_WRAPPERS_MEMORY_PRIVATE_H
#define KYMO_WRAPPERS_MEMORY_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/unwind.h"

#define MEMORY_SITES_MAX  65536u
#define MEMORY_SITES_DEEP 57344u /* sites of more than one frame */
#define MEMORY_DEPTH_MAX  64u
/* Site 0 stands for what has no site: allocations for which there was no room in a table, and frees
 * of blocks that were allocated before, or where it is not seen (in libc). */
#define MEMORY_SITE_NONE 0u

/* Where allocations come from. Sums are written by all threads. */
struct memory_site {
	uint64_t hash;
	uint32_t first_frame, frames;
	_Atomic uint64_t allocations, frees, allocated_bytes, freed_bytes, peak_bytes;
	uint64_t written; /* allocations and frees when last written; background thread only */
};

#define MEMORY_SIZE_MASK ((1ull << 40) - 1)
#define MEMORY_SITE_MASK ((1u << 24) - 1)

struct memory_block {
	uint64_t address; /* 0: free place */
	uint64_t size : 40, site : 24;
};

/* ---- memory_sites.c ---- */

/* Maps the tables; 0 or negative errno. */
int memory_sites_init(uint32_t depth);
/* The site of a stack; NONE when there is no room. */
uint32_t memory_site_of(const uint64_t *frames, uint32_t count);
struct memory_site *memory_site_at(uint32_t site);
const uint64_t *memory_site_frames(const struct memory_site *site);
uint32_t memory_sites_count(void); /* with site 0 */
void memory_site_allocated(uint32_t site, uint64_t size);
void memory_site_freed(uint32_t site, uint64_t size);

/* ---- memory_blocks.c ---- */

int memory_blocks_init(void);
/* False: no room. *ret_previous is what was known at that address (site NONE and size 0: nothing):
 * freed where it could not be seen. */
bool memory_block_add(const struct memory_block *block, struct memory_block *ret_previous);
bool memory_block_remove(uint64_t address, struct memory_block *ret);

/* ---- memory_walk.c ---- */

/* The callers of a wrapped function, innermost first, at most `maximum`. */
uint32_t memory_walk(const struct unwind_registers *caller, uint64_t *frames, uint32_t maximum);

/* ---- memory_record.c ---- */

struct runtime;
/* Background thread: writes what changed, when it is time; `last`: in any case. */
void memory_follow(struct runtime *runtime, bool last);
/* A program's thread, inside a wrapper: values of the process's counters, when new ones are there.
 */
void memory_counters(void);

/* Pages of nothing, empty in forked children; NULL: none. */
void *memory_map(uint64_t size, bool kept_in_child);

#endif
