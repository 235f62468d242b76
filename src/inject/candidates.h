/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which threads of a process to try first: those that wait in a system call that goes on after a
 * stop as if nothing had happened; then those that wait otherwise; then those that run.
 */
#ifndef KYMO_INJECT_CANDIDATES_H
#define KYMO_INJECT_CANDIDATES_H

#include <stddef.h>
#include <sys/types.h>

#define CANDIDATES_MAX 48

struct candidates {
	pid_t tids[CANDIDATES_MAX]; /* best first */
	size_t count;
};

/* 0 or negative errno. */
int candidates_list(pid_t pid, struct candidates *ret);

#endif
