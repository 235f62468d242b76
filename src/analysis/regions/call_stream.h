/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The calls of instrumented functions on one thread, as part of the walk over its events.
 */
#ifndef KYMO_ANALYSIS_REGIONS_CALL_STREAM_H
#define KYMO_ANALYSIS_REGIONS_CALL_STREAM_H

#include "analysis/regions/walk.h"

/* Before the first thread. 0 or -ENOMEM. */
int call_stream_init(struct region_event_walk_state *walk);
void call_stream_deinit(struct region_event_walk_state *walk);
/* The thread's parts are those from `first` on, as long as they are its own. Where the next
 * thread's begin. */
size_t call_stream_begin_thread(struct region_event_walk_state *walk, size_t first);
/* Whether something would be taken. */
bool call_stream_has_words_until(const struct region_event_walk_state *walk, uint64_t until);
/* Takes all words up to this time (ticks, inclusive). Returns as analysis/regions/stack.h says. */
int call_stream_apply_words_until(struct region_event_walk_state *walk, uint64_t until);

#endif
