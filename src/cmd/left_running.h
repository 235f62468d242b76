/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Processes of a session that go on after the program that kymo started has ended: daemons, jobs in
 * the background. They go on recording; kymo does not wait for them.
 */
#ifndef KYMO_CMD_LEFT_RUNNING_H
#define KYMO_CMD_LEFT_RUNNING_H

#include <stddef.h>
#include <sys/types.h>

/* How many there are; *ret_pid is one of them. */
size_t left_running_count(const char *session, pid_t *ret_pid);

#endif
