/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Progress points of programs that know nothing of kymo: addresses at which hardware breakpoints
 * count visits; and counters of programs that count by themselves, whose increments do (coz.h).
 *
 * A breakpoint is a perf event (PERF_TYPE_BREAKPOINT) with attr.sigtrap: the thread that reaches
 * the address gets a SIGTRAP of ours before the instruction, the one that wrote to the counter
 * behind it. New threads inherit the events (attr.inherit_thread), so that no visit of theirs is
 * missed. The processor has four. A visit costs microseconds: what is visited too often is given
 * up.
 *
 * Background thread only, but for what says otherwise.
 */
#ifndef KYMO_CAUSAL_POINTS_NAMED_H
#define KYMO_CAUSAL_POINTS_NAMED_H

#include "core/runtime.h"

#define POINTS_NAMED_MAX 4u

enum points_named_what {
	POINTS_NAMED_CODE,
	POINTS_NAMED_COUNTER,
	POINTS_NAMED_CALLS /* no breakpoint: causal_entered() tells */
};

/* All addresses of this moment are told between begin and end; those told before and not now are
 * given up. `point` as causal_point() gave it. */
void points_named_begin(void);
void points_named_at(struct runtime *runtime, enum points_named_what what, uint64_t address,
		     uint32_t point);
void points_named_end(struct runtime *runtime);
/* Every round: threads that were made before the events were, points that cost too much. */
void points_named_follow(struct runtime *runtime);
/* Anywhere, in signal handlers too. Samples at such an address are of the time that visits take,
 * not of the one instruction there. */
bool points_named_is_visited(uint64_t address);
/* Forked child: its threads have no events yet. */
void points_named_forked(void);

#endif
