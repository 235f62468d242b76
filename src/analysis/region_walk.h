/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Region records to balanced events, thread by thread.
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
	uint32_t node; /* the visitor's */
};

struct region_walk {
	struct session *session;
	struct process_private *process;
	int (*visit)(struct region_walk *walk, void *context);
	void *context;

	struct model_event event; /* being visited */
	size_t position;          /* BEGIN, END: its place in open[], where it is still at END */
	bool unfinished;          /* END: the data ended, not the region */
	uint64_t unbalanced;      /* regions ended by an outer one, or never begun */

	struct region_open *open; /* outermost first */
	size_t depth, open_capacity;
	struct region_open *told; /* open regions as a span says */
	size_t told_depth, told_capacity;
	struct spool_cursor cursor;
	uint64_t ticks, last_ns; /* of the last record; last_ns never goes back */
	uint64_t from_ns, to_ns;
	bool in_window, done; /* done: nothing more of this thread is wanted */
	bool pending;         /* `event` waits for values that may follow */
	struct region_values values;
};

/* Visits every event of a process. `visit` returns 0 to go on; anything else ends the walk and is
 * returned, else 0 or a negative errno. */
int region_walk_process(struct region_walk *walk, struct session *session, uint32_t process,
			struct problem *problem);

#endif
