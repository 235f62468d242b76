/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What programs in Python need before their first line (share/kymo/python/start).
 */
#ifndef KYMO_LAUNCH_PYTHON_START_H
#define KYMO_LAUNCH_PYTHON_START_H

#include "launch/launch.h"

/* Is setup code to run, or are there builtins that mark what is recorded? */
bool launch_has_python_start(const struct launch *launch);
/* The variable PYTHONPATH with kymo's directory in front, for the caller to free. */
int launch_format_python_path(char *const *environment, char **ret, struct problem *problem);

#endif
