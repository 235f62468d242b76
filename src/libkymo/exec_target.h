/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is about to be executed: a look at the file's first bytes, so that a process that leaves no
 * data can be named together with the reason.
 */
#ifndef KYMO_LIBKYMO_EXEC_TARGET_H
#define KYMO_LIBKYMO_EXEC_TARGET_H

#include <limits.h>
#include <stdbool.h>

struct exec_target {
	bool found;                          /* there is such a file, and it may be read */
	const char *path;                    /* where */
	const char *profiling_obstacle_text; /* why its process cannot be profiled (goes behind its
						path); NULL */
	bool can_be_sampled_from_outside;    /* in spite of that */
	bool must_not_preload; /* another C library, which would end the program for libkymo */
};

/* Four system calls, and one for each note of the file. */
struct exec_target exec_target_examine(const char *path);
/* The same for a name without a slash, which is looked for as execvp(3) does it. The path of the
 * answer is in `space`. */
struct exec_target exec_target_find_in_search_path(const char *name, char space[PATH_MAX]);

#endif
