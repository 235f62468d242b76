/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is open on the thread being walked, and how events reach the visitor; for the readers of
 * both streams (region_walk.c, call_stream.c).
 *
 * Functions return 0, what the visitor returned, WALK_DAMAGED, or -ENOMEM.
 */
#ifndef KYMO_ANALYSIS_REGION_STACK_H
#define KYMO_ANALYSIS_REGION_STACK_H

#include <errno.h>
#include <limits.h>

#include "analysis/region_walk.h"

/* Not an errno, so that no callback can mean it. */
#define WALK_DAMAGED INT_MIN

/* Regions can be MAX_DEPTH deep (65535 at most), calls SHADOW_ENTRIES; more is damage. */
#define WALK_DEPTH_MAX ((size_t)1 << 18)

static inline int region_stack_push(struct region_open **open, size_t *depth, size_t *capacity,
				    const struct region_open *entry)
{
	if (*depth >= WALK_DEPTH_MAX)
		return WALK_DAMAGED;
	if (array_reserve((void **)open, capacity, *depth, sizeof(*entry)) < 0)
		return -ENOMEM;
	(*open)[(*depth)++] = *entry;
	return 0;
}

/* Begins what is told of elsewhere than by its own record. */
int region_stack_begin(struct region_walk *walk, const struct region_open *entry);
/* Takes an entry out; those inside it stay. */
void region_stack_remove(struct region_walk *walk, size_t position);
/* Ends what no record ended. */
int region_stack_imply_end(struct region_walk *walk, size_t position, uint64_t time_ns);
/* The data of the thread ends. */
int region_stack_end_all(struct region_walk *walk, uint64_t time_ns);
/* Before anything that happens at this time: the window may begin or end there. */
int region_stack_cross_window(struct region_walk *walk, uint64_t time_ns);
/* Visits the event that waited for its values. */
int region_stack_flush(struct region_walk *walk);
/* Makes what is open of one stream (`calls`) what walk->told says. */
int region_stack_reconcile(struct region_walk *walk, bool calls);
/* What is open of one stream, as told; the first `count` of it, outermost first. */
int region_stack_tell(struct region_walk *walk, bool calls, uint64_t count);

static inline uint64_t region_stack_time(struct region_walk *walk, uint64_t ticks)
{
	uint64_t time_ns = clock_map_boottime(&walk->process->clock, ticks);

	return time_ns < walk->last_ns ? walk->last_ns : time_ns;
}

#endif
