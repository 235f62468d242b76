/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The schema of rocpd as SQL, written for SQLite. What it is made of is in here: there are no files
 * to be found. Views of summaries are not there.
 */
#include <rocprofiler-sdk-rocpd/rocpd.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libkymo-sdk-rocpd/shorthands.h"
#include "libkymo-sdk-rocpd/tables.h"
#include "libkymo-sdk-rocpd/views.h"

#define ROCPD_TABLE_COUNT (sizeof(rocpd_table_definitions) / sizeof(*rocpd_table_definitions))
#define ROCPD_DATA_VIEW_COUNT                                                                      \
	(sizeof(rocpd_data_view_definitions) / sizeof(*rocpd_data_view_definitions))
#define UUID_SIZE_MAX 128

/* ---- shorthands ---- */

struct sql_shorthand_arguments {
	char texts[SQL_SHORTHAND_ARGUMENTS_MAX][32];
};

static const char *find_text_of_shorthand(char letter)
{
	for (size_t i = 0; i < sizeof(sql_shorthands) / sizeof(*sql_shorthands); i++) {
		if (sql_shorthands[i].letter == letter)
			return sql_shorthands[i].text;
	}
	return "";
}

/* The argument that "$1" stands for; NULL: it is something else. */
static const char *find_argument(const char *at, const struct sql_shorthand_arguments *arguments)
{
	return *at == '$' && at[1] >= '1' && at[1] < '1' + SQL_SHORTHAND_ARGUMENTS_MAX
		       ? arguments->texts[at[1] - '1']
		       : NULL;
}

/* Reads the words up to ";", which is returned. */
static const char *read_arguments(const char *at, const struct sql_shorthand_arguments *outer,
				  struct sql_shorthand_arguments *arguments)
{
	size_t number = 0, used = 0;

	memset(arguments, 0, sizeof(*arguments));
	for (; *at && *at != ';'; at++) {
		const char *given = find_argument(at, outer);
		char one[2] = {*at, '\0'};

		if (*at == ' ') {
			number++;
			used = 0;
			continue;
		}
		if (!number || number > SQL_SHORTHAND_ARGUMENTS_MAX)
			continue;
		snprintf(arguments->texts[number - 1] + used, sizeof(arguments->texts[0]) - used,
			 "%s", given ? given : one);
		used = strlen(arguments->texts[number - 1]);
		at += given != NULL;
	}
	return at;
}

static void write_sql(FILE *out, const char *text, const struct sql_shorthand_arguments *outer)
{
	for (; *text; text++) {
		const char *given = find_argument(text, outer);

		if (*text == '@') {
			const char *meant = find_text_of_shorthand(text[1]);
			struct sql_shorthand_arguments arguments;

			text = read_arguments(text + 2, outer, &arguments);
			write_sql(out, meant, &arguments);
		} else if (given) {
			fputs(given, out);
			text++;
		} else {
			fputc(*text, out);
		}
	}
}

/* ---- pieces of SQL ---- */

static const struct sql_shorthand_arguments no_arguments;

static void write_create_table_statements(FILE *out)
{
	for (size_t i = 0; i < ROCPD_TABLE_COUNT; i++) {
		fprintf(out,
			"CREATE TABLE IF NOT EXISTS rocpd_%s{{uuid}}(id INTEGER PRIMARY KEY "
			"AUTOINCREMENT NOT NULL, guid TEXT DEFAULT '{{guid}}' NOT NULL, ",
			rocpd_table_definitions[i].name);
		write_sql(out, rocpd_table_definitions[i].column_definitions_sql, &no_arguments);
		fputs(");\n", out);
	}
}

/* Indexes of the columns by which views of a run's kernels, counters and regions are joined. */
static void write_create_index_statements(FILE *out)
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
static void write_create_view_statements(FILE *out,
					 const rocpd_sql_schema_jinja_variables_t *variables)
{
	if (variables && variables->uuid && !*variables->uuid)
		return;
	for (size_t i = 0; i < ROCPD_TABLE_COUNT; i++)
		fprintf(out,
			"CREATE VIEW IF NOT EXISTS rocpd_%s AS SELECT * FROM rocpd_%s{{uuid}};\n",
			rocpd_table_definitions[i].name, rocpd_table_definitions[i].name);
}

static void write_create_data_view_statements(FILE *out)
{
	for (size_t i = 0; i < ROCPD_DATA_VIEW_COUNT; i++) {
		fprintf(out, "CREATE VIEW IF NOT EXISTS %s AS SELECT ",
			rocpd_data_view_definitions[i].name);
		write_sql(out, rocpd_data_view_definitions[i].select_sql, &no_arguments);
		fputs(";\n", out);
	}
}

static void write_insert_metadata_statement(FILE *out)
{
	fputs("INSERT INTO rocpd_metadata{{uuid}}(tag, value) VALUES('schema_version', '3'), "
	      "('uuid', '{{uuid}}'), ('guid', '{{guid}}');\n",
	      out);
}

/* ---- variables ---- */

/* In names of rocpd_table_definitions and within quotes: nothing that would end either. */
static bool variables_are_safe_in_sql(const rocpd_sql_schema_jinja_variables_t *variables)
{
	static const char of_names[] = "0123456789abcdefghijklmnopqrstuvwxyz"
				       "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-";

	if (!variables)
		return true;
	if (variables->size < sizeof(*variables))
		return false;
	if (variables->uuid && (strlen(variables->uuid) >= UUID_SIZE_MAX ||
				variables->uuid[strspn(variables->uuid, of_names)]))
		return false;
	return !variables->guid || !strchr(variables->guid, '\'');
}

static void uuid_to_table_suffix(const char *uuid, char suffix[UUID_SIZE_MAX + 2])
{
	bool has_separator = !*uuid || *uuid == '_';

	snprintf(suffix, UUID_SIZE_MAX + 2, "%s%s", has_separator ? "" : "_", uuid);
	for (char *at = suffix; *at; at++)
		*at = *at == '-' ? '_' : *at;
}

/* Each place of `name` in the text becomes the value; NULL: no memory. The text is freed. */
static char *substitute_schema_variable(char *text, const char *name, const char *value)
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

static char *build_schema_text(rocpd_sql_schema_kind_t kind, rocpd_sql_options_t options,
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
		write_create_table_statements(out);
	else if (kind == ROCPD_SQL_SCHEMA_ROCPD_INDEXES)
		write_create_index_statements(out);
	else if (kind == ROCPD_SQL_SCHEMA_ROCPD_VIEWS)
		write_create_view_statements(out, variables);
	else if (kind == ROCPD_SQL_SCHEMA_ROCPD_DATA_VIEWS)
		write_create_data_view_statements(out);
	else
		write_insert_metadata_statement(out);
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
	char suffix[UUID_SIZE_MAX + 2], *text;

	(void)schema_path_hints;
	(void)num_schema_path_hints;
	if (engine != ROCPD_SQL_ENGINE_SQLITE3)
		return ROCPD_STATUS_ERROR_SQL_INVALID_ENGINE;
	if (kind <= ROCPD_SQL_SCHEMA_NONE || kind >= ROCPD_SQL_SCHEMA_LAST)
		return ROCPD_STATUS_ERROR_SQL_INVALID_SCHEMA_KIND;
	if (!callback || !variables_are_safe_in_sql(variables))
		return ROCPD_STATUS_ERROR_INVALID_ARGUMENT;
	if (kind == ROCPD_SQL_SCHEMA_ROCPD_SUMMARY_VIEWS)
		return ROCPD_STATUS_ERROR_SQL_SCHEMA_NOT_FOUND;
	text = build_schema_text(kind, options, variables);
	if (variables && variables->uuid) {
		uuid_to_table_suffix(variables->uuid, suffix);
		text = substitute_schema_variable(text, "{{uuid}}", suffix);
	}
	if (variables && variables->guid)
		text = substitute_schema_variable(text, "{{guid}}", variables->guid);
	if (!text)
		return ROCPD_STATUS_ERROR;
	callback(engine, kind, options, variables, "", text, user_data);
	if (!(options & ROCPD_SQL_OPTIONS_PERSIST_STRINGS))
		free(text);
	return ROCPD_STATUS_SUCCESS;
}
