/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Progress points of programs that know nothing of kymo: addresses at which hardware breakpoints
 * count visits.
 *
 * A breakpoint is a perf event (PERF_TYPE_BREAKPOINT) with attr.sigtrap: the thread that reaches
 * the address gets a SIGTRAP of ours before the instruction. New threads inherit the events
 * (attr.inherit_thread), so that no visit of theirs is missed. The processor has four.
 *
 * Background thread only, except where noted.
 */
#ifndef KYMO_CAUSAL_POINTS_NAMED_H
#define KYMO_CAUSAL_POINTS_NAMED_H

#include "core/runtime.h"
#include "kymo/causal.h"

#define POINTS_NAMED_MAX 4u

/* All addresses of this moment are told between begin and end; those told before and not now are
 * given up. */
void points_named_begin(void);
void points_named_at(struct runtime *runtime, uint64_t address, const char *name,
		     enum causal_point_kind kind);
void points_named_end(struct runtime *runtime);
/* Every round: threads that were made before the events were. */
void points_named_follow(struct runtime *runtime);
/* Forked child: its threads have no events yet. */
void points_named_forked(void);

#endif
