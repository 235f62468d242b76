/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Progress points of programs that know nothing of kymo: addresses at which hardware breakpoints
 * count visits.
 *
 * A breakpoint is a perf event (PERF_TYPE_BREAKPOINT) with attr.sigtrap: the thread that reaches
 * the address gets a SIGTRAP of ours before the instruction. New threads inherit the events
 * (attr.inherit_thread), so that no visit of theirs is missed. The processor has four. A visit
 * costs microseconds: what is visited too often is given up.
 *
 * Background thread only, but for what says otherwise.
 */
#ifndef KYMO_CAUSAL_POINTS_NAMED_H
#define KYMO_CAUSAL_POINTS_NAMED_H

#include "core/runtime.h"

#define POINTS_NAMED_BREAKPOINT_SLOTS 4u

enum points_named_address_kind {
	POINTS_NAMED_ADDRESS_OF_CODE,
	POINTS_NAMED_ADDRESS_OF_TRACED_FUNCTION /* no breakpoint: causal_handle_function_entry()
						   tells */
};

/* All addresses of this moment are passed between begin and end; those passed before and not now
 * are given up. `point` as causal_find_or_add_point() gave it. */
void points_named_begin_update(void);
void points_named_add_address(struct runtime *runtime, enum points_named_address_kind what,
			      uint64_t address, uint32_t point);
void points_named_end_update(struct runtime *runtime);
/* Every round: threads that were made before the events were, points that cost too much. */
void points_named_run_background_round(struct runtime *runtime);
/* Anywhere, in signal handlers too. Samples at such an address are of the time that visits take,
 * not of the one instruction there. */
bool points_named_has_breakpoint_at(uint64_t address);
/* Forked child: its threads have no events yet. */
void points_named_reset_after_fork(void);

#endif
