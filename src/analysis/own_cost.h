/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What kymo cost the programs of a session, in CPU time: its parts, measured or estimated, and what
 * the whole tree took (docs/internals/own-cost.md). The work of the kymo command is not in it.
 */
#ifndef KYMO_ANALYSIS_OWN_COST_H
#define KYMO_ANALYSIS_OWN_COST_H

#include "analysis/session.h"

struct own_cost {
	/* Measured where it was done. */
	uint64_t handler_ns, helper_process_ns;
	uint64_t start_fork_exec_end_ns; /* start, fork, exec and end */
	/* Estimated: what one takes was measured, and how many there were is known. */
	uint64_t load_ns;             /* of the executed images */
	uint64_t kernel_overhead_ns;  /* signals, perf events at changes of context, memory at forks
				       */
	uint64_t total_ns;            /* of all these */
	uint64_t process_tree_cpu_ns; /* CPU time of all processes, kymo's share included; 0: not
					 known */
	uint64_t signal_count, executed_image_count, fork_count;
};

struct own_cost compute_profiler_own_cost(const struct session *session);

#endif
