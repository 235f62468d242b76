/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Asks a plan server for what a process will ask for, so that it has all plans when it does.
 */
#ifndef KYMO_PLANNING_CLIENT_H
#define KYMO_PLANNING_CLIENT_H

#include <sys/types.h>

#include "common/problem.h"

/* Every file that is mapped executable. 0 or negative errno. */
int plan_client_request_plans_of_process(const char *socket, pid_t pid, struct problem *problem);

#endif
