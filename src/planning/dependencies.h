/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The libraries that a program would load, without running it: its loader is asked, as ldd(1) does.
 */
#ifndef KYMO_PLANNING_DEPENDENCIES_H
#define KYMO_PLANNING_DEPENDENCIES_H

#include "common/problem.h"

/* Paths of libraries, malloc'ed, NULL-terminated; none for what has no loader. */
int instrument_list_dependencies(const char *program, char ***ret, struct problem *problem);
void instrument_dependencies_destroy(char **list);

#endif
