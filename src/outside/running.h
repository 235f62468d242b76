/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A process that ran before it is sampled: what the kernel would have reported of it comes from
 * /proc.
 */
#ifndef KYMO_OUTSIDE_RUNNING_H
#define KYMO_OUTSIDE_RUNNING_H

#include "outside/events.h"
#include "outside/process.h"

/* Opens events of all threads of a process, and takes down what it executes and maps. 0 or negative
 * errno. */
int outside_running_open(struct outside_world *world, struct outside_events *events, pid_t pid,
			 uint64_t now_ns);
void outside_running_raise_file_limit(void);
/* From /proc. */
void outside_running_read_name(struct outside_world *world, struct outside_thread *thread);

#endif
