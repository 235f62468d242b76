/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The times of which regions count: the collection windows of the process, as far as they lie in
 * the part of the session that is asked for. What lies across an edge counts with the part inside:
 * a call that goes on behind a window is open there, whatever becomes of it, and one that is met
 * again in a later window is the same call.
 */
#ifndef KYMO_ANALYSIS_REGIONS_WINDOWS_H
#define KYMO_ANALYSIS_REGIONS_WINDOWS_H

#include "analysis/regions/walk.h"

/* Scan: a window opened or closed. 0, -EBADMSG or -ENOMEM. */
int region_windows_scan_record(struct process_regions_data *regions,
			       struct spool_record_payload_cursor *payload);
/* Fills walk->windows for its process. 0 or -ENOMEM. */
int region_windows_init(struct region_event_walk_state *walk);
void region_windows_deinit(struct region_event_walk_state *walk);
/* Before the events of a thread. */
void region_windows_begin_thread(struct region_event_walk_state *walk);
/* Before anything that happens at this time: windows may open or close before it. */
int region_windows_advance(struct region_event_walk_state *walk, uint64_t time_ns);

#endif
