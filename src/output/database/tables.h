/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The tables of results.db about a session: processes, threads, code, samples, regions, devices,
 * losses. docs/reference/database.md describes them; DATABASE_SCHEMA is their version.
 */
#ifndef KYMO_OUTPUT_DATABASE_TABLES_H
#define KYMO_OUTPUT_DATABASE_TABLES_H

#include <sqlite3.h>

#include "analysis/session.h"

/* Changes where a table or column goes or means something else, not where one is added. */
#define DATABASE_SCHEMA "kymo.db/1"

/* Into an open transaction. 0 or a negative errno; of -EIO the handle has the reason. */
int database_write_tables(sqlite3 *handle, struct session *session, struct problem *problem);

/* The short names of the views, "samples" for kymo_samples: NULL-terminated. */
extern const char *const database_table_names[];
int database_write_waits(sqlite3 *handle, const struct session *session);

#endif
