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

#include "core/base/futex.h"
#include "core/runtime.h"

#define MEMORY_SITES_MAX       65536u
#define MEMORY_DEEP_SITES_MAX  57344u /* sites of more than one frame */
#define MEMORY_SITE_FRAMES_MAX 128u
/* Site 0 stands for what has no site: allocations for which there was no room in a table, and frees
 * of blocks that were allocated before. */
#define MEMORY_SITE_NONE 0u
/* Class N has the sizes above 2^(N-1) up to 2^N; class 0 has 0 and 1. */
#define MEMORY_SIZE_CLASS_COUNT 41u

#define MEMORY_LOCK_SPINS    64u
#define MEMORY_LOCK_SLEEP_NS 50000u

/* Where allocations come from. Sums are written by all threads, under the lock where there is more
 * than one, and read by the background thread without it. */
struct memory_site {
	uint64_t hash;
	uint32_t first_frame_index, frame_count;
	_Atomic uint32_t lock;
	_Atomic uint32_t is_retired; /* its code is gone; another may be at the same addresses */
	_Atomic uint64_t allocation_count, free_count, allocated_bytes, freed_bytes, peak_bytes;
	_Atomic uint64_t temporary_count; /* freed before their thread allocated anything else */
	/* Bytes that were live at the process's peak of this number; where another is the last one,
	 * those that are live now (counts.c). */
	_Atomic uint64_t held_bytes, held_peak_number;
	uint64_t first_ticks; /* when it was met first */
	uint64_t written;     /* allocations and frees when last written; background thread only */
} __attribute__((aligned(64)));

#define MEMORY_BLOCK_SIZE_MASK ((1ull << 40) - 1)
#define MEMORY_BLOCK_SITE_MASK ((1u << 24) - 1)

struct memory_block {
	uint64_t address; /* 0: free place */
	uint64_t size : 40, site : 24;
};

/* Sums of the whole process. */
struct memory_process_counts {
	_Atomic uint64_t live_bytes, peak_bytes;
	_Atomic uint64_t peak_number; /* of the last peak; counts how often it rose */
};

/* What a thread that allocates keeps (walk.c). */
struct memory_thread;

/* What is needed of the collector (memory.c); set before anything is wrapped. */
struct memory_collector_pointers {
	const struct collection_control *control;
	struct background_state *background;
	struct loaded_modules *modules;
	const struct sampler *sampler;
	const bool *is_attached; /* kymo came to a process that ran already */
	_Atomic uint32_t
		*walker_count; /* pins the view of modules where a thread has no pin of its own */
	void (*_Atomic *follow)(struct runtime *runtime, bool last);
};

extern struct memory_collector_pointers kymo_memory;

/* By a thread that may be of any priority, for some ten instructions. Who holds it may have been
 * interrupted on this processor by this very thread: giving way to others of the same priority
 * would not let it go on, sleeping does. Nobody is woken. */
static inline void memory_lock(_Atomic uint32_t *lock)
{
	for (uint32_t tries = 0; atomic_exchange_explicit(lock, 1, memory_order_acquire); tries++) {
		if (tries < MEMORY_LOCK_SPINS)
			__builtin_ia32_pause();
		else
			futex_wait(lock, 1, MEMORY_LOCK_SLEEP_NS);
	}
}

static inline void memory_unlock(_Atomic uint32_t *lock)
{
	atomic_store_explicit(lock, 0, memory_order_release);
}

/* ---- sites.c ---- */

/* Maps the tables; 0 or negative errno. */
int memory_sites_init(uint32_t depth);
void memory_sites_clear(void);
/* The site of a stack; NONE when there is no room. */
uint32_t memory_find_or_add_site(const uint64_t *frames, uint32_t count);
struct memory_site *memory_get_site(uint32_t site);
const uint64_t *memory_site_get_frames(const struct memory_site *site);
uint32_t memory_get_site_count(void); /* with site 0 */
/* Background thread: the code in this range was unmapped. Stacks with an address there are those of
 * sites that are done with: the same addresses are another site from here on. */
void memory_retire_sites_in_range(struct module_range range);

/* ---- counts.c ---- */

int memory_counts_init(void);
void memory_counts_clear(void);
const struct memory_process_counts *memory_get_process_counts(void);
void memory_count_allocated_block(uint32_t site, uint64_t size);
void memory_count_freed_block(uint32_t site, uint64_t size, bool temporary);
/* Bytes of the site at the process's peak of that number. */
uint64_t memory_site_get_bytes_at_peak(const struct memory_site *site, uint64_t peak_number);

/* ---- blocks.c, granules.c ---- */

int memory_blocks_init(void);
void memory_blocks_clear(void);
/* False: no room. *ret_previous is what was known at that address (site NONE and size 0: nothing):
 * freed where it could not be seen. */
bool memory_block_add(const struct memory_block *block, struct memory_block *ret_previous);
bool memory_block_remove(uint64_t address, struct memory_block *ret);

int memory_granules_init(void);
void memory_granules_clear(void);
/* Can this block be kept among the granules? */
bool memory_granules_may_keep(const struct memory_block *block);
bool memory_granules_add(const struct memory_block *block, struct memory_block *ret_previous);
bool memory_granules_remove(uint64_t address, struct memory_block *ret);

/* ---- walk.c ---- */

int memory_threads_init(void);
void memory_threads_clear(void);
/* The calling thread's own; NULL: it has none. */
struct memory_thread *memory_find_or_add_thread(void);
/* The site of a call of a wrapped function, whose stack has at most `depth` frames. */
uint32_t memory_find_site_of_caller(struct memory_thread *thread,
				    const struct unwind_start_registers *caller, uint32_t depth);
void memory_thread_note_allocation(struct memory_thread *thread, uint64_t address, uint64_t size);
/* Was this block the last one that the thread allocated? */
bool memory_thread_note_free(struct memory_thread *thread, uint64_t address);
/* Background thread: allocations of all threads by size. */
void memory_sum_size_classes(uint64_t *counts);

/* ---- record.c ---- */

int memory_records_init(void);
void memory_records_clear(void);
/* Background thread: writes what changed, when it is time; `last`: in any case. */
void memory_write_changed_sites_if_due(struct runtime *runtime, bool last);
/* A program's thread, inside a wrapper: values of the process's counters, when new ones are there.
 */
void memory_counters(void);

/* Pages of nothing, empty in forked children; NULL: none. */
void *memory_map_pages(uint64_t size, bool kept_in_child);
/* They hold nothing again, and take no memory. A thread that writes late finds them there. */
void memory_empty_pages(void *pages, uint64_t size);

#endif
