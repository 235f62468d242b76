/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A run whose program is sampled from outside (src/outside): because it was asked for, or because
 * nothing can be preloaded into the program.
 */
#ifndef KYMO_RUNS_FROM_OUTSIDE_H
#define KYMO_RUNS_FROM_OUTSIDE_H

#include <stdbool.h>

#include "launch/launch.h"
#include "launch/target.h"
#include "outside/collector.h"

/* `only_samples`: the command wants nothing else of the program. */
bool from_outside_is_wanted(const struct launch *launch, const struct target *target,
			    bool only_samples);
/* Makes the directories, the collector and the program's environment, which is the caller's own;
 * says so in one line where it was not asked for. 0, or negative errno with the reason. */
int from_outside_prepare(struct launch *launch, const struct target *target, char ***ret,
			 struct problem *problem);
/* The same for a process that runs already: samples it from now on. Its directories are made. */
int from_outside_attach(struct launch *launch, pid_t pid, struct problem *problem);
/* A run with libkymo: what it finds in the tree that nothing can be loaded into is sampled from
 * outside, if that is permitted. */
void from_outside_serve(struct launch *launch);
/* Is anything permitted? 0, or negative errno with what forbids it. */
int from_outside_check(struct launch *launch, struct problem *problem);
/* The same for the whole machine, or what of it is in the scope, which lives as long. */
int from_outside_check_machine(struct launch *launch, const struct outside_scope *scope,
			       struct problem *problem);
/* Samples it from now on. The directories are made. */
int from_outside_start_machine(struct launch *launch, struct problem *problem);
/* The program has ended. */
struct outside_result from_outside_finish(struct launch *launch);

#endif
