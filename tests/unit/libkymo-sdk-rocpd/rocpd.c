/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The schema of rocpd is what SQLite takes, has the columns that readers of such files ask for, and
 * what is asked for wrongly is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rocprofiler-sdk-rocpd/rocpd.h>

static const rocpd_sql_schema_jinja_variables_t variables = {sizeof(variables), "00ab-12",
							     "0123-4567"};
static sqlite3 *database;
static unsigned calls;

static void run(const char *sql)
{
	char *why = NULL;

	if (sqlite3_exec(database, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", why, sql);
}

static void take(rocpd_sql_engine_t engine, rocpd_sql_schema_kind_t kind,
		 rocpd_sql_options_t options, const rocpd_sql_schema_jinja_variables_t *given,
		 const char *path, const char *text, void *data)
{
	(void)kind;
	(void)options;
	assert_int_equal(engine, ROCPD_SQL_ENGINE_SQLITE3);
	assert_ptr_equal(given, data);
	assert_string_equal(path, "");
	assert_null(strstr(text, "{{"));
	calls++;
	run(text);
}

static rocpd_status_t load(rocpd_sql_schema_kind_t kind,
			   const rocpd_sql_schema_jinja_variables_t *given)
{
	return rocpd_sql_load_schema(ROCPD_SQL_ENGINE_SQLITE3, kind,
				     ROCPD_SQL_OPTIONS_SQLITE3_PRAGMA_FOREIGN_KEYS, given, take,
				     NULL, 0, (void *)(uintptr_t)given);
}

static void load_all(const rocpd_sql_schema_jinja_variables_t *given)
{
	assert_int_equal(sqlite3_open(":memory:", &database), SQLITE_OK);
	calls = 0;
	assert_int_equal(load(ROCPD_SQL_SCHEMA_ROCPD_TABLES, given), ROCPD_STATUS_SUCCESS);
	assert_int_equal(load(ROCPD_SQL_SCHEMA_ROCPD_INDEXES, given), ROCPD_STATUS_SUCCESS);
	assert_int_equal(load(ROCPD_SQL_SCHEMA_ROCPD_VIEWS, given), ROCPD_STATUS_SUCCESS);
	assert_int_equal(load(ROCPD_SQL_SCHEMA_ROCPD_DATA_VIEWS, given), ROCPD_STATUS_SUCCESS);
	assert_int_equal(load(ROCPD_SQL_SCHEMA_ROCPD_METADATA, given), ROCPD_STATUS_SUCCESS);
	assert_int_equal(calls, 5);
}

static void is(const char *query, const char *expected)
{
	sqlite3_stmt *statement;

	assert_int_equal(sqlite3_prepare_v2(database, query, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	assert_string_equal((const char *)sqlite3_column_text(statement, 0), expected);
	sqlite3_finalize(statement);
}

static void fill(void)
{
	run("INSERT INTO rocpd_info_node_00ab_12(hash, machine_id) VALUES(7, 'm');"
	    "INSERT INTO rocpd_info_process_00ab_12(nid, pid) VALUES(1, 4711);"
	    "INSERT INTO rocpd_info_thread_00ab_12(nid, pid, tid) VALUES(1, 1, 4712);"
	    "INSERT INTO rocpd_info_agent_00ab_12(nid, pid, type) VALUES(1, 1, 'GPU');"
	    "INSERT INTO rocpd_string_00ab_12(string) VALUES('region');"
	    "INSERT INTO rocpd_event_00ab_12(category_id, stack_id) VALUES(1, 5);"
	    "INSERT INTO rocpd_info_pmc_00ab_12(nid, pid, agent_id, target_arch, name, symbol) "
	    "VALUES(1, 1, 1, 'GPU', 'C', 'C');"
	    "INSERT INTO rocpd_pmc_event_00ab_12(event_id, pmc_id, value) VALUES(1, 1, 2.5);"
	    "INSERT INTO rocpd_info_kernel_symbol_00ab_12(nid, pid, kernel_name) VALUES(1, 1, 'k');"
	    "INSERT INTO rocpd_kernel_dispatch_00ab_12(nid, pid, tid, agent_id, kernel_id, "
	    "dispatch_id, start, end, workgroup_size_x, workgroup_size_y, workgroup_size_z, "
	    "grid_size_x, grid_size_y, grid_size_z, event_id) VALUES(1, 1, 1, 1, 1, 1, 10, 20, 1, "
	    "1, 1, 1, 1, 1, 1);");
}

static void test_a_run(void **state)
{
	(void)state;
	load_all(&variables);
	fill();
	is("SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name LIKE "
	   "'rocpd_%_00ab_12'",
	   "20");
	is("SELECT COUNT(*) FROM sqlite_schema WHERE type = 'view' AND name LIKE 'rocpd_%'", "20");
	is("SELECT guid FROM rocpd_event", "0123-4567");
	is("SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'", "3");
	is("SELECT value FROM rocpd_pmc_event JOIN rocpd_kernel_dispatch USING(event_id)", "2.5");
	/* Foreign keys hold. */
	assert_int_not_equal(sqlite3_exec(database,
					  "INSERT INTO rocpd_pmc_event_00ab_12(event_id, pmc_id) "
					  "VALUES(1, 99)",
					  NULL, NULL, NULL),
			     SQLITE_OK);
	is("SELECT group_concat(name) FROM pragma_table_info('rocpd_memory_copy')",
	   "id,guid,nid,pid,tid,start,end,name_id,dst_agent_id,dst_address,src_agent_id,"
	   "src_address,size,queue_id,stream_id,region_name_id,event_id,extdata");
	is("SELECT group_concat(name) FROM pragma_table_info('rocpd_info_agent')",
	   "id,guid,nid,pid,type,absolute_index,logical_index,type_index,uuid,name,model_name,"
	   "vendor_name,product_name,user_name,extdata");
	sqlite3_close(database);
}

/* Names and columns of views are upstream's; each can be read, and rows join. */
static void test_views_of_data(void **state)
{
	sqlite3_stmt *views;
	unsigned count = 0;

	(void)state;
	load_all(&variables);
	fill();
	run("INSERT INTO rocpd_region_00ab_12(nid, pid, tid, start, end, name_id, event_id) "
	    "VALUES(1, 1, 1, 5, 25, 1, 1);"
	    "INSERT INTO rocpd_arg_00ab_12(event_id, position, type, name, value) "
	    "VALUES(1, 0, 'int', 'stream', '7');"
	    "INSERT INTO rocpd_track_00ab_12(nid, pid, tid, name_id) VALUES(1, 1, 1, 1);"
	    "INSERT INTO rocpd_sample_00ab_12(track_id, timestamp, event_id) VALUES(1, 9, 1);"
	    "INSERT INTO rocpd_memory_copy_00ab_12(nid, pid, tid, start, end, name_id, "
	    "dst_agent_id, src_agent_id, size, event_id) VALUES(1, 1, 1, 1, 4, 1, 1, 1, 64, 1);"
	    "INSERT INTO rocpd_memory_allocate_00ab_12(nid, pid, tid, type, level, start, end, "
	    "size, event_id) VALUES(1, 1, 1, 'ALLOC', 'SCRATCH', 1, 2, 8, 1);"
	    "INSERT INTO rocpd_info_code_object_00ab_12(nid, pid, agent_id) VALUES(1, 1, 1);"
	    "INSERT INTO rocpd_info_stream_00ab_12(id, nid, pid, name) VALUES(7, 1, 1, 's');"
	    "UPDATE rocpd_arg_00ab_12 SET extdata = '{\"stream_id\": 7}'");
	assert_int_equal(sqlite3_prepare_v2(database,
					    "SELECT 'SELECT COUNT(*) FROM ' || name FROM "
					    "sqlite_schema WHERE type = 'view' AND name NOT LIKE "
					    "'rocpd_%'",
					    -1, &views, NULL),
			 SQLITE_OK);
	for (; sqlite3_step(views) == SQLITE_ROW; count++)
		is((const char *)sqlite3_column_text(views, 0),
		   strstr((const char *)sqlite3_column_text(views, 0), "regions_and_samples")
			   ? "2"
			   : "1");
	sqlite3_finalize(views);
	assert_int_equal(count, 18);
	is("SELECT name || category || duration || pid || tid FROM regions",
	   "regionregion2047114712");
	is("SELECT value FROM counters_collection WHERE counter_name = 'C'", "2.5");
	is("SELECT duration FROM kernels", "10");
	is("SELECT size FROM memory_copies", "64");
	is("SELECT group_concat(name) FROM pragma_table_info('kernels')",
	   "id,guid,tid,category,region,name,nid,pid,agent_abs_index,agent_log_index,"
	   "agent_type_index,agent_type,code_object_id,kernel_id,dispatch_id,stream_id,queue_id,"
	   "queue,stream,start,end,duration,grid_x,grid_y,grid_z,workgroup_x,workgroup_y,"
	   "workgroup_z,lds_size,scratch_size,vgpr_count,accum_vgpr_count,sgpr_count,"
	   "static_lds_size,static_scratch_size,stack_id,parent_stack_id,corr_id");
	is("SELECT group_concat(name) FROM pragma_table_info('regions')",
	   "id,guid,category,name,nid,pid,tid,start,end,duration,event_id,stack_id,"
	   "parent_stack_id,corr_id,extdata,call_stack,line_info");
	is("SELECT group_concat(name) FROM pragma_table_info('memory_copies')",
	   "id,guid,category,nid,pid,tid,start,end,duration,name,region_name,stream_id,queue_id,"
	   "stream_name,queue_name,size,dst_device,dst_agent_abs_index,dst_agent_log_index,"
	   "dst_agent_type_index,dst_agent_type,dst_address,src_device,src_agent_abs_index,"
	   "src_agent_log_index,src_agent_type_index,src_agent_type,src_address,stack_id,"
	   "parent_stack_id,corr_id");
	sqlite3_close(database);
}

static void test_without_suffix(void **state)
{
	const rocpd_sql_schema_jinja_variables_t empty = {sizeof(empty), "", ""};

	(void)state;
	load_all(&empty);
	is("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'rocpd_region'", "1");
	sqlite3_close(database);
}

/* What a program hands on as it got it may have its "_" already. */
static void test_suffix_of_uuid(void **state)
{
	static const struct {
		const char *uuid, *table;
	} cases[] = {
		{"abc", "rocpd_region_abc"},
		{"_abc", "rocpd_region_abc"},
		{"_a-b", "rocpd_region_a_b"},
		{"__abc", "rocpd_region__abc"},
		{"_", "rocpd_region_"},
		{"a_b", "rocpd_region_a_b"},
		{"00ab-12", "rocpd_region_00ab_12"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const rocpd_sql_schema_jinja_variables_t given = {sizeof(given), cases[i].uuid,
								  "g"};
		char query[256];

		load_all(&given);
		snprintf(query, sizeof(query),
			 "SELECT COUNT(*) FROM sqlite_schema WHERE type = 'table' AND name = '%s'",
			 cases[i].table);
		is(query, "1");
		snprintf(query, sizeof(query),
			 "SELECT 'rocpd_region' || value FROM rocpd_metadata WHERE tag = 'uuid'");
		is(query, cases[i].table);
		sqlite3_close(database);
	}
}

static void keep(rocpd_sql_engine_t engine, rocpd_sql_schema_kind_t kind,
		 rocpd_sql_options_t options, const rocpd_sql_schema_jinja_variables_t *given,
		 const char *path, const char *text, void *data)
{
	(void)engine;
	(void)kind;
	(void)options;
	(void)given;
	(void)path;
	*(const char **)data = text;
}

static void test_templates(void **state)
{
	const char *kept = NULL;

	(void)state;
	assert_int_equal(rocpd_sql_load_schema(ROCPD_SQL_ENGINE_SQLITE3,
					       ROCPD_SQL_SCHEMA_ROCPD_METADATA,
					       ROCPD_SQL_OPTIONS_PERSIST_STRINGS, NULL, keep, NULL,
					       0, (void *)&kept),
			 ROCPD_STATUS_SUCCESS);
	assert_non_null(strstr(kept, "rocpd_metadata{{uuid}}"));
	assert_non_null(strstr(kept, "{{guid}}"));
	free((void *)(uintptr_t)kept);
}

static void test_refusals(void **state)
{
	rocpd_sql_schema_jinja_variables_t wrong = variables;

	(void)state;
	calls = 0;
	assert_int_equal(load(ROCPD_SQL_SCHEMA_NONE, &variables),
			 ROCPD_STATUS_ERROR_SQL_INVALID_SCHEMA_KIND);
	assert_int_equal(load(ROCPD_SQL_SCHEMA_LAST, &variables),
			 ROCPD_STATUS_ERROR_SQL_INVALID_SCHEMA_KIND);
	assert_int_equal(load(ROCPD_SQL_SCHEMA_ROCPD_SUMMARY_VIEWS, &variables),
			 ROCPD_STATUS_ERROR_SQL_SCHEMA_NOT_FOUND);
	wrong.size = 0;
	assert_int_equal(load(ROCPD_SQL_SCHEMA_ROCPD_TABLES, &wrong),
			 ROCPD_STATUS_ERROR_INVALID_ARGUMENT);
	wrong = variables;
	wrong.uuid = "x; DROP TABLE y";
	assert_int_equal(load(ROCPD_SQL_SCHEMA_ROCPD_TABLES, &wrong),
			 ROCPD_STATUS_ERROR_INVALID_ARGUMENT);
	wrong = variables;
	wrong.guid = "it's";
	assert_int_equal(load(ROCPD_SQL_SCHEMA_ROCPD_TABLES, &wrong),
			 ROCPD_STATUS_ERROR_INVALID_ARGUMENT);
	assert_int_equal(rocpd_sql_load_schema(ROCPD_SQL_ENGINE_LAST, ROCPD_SQL_SCHEMA_ROCPD_TABLES,
					       0, NULL, take, NULL, 0, NULL),
			 ROCPD_STATUS_ERROR_SQL_INVALID_ENGINE);
	assert_int_equal(rocpd_sql_load_schema(ROCPD_SQL_ENGINE_SQLITE3,
					       ROCPD_SQL_SCHEMA_ROCPD_TABLES, 0, NULL, NULL, NULL,
					       0, NULL),
			 ROCPD_STATUS_ERROR_INVALID_ARGUMENT);
	assert_int_equal(calls, 0);
}

static void test_statuses(void **state)
{
	rocpd_version_triplet_t version = {0, 0, 0};

	(void)state;
	for (int i = 0; i < ROCPD_STATUS_LAST; i++) {
		assert_non_null(rocpd_get_status_name((rocpd_status_t)i));
		assert_non_null(rocpd_get_status_string((rocpd_status_t)i));
	}
	assert_string_equal(rocpd_get_status_name(ROCPD_STATUS_ERROR_SQL_ERROR),
			    "ROCPD_STATUS_ERROR_SQL_ERROR");
	assert_null(rocpd_get_status_name(ROCPD_STATUS_LAST));
	assert_null(rocpd_get_status_string((rocpd_status_t)-1));
	assert_int_equal(rocpd_get_version_triplet(&version), ROCPD_STATUS_SUCCESS);
	assert_int_equal(version.major, ROCPD_VERSION_MAJOR);
	assert_int_equal(rocpd_get_version(NULL, NULL, NULL), ROCPD_STATUS_SUCCESS);
	assert_int_equal(rocpd_get_version_triplet(NULL), ROCPD_STATUS_ERROR_INVALID_ARGUMENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_run),          cmocka_unit_test(test_views_of_data),
		cmocka_unit_test(test_without_suffix), cmocka_unit_test(test_suffix_of_uuid),
		cmocka_unit_test(test_templates),      cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_statuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
