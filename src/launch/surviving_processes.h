/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Processes of a session that go on after the program that kymo started has ended: daemons, jobs in
 * the background. They go on recording; kymo does not wait for them.
 */
#ifndef KYMO_LAUNCH_SURVIVING_PROCESSES_H
#define KYMO_LAUNCH_SURVIVING_PROCESSES_H

#include <stddef.h>
#include <sys/types.h>

/* How many there are; *ret_pid is one of them. */
size_t surviving_processes_count(const char *session, pid_t *ret_pid);
/* Waits until what ended processes recorded is in their files (ten seconds at most, with a
 * warning then). */
void wait_for_ended_processes_data(const char *session);
/* The same of short processes alone, which have no spool file; *ret is the caller's, may be NULL.
 */
size_t surviving_processes_get_short_lived(const char *session, pid_t **ret);

#endif
