/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which process of a parallel job this is, as launchers say it in the environment.
 *
 * No state, no libc, no allocation: usable in the profiled process before its constructors ran.
 */
#ifndef KYMO_COMMON_RANK_H
#define KYMO_COMMON_RANK_H

#include <stdbool.h>
#include <stdint.h>

struct process_rank {
	uint32_t rank, size; /* size 0: not said */
	const char *source;  /* the variable, or "MPI_COMM_WORLD" */
};

/* Reads `environment` (as environ). False: nothing says so. */
bool rank_read_from_environment(char *const *environment, struct process_rank *ret);

#endif
