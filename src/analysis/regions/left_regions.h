/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regions that are still open when a region around them ends alone (END_OTHER, how 0). Some
 * overlap it and have an end of their own later; the end of the others is missing, and they last
 * until then. Which is which is known only later, so where there are such records the events of the
 * process are read once more, and before everything else, to note for each of them whether its end
 * comes: a bit of knowledge, one byte, for each region that was left so, in the order of the data.
 */
#ifndef KYMO_ANALYSIS_REGIONS_LEFT_REGIONS_H
#define KYMO_ANALYSIS_REGIONS_LEFT_REGIONS_H

#include "analysis/regions/walk.h"

/* The region at `position` of the stack ends alone now. Ends those inside it that have no end of
 * their own: they are on the stack as before, marked as ended. */
int left_regions_end_lost_ones(struct region_event_walk_state *walk, size_t position,
			       uint64_t time_ns);
/* The entry has an end of its own. */
static inline void left_regions_note_own_end(const struct region_event_walk_state *walk,
					     const struct region_stack_entry *entry)
{
	if (walk->is_left_survey && entry->left_number)
		walk->process_regions->left_region_ended[entry->left_number - 1] = 1;
}
/* The process gave the outermost one of the region up: nobody waits for its end any more. */
int left_regions_forget(struct region_event_walk_state *walk, uint32_t region);

/* Reads all events of the process and notes it. `walk`: as for region_walk_process_events(). */
int left_regions_survey_process(struct session *session, uint32_t process, struct problem *problem);

#endif
