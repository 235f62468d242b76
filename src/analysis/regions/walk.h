/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Region records and calls of instrumented functions to balanced events, thread by thread.
 *
 * A thread has two streams, its region records and its words of calls (kymo/spool.h), which are
 * merged by time. Each ends what it began; both share one stack of what is open, so that a
 * region's parent may be a function and the other way round.
 *
 * The spool says at each span which regions are open, so a reader can start anywhere. Where that
 * differs from what the events so far left open (chunks overwritten in ring mode, dropped events,
 * damage), ends and begins are made up until both agree. A region that began before the hole and is
 * open behind it was open all the time; anything else is another call.
 *
 * A time window counts as if there were no data outside it.
 */
#ifndef KYMO_ANALYSIS_REGIONS_WALK_H
#define KYMO_ANALYSIS_REGIONS_WALK_H

#include "analysis/regions/private.h"
#include "analysis/regions/values.h"
#include "analysis/session_private.h"

struct region_window;

struct region_stack_entry {
	uint64_t begin_ns;
	uint32_t region;
	uint32_t node;        /* the visitor's */
	uint32_t function;    /* id of a call; 0: begun by a region record */
	uint32_t left_number; /* left_regions.h; 0: no region around it ended before it */
	uint64_t earlier_ns;  /* of it in windows before this one */
	uint64_t
		moved_ns; /* tree.c: since when it is inside another region than that it began in */
	bool before;      /* a call whose entry is not in the data: of before a fork, or lost */
	bool ended;       /* by left_regions.h, though the process has it on its stack */
	bool was_cut;     /* a window closed while it was open */
};

/* The words of the thread being walked. */
struct call_stream {
	size_t next_part_index, end_part_index; /* those that are left, in calls_of_process.parts */
	struct spool_chunk_buffer buffer;
	const uint8_t *at, *end; /* of the part that is being read */
	uint64_t ticks;          /* of the last word */
	uint32_t *open;          /* calls that are open, by function id */
};

struct region_event_walk_state {
	struct session *session;
	struct process_private *process;
	const struct process_regions_data *process_regions;
	const struct calls_of_process *process_calls;
	struct problem *problem;
	int (*visit)(struct region_event_walk_state *walk, void *context);
	void *context;

	struct model_region_event event; /* being visited */
	size_t position;           /* BEGIN, END: its place in open[], where it is still at END */
	bool is_ended_by_data_end; /* END: the data ended or a window closed, not the region */
	uint64_t unbalanced_region_count; /* regions ended by an outer one, or never begun */
	uint64_t unwound_call_count;      /* calls ended by an outer one */
	uint64_t unmatched_exit_count;    /* exits of calls that had not begun */
	bool calls_only;                  /* set by the caller: no region records */

	struct region_stack_entry *open; /* outermost first */
	size_t depth, open_capacity;
	struct region_stack_entry
		*open_at_start; /* what is open, as the start of a span or of a part says */
	size_t open_at_start_depth, open_at_start_capacity;
	struct spool_chunk_record_cursor cursor;
	uint64_t ticks, last_ns;       /* of the last record; last_ns never goes back */
	struct region_window *windows; /* windows.h */
	size_t window_count, next_window;
	uint64_t from_ns, to_ns; /* of the window that is open, or comes next */
	size_t left_count;       /* left_regions.h: regions that were left so far */
	bool is_left_survey;
	bool in_window, done; /* done: nothing more of this thread is wanted */
	bool pending;         /* `event` waits for values that may follow */
	struct region_event_value_list values;
	struct call_stream calls;
};

/* Visits every event of a process. `visit` returns 0 to go on; anything else ends the walk and is
 * returned, else 0 or a negative errno. */
int region_walk_process_events(struct region_event_walk_state *walk, struct session *session,
			       uint32_t process, struct problem *problem);

#endif
