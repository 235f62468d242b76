/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Files that are there completely or not at all: bytes go to a temporary file beside the result,
 * which takes the result's name only once everything is on disk.
 */
#ifndef KYMO_FILES_ATOMIC_FILE_H
#define KYMO_FILES_ATOMIC_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "common/problem.h"

/* Calls `write` with a stream; 0 or negative errno with problem set, like `write` itself. `bytes`
 * may be NULL. */
int atomic_file_write_by_callback(const char *path,
				  int (*write)(const void *context, FILE *stream,
					       struct problem *problem),
				  const void *context, uint64_t *bytes, struct problem *problem);

struct atomic_file_part {
	const void *bytes;
	size_t size;
};

enum { ATOMIC_FILE_MODE_BY_UMASK = 0 }; /* the mode of any file that the user makes */

/* For caches and descriptions, which can be made again: writes the parts one behind the other,
 * without waiting for the disk. 0 or negative errno. */
int atomic_file_write_parts(const char *path, mode_t mode, const struct atomic_file_part *parts,
			    size_t count);

#endif
