/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The collector outside of the profiled program: a thread of the kymo command that samples programs
 * which nothing can be preloaded into, by perf events. It leaves the same spool files as libkymo
 * does.
 */
#ifndef KYMO_OUTSIDE_COLLECTOR_H
#define KYMO_OUTSIDE_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/problem.h"
#include "outside/scope.h"

struct outside_collector;

struct outside_options {
	uint64_t period_ns;
	uint64_t delay_ns, duration_ns; /* samples from then on, and for so long; 0: to the end */
	/* Is given, at the end, each file that its path alone does not lead to. */
	void (*keep_file)(int descriptor);
	bool with_kernel_frames; /* where that is permitted */
	bool with_off_cpu;       /* the same: where threads block, and who wakes them */
	uint32_t depth_max;
	uint32_t stack_bytes_max; /* copied of each stack, where the rings have room */
	/* Of outside_collector_start_machine(); lives as long as the collector. NULL: processes are
	 * chosen. */
	const struct outside_scope *scope;
};

/* What was found out, for messages. */
struct outside_result {
	uint64_t samples, lost;
	uint64_t unknown_scope; /* samples of processes that ended before kymo looked at them */
};

/* Tries what is permitted, before the program is started. 0, or negative errno with the reason. */
int outside_collector_create(const struct outside_options *options, struct outside_collector **ret,
			     struct problem *problem);
/* Are kernel frames permitted? If not, *ret_why says what forbids them. */
bool outside_collector_has_kernel_frames(const struct outside_collector *collector,
					 const char **ret_why);
/* What of with_off_cpu is not permitted, and why; NULL: nothing. */
const char *outside_collector_find_off_cpu_gap(const struct outside_collector *collector);
bool outside_collector_has_off_cpu(const struct outside_collector *collector);
/* Where spool files go: SESSION/spool. */
int outside_collector_set_directory(struct outside_collector *collector, const char *session,
				    struct problem *problem);
/* Samples a process from its next exec(2) on, with all that it starts. Called once, before it goes
 * on. 0 or negative errno. */
int outside_collector_start(struct outside_collector *collector, pid_t pid);
/* Samples what libkymo asks for in the session's processes (common/outside_request.h). */
int outside_collector_serve(struct outside_collector *collector);
/* Samples a process that runs, all its threads, and all that it starts from now on. */
int outside_collector_attach(struct outside_collector *collector, pid_t pid);
/* Samples what is in the scope, on all CPUs. */
int outside_collector_start_machine(struct outside_collector *collector);
/* The program has ended: takes what the rings hold still, and frees everything. */
struct outside_result outside_collector_finish(struct outside_collector *collector);

#endif
