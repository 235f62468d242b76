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
#define REGION_NUMBER_MASK               0x0fffffffu
#define REGION_ID_USER_REGION_BIT        0x10000000u /* recorded also while stopped */
#define REGION_ID_IS_THREAD_SELECTOR_BIT 0x20000000u /* named by SELECTED_REGIONS */
#define REGION_ID_IS_RESERVED_NAME_BIT   0x40000000u /* no id yet: one of reserved_names */

/* What a thread is at: recording an event; inside kymo (each level counts one of these). Above
 * that: events of signal handlers are reserved. */
#define REGION_BUSY_IN_EVENT        1u
#define REGION_BUSY_PER_KYMO_LEVEL  2u
#define REGION_BUSY_RESERVED_EVENTS 0x40000000u

#define REGION_FRAMES_INITIAL_CAPACITY 32u
#define REGION_NAME_CACHE_ENTRIES      64u

enum region_frame_flags {
	REGION_FRAME_TRACED = 1,
	REGION_FRAME_PROFILED = 2,
	REGION_FRAME_SELECTS = 4,
	REGION_FRAME_RECORDED = 8, /* it began while recording was on */
	REGION_FRAME_WAITS = 16,   /* it began outside the windows: recorded once one has opened */
	REGION_FRAME_LEFT = 32     /* a region around it ended without it */
};

/* An open region. */
struct region_frame {
	const char *name; /* as the program passed it, where it did */
	uint64_t begin_ticks;
	union {
		uint64_t
			scope; /* stack address of the call that it is; 0: may outlive its caller */
		uint64_t left_ticks; /* LEFT: since when, by region_window_clock() */
	};
	uint32_t region;       /* region_id */
	uint32_t profile_node; /* of the profile; 0: none */
	uint32_t flags;
	uint32_t parent_profile_node;
	uint32_t left_by;       /* LEFT: region_id of the one that ended */
	uint64_t profile_begin; /* region_window_clock() at its begin */
};

/* An event of a signal handler that interrupted another event of its thread: recorded when that is
 * done. */
struct region_reserved_event {
	uint64_t ticks, number;
	region_id region;
	uint32_t kind; /* enum region_reserved_event_kind */
};

/* An event can take long: its thread may wait for a chunk, or for a processor. */
#define REGION_RESERVED_EVENTS_MAX 2048u
#define REGION_RESERVED_NAMES_MAX  4u
#define REGION_RESERVED_NAME_SIZE  96u
#define REGION_LEFT_FRAMES_MAX     64u

/* Where a thread's records go. */
struct region_record_stream {
	uint8_t *at, *chunk_end; /* NULL without a chunk */
	uint8_t *data;
	_Atomic uint32_t *chunk_committed_bytes;
	struct spool_chunk *chunk;
	uint64_t last_record_ticks; /* of the record before */
	uint64_t chunk_taken_ticks; /* when the chunk was taken */
	uint64_t chunk_retry_ticks; /* no chunk was to be had: not again before */
	uint64_t events;            /* in this chunk */
	bool uses_large_chunks;
};

struct region_cached_name {
	const char *passed_name, *passed_category; /* as passed */
	const char *copy;                          /* what the name was */
	uint64_t head[2], mask[2];                 /* its first bytes; which of them count */
	uint32_t length;                           /* with the terminating zero */
	region_id region;
};

struct region_thread_state {
	_Atomic uint32_t busy_state; /* REGION_BUSY_*; 0: an event can be recorded */
	/* Where an event is recorded that can be left in its midst; UINT64_MAX: it cannot. */
	uint64_t busy_stack_pointer;
	uint32_t depth, capacity;
	uint32_t depth_check_limit;           /* depth at which a begin needs a closer look */
	uint32_t skipped;                     /* open regions beyond MAX_DEPTH */
	uint32_t open_selecting_region_count; /* open regions that select */
	uint32_t node;                        /* innermost profiled one */
	uint32_t stopped;                     /* by regions_stop_in_this_thread() */
	uint32_t waiting_frame_count;         /* WAITS */
	uint32_t seen_window_count;           /* windows that had opened when these began */
	uint32_t left_frame_count;            /* LEFT */
	_Atomic uint32_t reserved_event_count;
	uint32_t unreserved_open_count; /* begins that had no room there, and no end yet */
	uint64_t reserved_ticks;        /* when the event that is recorded now was; 0: it is now */
	bool may_attach_values;         /* the last record is one that values may follow */
	struct region_frame *frames;
	uint64_t *starts; /* what components keep, components a frame */
	struct region_record_stream stream;
	struct profile_tree *tree;
	struct thread *thread;
	struct region_thread_state *next; /* on the list of free ones */
	struct probe_reading_request request;
	struct region_reserved_event reserved_events[REGION_RESERVED_EVENTS_MAX];
	/* Names of some of them that could not be looked up yet. */
	char reserved_names[REGION_RESERVED_NAMES_MAX][REGION_RESERVED_NAME_SIZE];
	uint32_t reserved_name_count;
	struct region_cached_name name_cache[REGION_NAME_CACHE_ENTRIES];
	struct region_frame initial_frames[REGION_FRAMES_INITIAL_CAPACITY];
};

/* Which regions fast_path.h takes. */
enum regions_fast_path_kind {
	REGIONS_FAST_PATH_NONE,
	REGIONS_FAST_PATH_TRACE,
	REGIONS_FAST_PATH_PROFILE
};

struct regions_state {
	/* Parts of the collector; set before anything is recorded. */
	struct collection_control *control;
	struct spool_writer *spool;
	struct background_state *background;
	struct threads *threads;
	const struct sampler *sampler; /* ticks and the growth of chunks */
	const struct region_options *options;
	bool started;
	enum regions_fast_path_kind fast_path_kind;
	bool records_events;        /* events are recorded */
	bool keeps_profile;         /* the profile is kept in the process */
	uint32_t select;            /* SELECTED_REGIONS is set */
	uint32_t may_skip_regions;  /* not every region that begins is recorded: selection,
				       throttling */
	bool has_windows;           /* collection windows: the profile leaves out what is between */
	bool profiles_ticks_only;   /* the profile measures wall_clock and calls alone */
	uint32_t category_off_bits; /* bit per region_category */
	uint32_t max_depth;
	uint64_t throttle_call_count, throttle_mean_ticks;
	struct component_bundle component_bundle;
	uint32_t stored; /* components that profile nodes have a value of */
	_Atomic(struct region_thread_state *) free_threads;
	_Atomic uint32_t free_threads_lock;
};

extern struct regions_state kymo_regions;
extern __thread struct region_thread_state *kymo_region_thread;
extern __thread uint32_t kymo_region_own;

/* It is in an event of its own: in a signal handler, say, that interrupted it. */
static inline bool region_thread_is_busy(void)
{
	return __builtin_expect(
		kymo_region_thread &&
			atomic_load_explicit(&kymo_region_thread->busy_state, memory_order_relaxed),
		0);
}

/* threads.c: the calling thread's state, made at its first event; NULL when there can be none. */
struct region_thread_state *region_make_thread_state(void);
/* Makes room for one more frame. */
bool region_grow_frames(struct region_thread_state *thread);

/* Ticks inside the collection windows: they stand still between them. */
static inline uint64_t region_window_clock(uint64_t ticks)
{
	const struct collection_control *control = kymo_regions.control;
	uint64_t closed;

	if (__builtin_expect(!kymo_regions.has_windows, 1))
		return ticks;
	closed = atomic_load_explicit(&control->window_close_ticks, memory_order_relaxed);
	/* Not by what is outside of windows, which grows while the next one opens. */
	if (atomic_load_explicit(&control->closed_reasons, memory_order_relaxed) &
		    CONTROL_CLOSED_BY_WINDOW &&
	    ticks > closed)
		return atomic_load_explicit(&control->window_clock_at_close, memory_order_relaxed);
	return ticks - atomic_load_explicit(&control->outside_window_ticks, memory_order_relaxed);
}

/* regions.c: records one that a signal handler reserved, on a thread that is marked busy. */
void region_record_begin(struct region_thread_state *thread, region_id region);
void region_record_end(struct region_thread_state *thread, region_id region, bool may_overlap);
/* region_events.c: the same of instants. */
void region_record_mark(struct region_thread_state *thread, region_id region);
void region_record_counter(struct region_thread_state *thread, region_id region, uint64_t bits);
void region_record_progress(struct region_thread_state *thread, region_id region,
			    enum spool_progress kind);

/* regions.c: counts a call in the profile that has ended and held no other. */
void region_add_whole_call_to_profile(struct region_thread_state *thread, region_id region,
				      uint64_t begin_ticks, uint64_t end_ticks);

/* A lock for rare work, safe against signal handlers of the holder: those do not get it. */
bool region_acquire_lock_if_not_holder(_Atomic uint32_t *lock);
bool region_lock_is_held_by_this_thread(_Atomic uint32_t *lock);
void region_release_lock(_Atomic uint32_t *lock);

/* Zeroed pages; NULL when memory is short. */
void *region_map_memory(size_t size);

/* Does the comma-separated list hold the word? */
bool region_list_has_word(const char *list, const char *word);

#endif
