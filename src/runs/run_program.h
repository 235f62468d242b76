/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Running a program under kymo, from the command line to the results and the exit status: what
 * `kymo sample` and `kymo instrument` have in common.
 *
 * The program comes first. Whatever goes wrong on kymo's side before the start (no result
 * directory, no library, a program that cannot be profiled) is one line, and the program runs
 * unprofiled, unless STRICT; whatever goes wrong afterwards is reported, and the exit status is
 * still the program's. Mistakes on the command line, in the environment or in configuration files
 * end kymo before the start, since nobody would notice them otherwise.
 */
#ifndef KYMO_RUNS_RUN_PROGRAM_H
#define KYMO_RUNS_RUN_PROGRAM_H

#include "launch/launch.h"
#include "launch/target.h"

/* What a command does beside; any may be NULL. */
struct profiling_run_callbacks {
	/* The session directory was made, the program has not started: 0, or a negative errno and
	 * the program runs unprofiled. */
	int (*start)(void *context, struct launch *launch, const struct target *target,
		     struct problem *problem);
	/* The program has ended as `end` says; is it to be run once more? What counts as its status
	 * is the first one that is not 0. */
	bool (*again)(void *context, struct launch *launch,
		      const struct supervised_program_end *end);
	/* The program has ended for good, results are not written yet. Also after a failed start.
	 */
	void (*end)(void *context, struct launch *launch);
	/* Writes results of its own, with a summary that stands for the usual one. */
	void (*write_results)(void *context, const struct launch *launch, const char *prefix);
	/* What processes do that go on after the program's end is lost, for kymo takes part in it.
	 */
	bool measures_only_with_kymo;
	/* Stacks alone are wanted, which can be had from outside of the program as well. */
	bool only_samples;
	const char *unprofiled_advice; /* advice behind "cannot be profiled because ..." */
	void *context;
};

/* launch->settings, arguments and start are set; the rest is made here. An exit status; does not
 * return when the program ran. */
int run_program(struct launch *launch, const struct profiling_run_callbacks *beside);

#endif
