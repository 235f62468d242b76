/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * SQL over results.db, for people and programs. The views have short names here: "samples" is
 * kymo_samples. They hide those of rocpd, which the file itself keeps for readers of rocpd.
 */
#ifndef KYMO_OUTPUT_QUERY_QUERY_H
#define KYMO_OUTPUT_QUERY_QUERY_H

#include <stdio.h>

#include "analysis/session.h"

enum query_format { QUERY_TABLE, QUERY_CSV, QUERY_JSON };

/* The words of the formats, in the order of the enumeration. */
#define QUERY_FORMAT_WORDS "table,csv,json"

struct query_options {
	enum query_format format;
	size_t columns; /* of the terminal, for tables; 0: nothing is cut */
};

/* Of a session that has its symbols: its database is made for the query alone. */
int query_session(struct session *session, const char *sql, const struct query_options *options,
		  FILE *stream, struct problem *problem);
/* Of a results.db that is there. Nothing is written to it. */
int query_database_file(const char *path, const char *sql, const struct query_options *options,
			FILE *stream, struct problem *problem);
/* "SELECT * FROM name": -EINVAL where no table is called so. `rows` 0: all. */
int query_format_table_sql(const char *name, size_t rows, char *sql, size_t size,
			   struct problem *problem);

#endif
