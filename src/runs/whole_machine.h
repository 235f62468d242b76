/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo sample --all-cpus`: samples all that runs on the machine, or a part of it, until a program
 * ends, a time is over, or somebody ends it.
 */
#ifndef KYMO_RUNS_WHOLE_MACHINE_H
#define KYMO_RUNS_WHOLE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#include "settings/effective.h"

/* What is asked for; NULL: not. */
struct whole_machine_request {
	bool all_cpus;
	const char *cgroup, *container, *user;
};

static inline bool whole_machine_is_requested(const struct whole_machine_request *request)
{
	return request->all_cpus || request->cgroup || request->container || request->user;
}

/* `arguments`: of the program, NULL-terminated; none: the end comes otherwise. An exit status; does
 * not return when a program ran. */
int whole_machine_sample(const struct whole_machine_request *request,
			 const struct effective_settings *settings, char **arguments, size_t count);

#endif
