/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the files of this room share: the state of the process's regions and of one thread's.
 *
 * A thread's state is written by that thread alone. `busy` is set while it is: an event that
 * arrives then comes from a signal handler of the same thread and is dropped.
 */
#ifndef KYMO_REGIONS_STATE_H
#define KYMO_REGIONS_STATE_H

#include <stdatomic.h>

#include "core/runtime.h"
#include "regions/bundle.h"
#include "regions/probe.h"
#include "regions/regions.h"

/* A region_id has its number in the lower bits, and above them what begin must know at once. */
#define REGION_NUMBER    0x0fffffffu
#define REGION_IS_USER   0x10000000u /* recorded also while stopped */
#define REGION_IS_SELECT 0x20000000u /* named by SELECTED_REGIONS */

/* What a thread is at: recording an event; inside kymo (each level counts one of these). */
#define REGION_BUSY_EVENT 1u
#define REGION_BUSY_OWN   2u

#define REGION_FRAMES_FIRST 32u
#define REGION_NAMES_CACHED 64u

enum region_frame_flags {
	FRAME_TRACED = 1,
	FRAME_PROFILED = 2,
	FRAME_SELECTS = 4,
	FRAME_RECORDED = 8 /* it began while recording was on */
};

/* An open region. */
struct region_frame {
	const char *name; /* as the program passed it, where it did */
	uint64_t begin_ticks;
	uint64_t scope;  /* stack address of the call that it is; 0: may outlive its caller */
	uint32_t region; /* region_id */
	uint32_t node;   /* of the profile; 0: none */
	uint32_t flags;
	uint32_t parent_node;
};

/* Where a thread's records go. */
struct region_stream {
	uint8_t *at, *limit; /* NULL without a chunk */
	uint8_t *data;
	_Atomic uint32_t *committed;
	struct spool_chunk *chunk;
	uint64_t last_ticks;  /* of the record before */
	uint64_t chunk_ticks; /* when the chunk was taken */
	uint64_t retry_ticks; /* no chunk was to be had: not again before */
	uint64_t events;      /* in this chunk */
	bool large;
};

struct region_cached_name {
	const char *pointer, *category; /* as passed */
	const char *copy;               /* what the name was */
	uint64_t head[2], mask[2];      /* its first bytes; which of them count */
	uint32_t length;                /* with the terminating zero */
	region_id region;
};

struct region_thread {
	_Atomic uint32_t busy; /* REGION_BUSY_*; 0: an event can be recorded */
	uint32_t depth, capacity;
	uint32_t limit;      /* depth at which a begin needs a closer look */
	uint32_t skipped;    /* open regions beyond MAX_DEPTH */
	uint32_t selected;   /* open regions that select */
	uint32_t node;       /* innermost profiled one */
	uint32_t stopped;    /* by regions_thread_stop() */
	bool values_allowed; /* the last record is one that values may follow */
	struct region_frame *frames;
	uint64_t *starts; /* what components keep, components a frame */
	struct region_stream stream;
	struct profile_tree *tree;
	struct thread *thread;
	struct region_thread *next; /* on the list of free ones */
	struct probe_request request;
	struct region_cached_name cache[REGION_NAMES_CACHED];
	struct region_frame first_frames[REGION_FRAMES_FIRST];
};

/* Which regions quick.h takes. */
enum regions_quick { REGIONS_QUICK_NONE, REGIONS_QUICK_TRACE, REGIONS_QUICK_PROFILE };

struct regions {
	struct runtime *runtime;
	enum regions_quick quick;
	bool trace;       /* events are recorded */
	bool profile;     /* the profile is kept in the process */
	uint32_t select;  /* SELECTED_REGIONS is set */
	uint32_t careful; /* not every region that begins is recorded: selection, throttling */
	bool ticks_only;  /* the profile measures wall_clock and calls alone */
	uint32_t categories_off; /* bit per region_category */
	uint32_t max_depth;
	uint64_t throttle_count, throttle_ticks;
	struct bundle bundle;
	uint32_t stored; /* components that profile nodes have a value of */
	_Atomic(struct region_thread *) free_threads;
	_Atomic uint32_t free_lock;
};

extern struct regions kymo_regions;
extern __thread struct region_thread *kymo_region_thread;
extern __thread uint32_t kymo_region_own;

/* threads.c: the calling thread's state, made at its first event; NULL when there can be none. */
struct region_thread *region_thread_make(void);
/* Makes room for one more frame. */
bool region_frames_grow(struct region_thread *thread);

/* regions.c: counts a call in the profile that has ended and held no other. */
void region_profile_whole(struct region_thread *thread, region_id region, uint64_t begin_ticks,
			  uint64_t end_ticks);

/* A lock for rare work, safe against signal handlers of the holder: those do not get it. */
bool region_lock(_Atomic uint32_t *lock);
void region_unlock(_Atomic uint32_t *lock);

/* Zeroed pages; NULL when memory is short. */
void *region_map(size_t size);

/* Does the comma-separated list hold the word? */
bool region_list_has(const char *list, const char *word);

#endif
