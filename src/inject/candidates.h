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

#define THREAD_CANDIDATES_MAX 48

struct thread_candidates {
	pid_t tids[THREAD_CANDIDATES_MAX]; /* best first */
	size_t count;
};

/* 0 or negative errno. */
int candidates_list_threads_by_rank(pid_t pid, struct thread_candidates *ret);

#endif
