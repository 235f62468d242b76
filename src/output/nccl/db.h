/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tables about NCCL in the SQLite results.
 */
#ifndef KYMO_OUTPUT_NCCL_DB_H
#define KYMO_OUTPUT_NCCL_DB_H

#include <sqlite3.h>

#include "analysis/session.h"
#include "common/problem.h"

/* Makes and fills them; the session has NCCL records. 0 or negative errno: the problem has a text
 * if records could not be read, and none if the database is at fault. */
int nccl_db_write_tables(sqlite3 *handle, const struct session *session, struct problem *problem);

#endif
