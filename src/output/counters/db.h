/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * results.db as a file.
 */
#ifndef KYMO_OUTPUT_COUNTERS_DB_H
#define KYMO_OUTPUT_COUNTERS_DB_H

#include "analysis/session.h"

/* Makes an empty file in TMPDIR and puts its name into `path`; the caller unlinks it. */
int results_database_make_temporary_file(char *path, size_t size, struct problem *problem);
/* All tables of a session that has its symbols, into the empty file at `path`. */
int results_database_create(struct session *session, const char *path, struct problem *problem);

#endif
