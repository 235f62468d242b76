/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is about to be executed: a look at the file's first bytes, so that a process that leaves no
 * data can be named together with the reason.
 */
#ifndef KYMO_LIBKYMO_EXEC_TARGET_H
#define KYMO_LIBKYMO_EXEC_TARGET_H

#include <stdbool.h>

struct exec_target {
	bool found;           /* there is such a file, and it may be read */
	const char *obstacle; /* why its process cannot be profiled (goes behind its path); NULL */
};

/* Four system calls. A path without a slash is not looked for. */
struct exec_target exec_target_look(const char *path);

#endif
