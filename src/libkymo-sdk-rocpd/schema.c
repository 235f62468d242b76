/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The schema of rocpd as SQL, written for SQLite. What it is made of is in here: there are no files
 * to be found. Views of data and summaries are not there.
 */
#include <rocprofiler-sdk-rocpd/rocpd.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libkymo-sdk-rocpd/tables.h"

#define TABLES      (sizeof(tables) / sizeof(*tables))
#define UUID_LENGTH 128

/* ---- pieces of SQL ---- */

static void put_tables(FILE *out)
{
	for (size_t i = 0; i < TABLES; i++)
		fprintf(out,
			"CREATE TABLE IF NOT EXISTS rocpd_%s{{uuid}}(id INTEGER PRIMARY KEY "
			"AUTOINCREMENT NOT NULL, guid TEXT DEFAULT '{{guid}}' NOT NULL, %s);\n",
			tables[i].name, tables[i].columns);
}

/* Of what views of a run's kernels, counters and regions are joined by. */
static void put_indexes(FILE *out)
{
	static const char *const by_event[] = {
		"arg",         "pmc_event",      "region", "sample", "kernel_dispatch",
		"memory_copy", "memory_allocate"};

	for (size_t i = 0; i < sizeof(by_event) / sizeof(*by_event); i++)
		fprintf(out,
			"CREATE INDEX IF NOT EXISTS rocpd_%s{{uuid}}_event_id ON "
			"rocpd_%s{{uuid}}(event_id);\n",
			by_event[i], by_event[i]);
}

/* The names without the run's suffix. Where it has none, the tables have them. */
static void put_views(FILE *out, const rocpd_sql_schema_jinja_variables_t *variables)
{
	if (variables && variables->uuid && !*variables->uuid)
		return;
	for (size_t i = 0; i < TABLES; i++)
		fprintf(out,
			"CREATE VIEW IF NOT EXISTS rocpd_%s AS SELECT * FROM rocpd_%s{{uuid}};\n",
			tables[i].name, tables[i].name);
}

static void put_metadata(FILE *out)
{
	fputs("INSERT INTO rocpd_metadata{{uuid}}(tag, value) VALUES('schema_version', '3'), "
	      "('uuid', '{{uuid}}'), ('guid', '{{guid}}');\n",
	      out);
}

/* ---- variables ---- */

/* In names of tables and within quotes: nothing that would end either. */
static bool variables_are_sane(const rocpd_sql_schema_jinja_variables_t *variables)
{
	static const char of_names[] = "0123456789abcdefghijklmnopqrstuvwxyz"
				       "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-";

	if (!variables)
		return true;
	if (variables->size < sizeof(*variables))
		return false;
	if (variables->uuid && (strlen(variables->uuid) >= UUID_LENGTH ||
				variables->uuid[strspn(variables->uuid, of_names)]))
		return false;
	return !variables->guid || !strchr(variables->guid, '\'');
}

static void make_suffix(const char *uuid, char suffix[UUID_LENGTH + 2])
{
	snprintf(suffix, UUID_LENGTH + 2, "%s%s", *uuid ? "_" : "", uuid);
	for (char *at = suffix; *at; at++)
		*at = *at == '-' ? '_' : *at;
}

/* Each place of `name` in the text becomes the value; NULL: no memory. The text is freed. */
static char *substitute(char *text, const char *name, const char *value)
{
	char *made = NULL, *at = text, *found;
	size_t size;
	FILE *out = text ? open_memstream(&made, &size) : NULL;

	while (out && (found = strstr(at, name))) {
		fwrite(at, 1, (size_t)(found - at), out);
		fputs(value, out);
		at = found + strlen(name);
	}
	if (out) {
		fputs(at, out);
		if (fclose(out)) {
			free(made);
			made = NULL;
		}
	}
	free(text);
	return made;
}

/* ---- the function ---- */

static char *make_text(rocpd_sql_schema_kind_t kind, rocpd_sql_options_t options,
		       const rocpd_sql_schema_jinja_variables_t *variables)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (options & ROCPD_SQL_OPTIONS_SQLITE3_PRAGMA_FOREIGN_KEYS)
		fputs("PRAGMA foreign_keys = ON;\n", out);
	if (kind == ROCPD_SQL_SCHEMA_ROCPD_TABLES)
		put_tables(out);
	else if (kind == ROCPD_SQL_SCHEMA_ROCPD_INDEXES)
		put_indexes(out);
	else if (kind == ROCPD_SQL_SCHEMA_ROCPD_VIEWS)
		put_views(out, variables);
	else
		put_metadata(out);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

rocpd_status_t rocpd_sql_load_schema(rocpd_sql_engine_t engine, rocpd_sql_schema_kind_t kind,
				     rocpd_sql_options_t options,
				     const rocpd_sql_schema_jinja_variables_t *variables,
				     rocpd_sql_load_schema_cb_t callback,
				     const char **schema_path_hints, uint64_t num_schema_path_hints,
				     void *user_data)
{
	char suffix[UUID_LENGTH + 2], *text;

	(void)schema_path_hints;
	(void)num_schema_path_hints;
	if (engine != ROCPD_SQL_ENGINE_SQLITE3)
		return ROCPD_STATUS_ERROR_SQL_INVALID_ENGINE;
	if (kind <= ROCPD_SQL_SCHEMA_NONE || kind >= ROCPD_SQL_SCHEMA_LAST)
		return ROCPD_STATUS_ERROR_SQL_INVALID_SCHEMA_KIND;
	if (!callback || !variables_are_sane(variables))
		return ROCPD_STATUS_ERROR_INVALID_ARGUMENT;
	if (kind == ROCPD_SQL_SCHEMA_ROCPD_DATA_VIEWS ||
	    kind == ROCPD_SQL_SCHEMA_ROCPD_SUMMARY_VIEWS)
		return ROCPD_STATUS_ERROR_SQL_SCHEMA_NOT_FOUND;
	text = make_text(kind, options, variables);
	if (variables && variables->uuid) {
		make_suffix(variables->uuid, suffix);
		text = substitute(text, "{{uuid}}", suffix);
	}
	if (variables && variables->guid)
		text = substitute(text, "{{guid}}", variables->guid);
	if (!text)
		return ROCPD_STATUS_ERROR;
	callback(engine, kind, options, variables, "", text, user_data);
	if (!(options & ROCPD_SQL_OPTIONS_PERSIST_STRINGS))
		free(text);
	return ROCPD_STATUS_SUCCESS;
}
