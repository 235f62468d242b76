/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The program to run: where it is, and whether libkymo can be preloaded into it.
 *
 * What nothing can be preloaded into still runs, sampled from outside or not at all; `obstacle`
 * then says why.
 */
#ifndef KYMO_LAUNCH_TARGET_H
#define KYMO_LAUNCH_TARGET_H

#include <stdbool.h>

#include "common/problem.h"

struct target {
	char path[4096];                  /* what to execute */
	char obstacle[1024];              /* why nothing can be preloaded; "" when it can */
	bool can_be_sampled_from_outside; /* in spite of the obstacle */
	bool is_go;                       /* and cannot be sampled from inside (common/go_note.h) */
};

/* Finds `name` as the shell would. Returns 0, or EXIT_PROGRAM_NOT_FOUND or
 * EXIT_PROGRAM_NOT_EXECUTABLE with the reason in `problem`. */
int target_find_program(const char *name, struct target *ret, struct problem *problem);
/* Fills `obstacle` for `path`. 0, or EXIT_PROGRAM_NOT_FOUND when its interpreter is missing. */
int target_find_obstacle(struct target *target, struct problem *problem);

#endif
