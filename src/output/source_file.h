/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Opening source files. The program's debug information names them, so they may be gone, newer than
 * the program, or no source at all; and lines of them go into results. Only regular files of
 * bearable size are read, and what only root may read is not shown because a program of somebody
 * else names it.
 */
#ifndef KYMO_OUTPUT_SOURCE_FILE_H
#define KYMO_OUTPUT_SOURCE_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

/* Whether the name ends as those of source files do. Others are not opened because a program says
 * so. */
bool source_file_has_source_name(const char *path);
/* NULL with errno: it cannot be read, or must not be: EFBIG, EACCES (also of what only root may
 * read), those of foreign_open_file(). `ret_status` may be NULL. */
FILE *source_file_open(const char *path, struct stat *ret_status);

#endif
