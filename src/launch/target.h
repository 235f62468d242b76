/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The program to run: where it is, and whether libkymo can be preloaded into it.
 *
 * What cannot be profiled still runs; `obstacle` then says why it is not profiled.
 */
#ifndef KYMO_LAUNCH_TARGET_H
#define KYMO_LAUNCH_TARGET_H

#include "common/problem.h"

struct target {
	char path[4096];     /* what to execute */
	char obstacle[1024]; /* why it cannot be profiled; "" when it can */
};

/* Finds `name` as the shell would. Returns 0, or EXIT_PROGRAM_NOT_FOUND or
 * EXIT_PROGRAM_NOT_EXECUTABLE with the reason in `problem`. */
int target_find_program(const char *name, struct target *ret, struct problem *problem);
/* Fills `obstacle` for `path`. 0, or EXIT_PROGRAM_NOT_FOUND when its interpreter is missing. */
int target_find_obstacle(struct target *target, struct problem *problem);

#endif
