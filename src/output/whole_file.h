/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Files that are there completely or not at all: bytes go to a temporary file beside the result,
 * which takes the result's name only once everything is on disk.
 */
#ifndef KYMO_OUTPUT_WHOLE_FILE_H
#define KYMO_OUTPUT_WHOLE_FILE_H

#include <stdint.h>
#include <stdio.h>

#include "common/problem.h"

/* Calls `write` with a stream; 0 or negative errno with problem set, like `write` itself. `bytes`
 * may be NULL. */
int whole_file_write(const char *path,
		     int (*write)(const void *context, FILE *stream, struct problem *problem),
		     const void *context, uint64_t *bytes, struct problem *problem);

#endif
