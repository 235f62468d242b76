/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The schema of databases of rocpd, as SQL.
 */
#ifndef ROCPROFILER_SDK_ROCPD_SQL_H
#define ROCPROFILER_SDK_ROCPD_SQL_H

#include <stdint.h>

#include <rocprofiler-sdk-rocpd/defines.h>
#include <rocprofiler-sdk-rocpd/types.h>

ROCPD_EXTERN_C_INIT

typedef enum rocpd_sql_engine_t {
	ROCPD_SQL_ENGINE_NONE = 0,
	ROCPD_SQL_ENGINE_SQLITE3,
	ROCPD_SQL_ENGINE_LAST
} rocpd_sql_engine_t;

typedef enum rocpd_sql_schema_kind_t {
	ROCPD_SQL_SCHEMA_NONE = 0,
	ROCPD_SQL_SCHEMA_ROCPD_TABLES,
	ROCPD_SQL_SCHEMA_ROCPD_INDEXES,
	ROCPD_SQL_SCHEMA_ROCPD_VIEWS,
	ROCPD_SQL_SCHEMA_ROCPD_DATA_VIEWS,
	ROCPD_SQL_SCHEMA_ROCPD_SUMMARY_VIEWS,
	ROCPD_SQL_SCHEMA_ROCPD_METADATA,
	ROCPD_SQL_SCHEMA_LAST
} rocpd_sql_schema_kind_t;

/* Or of these. ISO C has no enumerator above INT_MAX, so that LAST is a number of its own. */
typedef uint32_t rocpd_sql_options_t;
#define ROCPD_SQL_OPTIONS_NONE                        ((rocpd_sql_options_t)0)
#define ROCPD_SQL_OPTIONS_PERSIST_STRINGS             ((rocpd_sql_options_t)0x01)
#define ROCPD_SQL_OPTIONS_SQLITE3_PRAGMA_FOREIGN_KEYS ((rocpd_sql_options_t)0x02)
#define ROCPD_SQL_OPTIONS_LAST                        ((rocpd_sql_options_t)0xFFFFFFFF)

/* What stands for {{uuid}} and {{guid}} in names and values; a NULL stays as it is. The first is
 * for names of tables: "_" is put in front of it, unless it is empty or begins with one, and "_"
 * for each "-" in it. */
typedef struct rocpd_sql_schema_jinja_variables_t {
	uint64_t size; /* of this struct */
	const char *uuid;
	const char *guid;
} rocpd_sql_schema_jinja_variables_t;

typedef void (*rocpd_sql_load_schema_cb_t)(rocpd_sql_engine_t engine, rocpd_sql_schema_kind_t kind,
					   rocpd_sql_options_t options,
					   const rocpd_sql_schema_jinja_variables_t *variables,
					   const char *schema_path, const char *schema_content,
					   void *user_data);

/* Calls the function once with the schema, which is valid as long as that runs, or for ever with
 * PERSIST_STRINGS. Here it is part of the library: no file is looked for, schema_path is "".
 * Summary views are SCHEMA_NOT_FOUND. */
rocpd_status_t rocpd_sql_load_schema(rocpd_sql_engine_t engine, rocpd_sql_schema_kind_t kind,
				     rocpd_sql_options_t options,
				     const rocpd_sql_schema_jinja_variables_t *variables,
				     rocpd_sql_load_schema_cb_t callback,
				     const char **schema_path_hints, uint64_t num_schema_path_hints,
				     void *user_data) ROCPD_API ROCPD_NONNULL(5);

ROCPD_EXTERN_C_FINI

#endif
