/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Rows of one table, column after column.
 */
#ifndef KYMO_OUTPUT_DATABASE_ROWS_H
#define KYMO_OUTPUT_DATABASE_ROWS_H

#include <errno.h>
#include <stdio.h>

#include "output/sql_text.h"

struct table_rows {
	sqlite3_stmt *statement;
	int column; /* the last one bound */
	int error;
};

/* For `columns` of them. The end is table_rows_finish(). */
static inline void table_rows_begin(struct table_rows *rows, sqlite3 *handle, const char *table,
				    int columns)
{
	char text[256];
	int used = snprintf(text, sizeof(text), "INSERT INTO %s VALUES(?", table);

	for (int i = 1; i < columns; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used, ",?");
	snprintf(text + used, sizeof(text) - (size_t)used, ")");
	*rows = (struct table_rows){0};
	if (sqlite3_prepare_v2(handle, text, -1, &rows->statement, NULL) != SQLITE_OK)
		rows->error = -EIO;
}

static inline void put_text(struct table_rows *rows, const char *text)
{
	rows->column++;
	if (text)
		sql_bind_text(rows->statement, rows->column, text);
	else
		sqlite3_bind_null(rows->statement, rows->column);
}

static inline void put_integer(struct table_rows *rows, int64_t value)
{
	sqlite3_bind_int64(rows->statement, ++rows->column, value);
}

/* SQLite's numbers have a sign: what needs the last bit is a number nobody has. */
static inline void put_count(struct table_rows *rows, uint64_t value)
{
	if (value > INT64_MAX)
		sqlite3_bind_null(rows->statement, ++rows->column);
	else
		put_integer(rows, (int64_t)value);
}

static inline void put_null_unless(struct table_rows *rows, bool is_known, uint64_t value)
{
	put_count(rows, is_known ? value : UINT64_MAX);
}

static inline void put_row(struct table_rows *rows)
{
	if (rows->error == 0 && sqlite3_step(rows->statement) != SQLITE_DONE)
		rows->error = -EIO;
	sqlite3_reset(rows->statement);
	rows->column = 0;
}

static inline int table_rows_finish(struct table_rows *rows)
{
	sqlite3_finalize(rows->statement);
	return rows->error;
}

#endif
