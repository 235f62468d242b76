/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Why a stream could not be written. stdio keeps only that something failed, at a write long ago.
 */
#ifndef KYMO_FILES_STREAM_H
#define KYMO_FILES_STREAM_H

#include <stdbool.h>
#include <stdio.h>

#include "common/problem.h"

/* Writes out what is buffered. 0, or the negative errno of this or of an earlier failure, -EIO
 * where it cannot be told. */
int stream_flush(FILE *stream);
/* The same, with a problem that says "cannot write `what`". */
int stream_flush_or_set_problem(FILE *stream, const char *what, struct problem *problem);

#endif
