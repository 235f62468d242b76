/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See query.h. A statement is stepped through twice for a table, first for the widths of its
 * columns: however many rows there are, none is kept.
 */
#include "output/query/query.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output/counters/db.h"
#include "output/database/tables.h"
#include "output/format.h"
#include "output/json_writer.h"

#define COLUMN_WIDTH_MAX 60
#define COLUMNS_MAX      64
#define BUSY_TIMEOUT_MS  2000

/* ---- values ---- */

static const char *column_text(sqlite3_stmt *statement, int column)
{
	const char *text = (const char *)sqlite3_column_text(statement, column);

	return text ? text : "";
}

static bool is_number(sqlite3_stmt *statement, int column)
{
	int type = sqlite3_column_type(statement, column);

	return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

/* 0: all rows were passed to `each`. */
static int step_through(sqlite3_stmt *statement, int (*each)(sqlite3_stmt *, void *), void *context)
{
	int result;

	while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
		int error = each(statement, context);

		if (error)
			return error;
	}
	return result == SQLITE_DONE ? 0 : -EIO;
}

/* ---- tables ---- */

struct table {
	FILE *stream;
	size_t width[COLUMNS_MAX];
	bool is_numeric[COLUMNS_MAX];
	int count;
	uint64_t rows;
};

static int measure_row(sqlite3_stmt *statement, void *context)
{
	struct table *table = context;

	for (int i = 0; i < table->count; i++) {
		size_t width = format_count_text_columns(column_text(statement, i));

		table->width[i] = width > table->width[i] ? width : table->width[i];
		if (sqlite3_column_type(statement, i) != SQLITE_NULL && !is_number(statement, i))
			table->is_numeric[i] = false;
	}
	table->rows++;
	return 0;
}

static void write_cell(const struct table *table, int column, const char *text)
{
	size_t used = format_count_text_columns(text), width = table->width[column];

	if (column)
		fputs("  ", table->stream);
	if (table->is_numeric[column] && used < width)
		fprintf(table->stream, "%*s", (int)(width - used), "");
	if (!table->is_numeric[column] && column + 1 < table->count)
		format_write_padded_to_width(table->stream, text, width);
	else
		format_write_cut_to_width(table->stream, text, width);
}

static int write_table_row(sqlite3_stmt *statement, void *context)
{
	const struct table *table = context;

	for (int i = 0; i < table->count; i++)
		write_cell(table, i, column_text(statement, i));
	fputc('\n', table->stream);
	return 0;
}

/* The widest columns give way first. */
static void fit_widths(struct table *table, size_t columns)
{
	for (;;) {
		size_t used = 2 * (size_t)(table->count - 1);
		int widest = 0;

		for (int i = 0; i < table->count; i++) {
			used += table->width[i];
			widest = table->width[i] > table->width[widest] ? i : widest;
		}
		if (columns == 0 || used <= columns || table->width[widest] <= 12)
			return;
		table->width[widest] -= used - columns < table->width[widest] - 12
						? used - columns
						: table->width[widest] - 12;
	}
}

static int write_table(sqlite3_stmt *statement, FILE *stream, size_t columns)
{
	struct table table = {.stream = stream, .count = sqlite3_column_count(statement)};
	int error;

	for (int i = 0; i < table.count; i++) {
		table.width[i] = format_count_text_columns(sqlite3_column_name(statement, i));
		table.is_numeric[i] = true;
	}
	error = step_through(statement, measure_row, &table);
	if (error)
		return error;
	for (int i = 0; i < table.count; i++) {
		table.is_numeric[i] &= table.rows != 0;
		if (columns && table.width[i] > COLUMN_WIDTH_MAX)
			table.width[i] = COLUMN_WIDTH_MAX;
	}
	fit_widths(&table, columns);
	for (int i = 0; i < table.count; i++)
		write_cell(&table, i, sqlite3_column_name(statement, i));
	fputc('\n', stream);
	sqlite3_reset(statement);
	return step_through(statement, write_table_row, &table);
}

/* ---- formats for programs ---- */

/* RFC 4180. */
static void write_csv_field(FILE *stream, const char *text)
{
	if (!text[strcspn(text, "\",\r\n")]) {
		fputs(text, stream);
		return;
	}
	fputc('"', stream);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', stream);
		fputc(*text, stream);
	}
	fputc('"', stream);
}

static int write_csv_row(sqlite3_stmt *statement, void *context)
{
	FILE *stream = context;

	for (int i = 0; i < sqlite3_column_count(statement); i++) {
		if (i)
			fputc(',', stream);
		write_csv_field(stream, column_text(statement, i));
	}
	fputs("\r\n", stream);
	return 0;
}

static int write_csv(sqlite3_stmt *statement, FILE *stream)
{
	for (int i = 0; i < sqlite3_column_count(statement); i++) {
		if (i)
			fputc(',', stream);
		write_csv_field(stream, sqlite3_column_name(statement, i));
	}
	fputs("\r\n", stream);
	return step_through(statement, write_csv_row, stream);
}

static int write_json_row(sqlite3_stmt *statement, void *context)
{
	struct json_writer *json = context;

	json_object_begin(json, NULL);
	for (int i = 0; i < sqlite3_column_count(statement); i++) {
		const char *name = sqlite3_column_name(statement, i);

		switch (sqlite3_column_type(statement, i)) {
		case SQLITE_INTEGER:
			json_put_signed_integer(json, name, sqlite3_column_int64(statement, i));
			break;
		case SQLITE_FLOAT:
			json_put_real_with_12_digits(json, name,
						     sqlite3_column_double(statement, i));
			break;
		case SQLITE_NULL:
			json_put_null(json, name);
			break;
		default:
			json_put_text(json, name, column_text(statement, i));
		}
	}
	json_object_end(json);
	return 0;
}

static int write_json(sqlite3_stmt *statement, FILE *stream, struct problem *problem)
{
	struct json_writer json;
	int error;

	json_writer_init(&json, stream);
	json_array_begin(&json, NULL);
	error = step_through(statement, write_json_row, &json);
	json_array_end(&json);
	return error ? error : json_writer_finish(&json, problem);
}

/* ---- statements ---- */

static int set_sql_problem(sqlite3 *handle, int error, struct problem *problem)
{
	char names[512];
	size_t used = 0;

	if (!strstr(sqlite3_errmsg(handle), "no such table"))
		return problem_set(problem, error, "cannot run the query: %s",
				   sqlite3_errmsg(handle));
	for (size_t i = 0; database_table_names[i] && used + 32 < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
					 database_table_names[i]);
	return problem_set(problem, error, "cannot run the query: %s (tables: %s, nccl_operations)",
			   sqlite3_errmsg(handle), names);
}

/* A file of an older kymo may lack a table: the view is then an error where it is used. */
static int create_short_names(sqlite3 *handle)
{
	for (size_t i = 0; database_table_names[i]; i++) {
		char sql[128];

		snprintf(sql, sizeof(sql), "CREATE TEMP VIEW %s AS SELECT * FROM main.kymo_%s",
			 database_table_names[i], database_table_names[i]);
		if (sqlite3_exec(handle, sql, NULL, NULL, NULL) != SQLITE_OK)
			return -EIO;
	}
	return 0;
}

static int run_statement(sqlite3 *handle, const char *sql, const struct query_options *options,
			 FILE *stream, struct problem *problem)
{
	sqlite3_stmt *statement = NULL;
	const char *rest = sql;
	int error = 0;

	if (sqlite3_prepare_v2(handle, sql, -1, &statement, &rest) != SQLITE_OK)
		return set_sql_problem(handle, -EINVAL, problem);
	*problem->text = '\0';
	if (!statement || rest[strspn(rest, " \t\r\n;")])
		error = problem_set(problem, -EINVAL, "one query, please: '%.60s'",
				    statement ? rest : sql);
	else if (sqlite3_column_count(statement) == 0)
		error = problem_set(problem, -EINVAL,
				    "the query has no result: results are read, "
				    "not changed");
	else if (sqlite3_column_count(statement) > COLUMNS_MAX && options->format == QUERY_TABLE)
		error = problem_set(problem, -E2BIG, "more than %d columns", COLUMNS_MAX);
	else if (options->format == QUERY_CSV)
		error = write_csv(statement, stream);
	else if (options->format == QUERY_JSON)
		error = write_json(statement, stream, problem);
	else
		error = write_table(statement, stream, options->columns);
	if (error && *problem->text == '\0')
		set_sql_problem(handle, error, problem);
	sqlite3_finalize(statement);
	return error;
}

int query_database_file(const char *path, const char *sql, const struct query_options *options,
			FILE *stream, struct problem *problem)
{
	sqlite3 *handle = NULL;
	int error;

	if (sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
		error = problem_set(problem, -EIO, "cannot open '%s': %s", path,
				    handle ? sqlite3_errmsg(handle) : "out of memory");
	} else {
		sqlite3_busy_timeout(handle, BUSY_TIMEOUT_MS);
		error = create_short_names(handle);
		if (error)
			problem_set(problem, error, "'%s' is no database of kymo's: %s", path,
				    sqlite3_errmsg(handle));
		else
			error = run_statement(handle, sql, options, stream, problem);
	}
	sqlite3_close(handle);
	return error;
}

int query_session(struct session *session, const char *sql, const struct query_options *options,
		  FILE *stream, struct problem *problem)
{
	char path[4096];
	int error = results_database_make_temporary_file(path, sizeof(path), problem);

	if (error)
		return error;
	error = results_database_create(session, path, problem);
	if (!error)
		error = query_database_file(path, sql, options, stream, problem);
	unlink(path);
	return error;
}

int query_format_table_sql(const char *name, size_t rows, char *sql, size_t size,
			   struct problem *problem)
{
	bool is_known = strncmp(name, "nccl_", 5) == 0 &&
			!name[strspn(name, "abcdefghijklmnopqrstuvwxyz_")];
	char names[512];
	size_t used = 0;

	for (size_t i = 0; database_table_names[i]; i++) {
		is_known |= strcmp(name, database_table_names[i]) == 0;
		if (used + 32 < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 i ? ", " : "", database_table_names[i]);
	}
	if (!is_known)
		return problem_set(problem, -EINVAL, "no table '%s'; there are %s, nccl_operations",
				   name, names);
	snprintf(sql, size, rows ? "SELECT * FROM %s LIMIT %zu" : "SELECT * FROM %s", name, rows);
	return 0;
}
