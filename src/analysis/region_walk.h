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
#ifndef KYMO_ANALYSIS_REGION_WALK_H
#define KYMO_ANALYSIS_REGION_WALK_H

#include "analysis/region_values.h"
#include "analysis/session_private.h"

struct region_open {
	uint64_t begin_ns;
	uint32_t region;
	uint32_t node;     /* the visitor's */
	uint32_t function; /* id of a call; 0: begun by a region record */
	bool before;       /* a call whose entry is not in the data: of before a fork, or lost */
};

/* The words of the thread being walked. */
struct call_stream {
	size_t part, part_end; /* those that are left, in process_calls.parts */
	struct spool_buffer buffer;
	const uint8_t *at, *end; /* of the part that is being read */
	uint64_t ticks;          /* of the last word */
	uint32_t *open;          /* calls that are open, by function id */
};

struct region_walk {
	struct session *session;
	struct process_private *process;
	struct problem *problem;
	int (*visit)(struct region_walk *walk, void *context);
	void *context;

	struct model_event event; /* being visited */
	size_t position;          /* BEGIN, END: its place in open[], where it is still at END */
	bool unfinished;          /* END: the data ended, not the region */
	uint64_t unbalanced;      /* regions ended by an outer one, or never begun */
	uint64_t unwound;         /* calls ended by an outer one */
	uint64_t unmatched;       /* exits of calls that had not begun */
	bool calls_only;          /* set by the caller: no region records */

	struct region_open *open; /* outermost first */
	size_t depth, open_capacity;
	struct region_open *told; /* what is open, as the start of a span or of a part says */
	size_t told_depth, told_capacity;
	struct spool_cursor cursor;
	uint64_t ticks, last_ns; /* of the last record; last_ns never goes back */
	uint64_t from_ns, to_ns;
	bool in_window, done; /* done: nothing more of this thread is wanted */
	bool pending;         /* `event` waits for values that may follow */
	struct region_values values;
	struct call_stream calls;
};

/* Visits every event of a process. `visit` returns 0 to go on; anything else ends the walk and is
 * returned, else 0 or a negative errno. */
int region_walk_process(struct region_walk *walk, struct session *session, uint32_t process,
			struct problem *problem);

#endif
