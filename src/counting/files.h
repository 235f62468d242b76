/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Files of counter definitions, and the one that kymo comes with.
 */
#ifndef KYMO_COUNTING_FILES_H
#define KYMO_COUNTING_FILES_H

#include <stddef.h>

#include "common/problem.h"

/* *text is malloc'ed. 0 or negative errno. */
int counter_definitions_read_file(const char *path, char **text, size_t *size,
				  struct problem *problem);
/* kymo's own; in the build tree or where it is installed. */
int counter_definitions_read_shipped(char **text, size_t *size);

#endif
