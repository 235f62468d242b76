/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Opening and reading the files that profiled processes leave behind: regular files only, whatever
 * a damaged directory has under their names, and reads that are short only at the end.
 */
#ifndef KYMO_ANALYSIS_RECORD_FILE_H
#define KYMO_ANALYSIS_RECORD_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/problem.h"

/* 0 with the descriptor, which the caller closes, and the size in bytes; negative errno. After an
 * error *ret_descriptor may be open as well. */
int record_file_open_and_get_size(const char *path, int *ret_descriptor, uint64_t *ret_size,
				  struct problem *problem);
/* Bytes read, up to `size`; negative errno. */
ssize_t record_file_read_at_offset(int descriptor, void *buffer, size_t size, uint64_t offset);

#endif
