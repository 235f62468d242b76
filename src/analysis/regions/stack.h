/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is open on the thread being walked, and how events reach the visitor; for the readers of
 * both streams (walk.c, call_stream.c).
 *
 * Functions return 0, what the visitor returned, REGION_WALK_DAMAGED_RECORD, or -ENOMEM.
 */
#ifndef KYMO_ANALYSIS_REGIONS_STACK_H
#define KYMO_ANALYSIS_REGIONS_STACK_H

#include <errno.h>
#include <limits.h>

#include "analysis/regions/walk.h"

/* Not an errno, so that no callback can mean it. */
#define REGION_WALK_DAMAGED_RECORD INT_MIN

/* Regions can be MAX_DEPTH deep (65535 at most), calls SHADOW_ENTRIES_MAX; more is damage. */
#define REGION_STACK_DEPTH_MAX ((size_t)1 << 18)

static inline int region_stack_push(struct region_stack_entry **open, size_t *depth,
				    size_t *capacity, const struct region_stack_entry *entry)
{
	if (*depth >= REGION_STACK_DEPTH_MAX)
		return REGION_WALK_DAMAGED_RECORD;
	if (array_reserve_one_more((void **)open, capacity, *depth, sizeof(*entry)) < 0)
		return -ENOMEM;
	(*open)[(*depth)++] = *entry;
	return 0;
}

/* Begins a region that something else than its own record reports. */
int region_stack_begin_implied_region(struct region_event_walk_state *walk,
				      const struct region_stack_entry *entry);
/* Takes an entry out; those inside it stay. */
void region_stack_remove(struct region_event_walk_state *walk, size_t position);
/* Visits a begin or end that no record tells of. */
int region_stack_visit_implied(struct region_event_walk_state *walk,
			       enum model_region_event_kind kind, size_t position,
			       uint64_t time_ns);
/* Ends what no record ended. */
int region_stack_end_entry_without_record(struct region_event_walk_state *walk, size_t position,
					  uint64_t time_ns);
/* The data of the thread ends. */
int region_stack_end_all(struct region_event_walk_state *walk, uint64_t time_ns);
/* Visits the event that waited for its values. */
int region_stack_visit_pending_event(struct region_event_walk_state *walk);
/* Makes what is open of one stream (`calls`) what walk->reported says. */
int region_stack_sync_with_reported_open(struct region_event_walk_state *walk, bool calls);
/* What is open of one stream, as told; the first `count` of it, outermost first. */
int region_stack_copy_open_to_reported(struct region_event_walk_state *walk, bool calls,
				       uint64_t count);

static inline uint64_t region_stack_ticks_to_time(struct region_event_walk_state *walk,
						  uint64_t ticks)
{
	uint64_t time_ns = clock_map_ticks_to_boottime(&walk->process->clock, ticks);

	return time_ns < walk->last_ns ? walk->last_ns : time_ns;
}

#endif
