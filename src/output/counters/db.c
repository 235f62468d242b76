/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * results.db: a session (output/database/tables.c), counters, and what NCCL did (output/nccl/db.c),
 * as SQLite; of counters in the tables of rocpd (schema 3), which have the run's uuid as a suffix,
 * with its views. A reading of a device is a sample with an event, as rocpd has it.
 *
 * Ids are process << 32 | id, so that no id needs to be looked up.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rocprofiler-sdk-rocpd/rocpd.h>

#include "analysis/gpu/counts.h"
#include "analysis/nccl/nccl.h"
#include "common/array.h"
#include "output/counters/db.h"
#include "output/counters/schema.h"
#include "output/database/tables.h"
#include "output/gpu_names.h"
#include "output/nccl/db.h"
#include "output/output.h"
#include "output/sql_text.h"

#define GUID_TEXT_SIZE      40
#define STATEMENT_TEXT_SIZE 1024

#define CATEGORY_OF_KERNELS  "KERNEL_DISPATCH"
#define CATEGORY_OF_READINGS "DEVICE_COUNTERS"

struct rocpd_database {
	sqlite3 *handle;
	sqlite3_stmt *prepared_statements[SQL_INSERT_STATEMENT_COUNT];
	struct gpu_demangled_name_cache names;
	sqlite3_int64 process; /* number of it, from 1 */
	sqlite3_int64 event;   /* the last one's id */
	const struct gpu_counted *open;
	char guid[GUID_TEXT_SIZE];
};

static sqlite3_int64 make_database_row_id(const struct rocpd_database *database, uint64_t id)
{
	return database->process << 32 | (sqlite3_int64)(id & UINT32_MAX);
}

static void bind_statement_text(struct rocpd_database *database,
				enum sql_insert_statement_kind which, int place, const char *text)
{
	sql_bind_text(database->prepared_statements[which], place, text);
}

static void bind_statement_integer(struct rocpd_database *database,
				   enum sql_insert_statement_kind which, int place,
				   sqlite3_int64 id)
{
	sqlite3_bind_int64(database->prepared_statements[which], place, id);
}

/* 0 or -EIO; what went wrong is the handle's to tell. */
static int execute_insert_statement(struct rocpd_database *database,
				    enum sql_insert_statement_kind which)
{
	sqlite3_stmt *statement = database->prepared_statements[which];
	int result = sqlite3_step(statement);

	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	return result == SQLITE_DONE ? 0 : -EIO;
}

/* ---- what there is ---- */

static int insert_metadata(struct rocpd_database *database, const char *tag, const char *value)
{
	bind_statement_text(database, INSERT_METADATA, 1, tag);
	bind_statement_text(database, INSERT_METADATA, 2, value);
	return execute_insert_statement(database, INSERT_METADATA);
}

/* Strings are all different: rows refer to one by its text. */
static int insert_string(struct rocpd_database *database, const char *text)
{
	bind_statement_text(database, INSERT_STRING, 1, text);
	return execute_insert_statement(database, INSERT_STRING);
}

/* Nothing for an agent that the records name and do not have. */
static void bind_agent_id_if_known(struct rocpd_database *database,
				   enum sql_insert_statement_kind which, int place, uint32_t agent)
{
	const struct gpu_records_of_process *process = database->names.process;

	if (agent != 0 && agent <= process->agent_count && process->agent_by_id[agent] != NULL)
		bind_statement_integer(database, which, place,
				       make_database_row_id(database, agent));
}

static int insert_agent(struct rocpd_database *database, const struct gpu_agent *agent)
{
	const struct gpu_records_of_process *process = database->names.process;

	bind_statement_integer(database, INSERT_AGENT, 1,
			       make_database_row_id(database, agent->head.id));
	bind_statement_integer(database, INSERT_AGENT, 2, database->process);
	bind_statement_text(database, INSERT_AGENT, 3,
			    agent->type == GPU_AGENT_GPU ? "GPU" : "CPU");
	bind_statement_integer(database, INSERT_AGENT, 4, agent->node);
	bind_statement_integer(database, INSERT_AGENT, 5, agent->ordinal);
	bind_statement_text(database, INSERT_AGENT, 6,
			    gpu_get_interned_string(process, agent->name));
	bind_statement_text(database, INSERT_AGENT, 7,
			    gpu_get_interned_string(process, agent->product));
	bind_statement_text(database, INSERT_AGENT, 8,
			    gpu_get_interned_string(process, agent->vendor));
	return execute_insert_statement(database, INSERT_AGENT);
}

static int insert_counter_definition(struct rocpd_database *database,
				     const struct gpu_counter *counter)
{
	const struct gpu_records_of_process *process = database->names.process;
	const struct gpu_agent *agent = counter->agent <= process->agent_count
						? process->agent_by_id[counter->agent]
						: NULL;
	const uint32_t texts[] = {counter->description, counter->block, counter->expression};
	int result = insert_string(database, gpu_get_interned_string(process, counter->name));

	bind_statement_integer(database, INSERT_COUNTER, 1,
			       make_database_row_id(database, counter->head.id));
	bind_statement_integer(database, INSERT_COUNTER, 2, database->process);
	bind_agent_id_if_known(database, INSERT_COUNTER, 3, counter->agent);
	bind_statement_text(database, INSERT_COUNTER, 4,
			    agent != NULL && agent->type == GPU_AGENT_GPU ? "GPU" : "CPU");
	bind_statement_text(database, INSERT_COUNTER, 5,
			    gpu_get_interned_string(process, counter->name));
	for (int i = 0; i < 3; i++)
		bind_statement_text(database, INSERT_COUNTER, 6 + i,
				    texts[i] != 0 ? gpu_get_interned_string(process, texts[i])
						  : "");
	bind_statement_integer(database, INSERT_COUNTER, 9,
			       (counter->flags & GPU_COUNTER_CONSTANT) != 0);
	bind_statement_integer(database, INSERT_COUNTER, 10,
			       (counter->flags & GPU_COUNTER_DERIVED) != 0);
	return result != 0 ? result : execute_insert_statement(database, INSERT_COUNTER);
}

static int insert_process_and_agents_and_counters(struct rocpd_database *database,
						  const char *command)
{
	const struct gpu_records_of_process *process = database->names.process;
	int result;

	bind_statement_integer(database, INSERT_PROCESS, 1, database->process);
	bind_statement_integer(database, INSERT_PROCESS, 2, process->header.pid);
	bind_statement_integer(database, INSERT_PROCESS, 3,
			       (sqlite3_int64)process->header.start_boottime_ns);
	bind_statement_text(database, INSERT_PROCESS, 4, command != NULL ? command : "");
	result = execute_insert_statement(database, INSERT_PROCESS);
	for (uint32_t i = 1; result == 0 && i <= process->agent_count; i++) {
		if (process->agent_by_id[i] != NULL)
			result = insert_agent(database, process->agent_by_id[i]);
	}
	for (uint32_t i = 1; result == 0 && i <= process->counter_count; i++) {
		if (process->counters[i] != NULL)
			result = insert_counter_definition(database, process->counters[i]);
	}
	return result;
}

/* ---- events and values ---- */

static int insert_event(struct rocpd_database *database, uint64_t correlation, const char *extra,
			const char *category)
{
	bind_statement_integer(database, INSERT_EVENT, 1, ++database->event);
	bind_statement_integer(database, INSERT_EVENT, 2, (sqlite3_int64)correlation);
	bind_statement_text(database, INSERT_EVENT, 3, extra);
	bind_statement_text(database, INSERT_EVENT, 4, category);
	return execute_insert_statement(database, INSERT_EVENT);
}

/* What a launch refers to. */
static int insert_kernel_thread_and_queue(struct rocpd_database *database,
					  const struct gpu_counted *kernel)
{
	const struct gpu_records_of_process *process = database->names.process;
	uint32_t shape = kernel->head.id;
	uint32_t name = gpu_names_get_kernel_name_string_id(&database->names, shape);
	const char *display_name = gpu_names_get_demangled_kernel_name(&database->names, shape);
	char queue[32];
	int result;

	bind_statement_integer(database, INSERT_KERNEL, 1, make_database_row_id(database, name));
	bind_statement_integer(database, INSERT_KERNEL, 2, database->process);
	bind_statement_text(database, INSERT_KERNEL, 3, gpu_get_interned_string(process, name));
	bind_statement_text(database, INSERT_KERNEL, 4, display_name);
	result = execute_insert_statement(database, INSERT_KERNEL);
	if (result == 0)
		result = insert_string(database, display_name);
	bind_statement_integer(database, INSERT_THREAD, 1,
			       make_database_row_id(database, kernel->tid));
	bind_statement_integer(database, INSERT_THREAD, 2, database->process);
	bind_statement_integer(database, INSERT_THREAD, 3, kernel->tid);
	if (result == 0)
		result = execute_insert_statement(database, INSERT_THREAD);
	snprintf(queue, sizeof(queue), "Queue %u", (unsigned)(kernel->queue & UINT32_MAX));
	bind_statement_integer(database, INSERT_QUEUE, 1,
			       make_database_row_id(database, kernel->queue));
	bind_statement_integer(database, INSERT_QUEUE, 2, database->process);
	bind_statement_text(database, INSERT_QUEUE, 3, queue);
	return result != 0 ? result : execute_insert_statement(database, INSERT_QUEUE);
}

static int insert_kernel_dispatch(struct rocpd_database *database, const struct gpu_counted *kernel)
{
	static const struct gpu_shape none;
	const struct gpu_records_of_process *process = database->names.process;
	uint32_t id = kernel->head.id;
	const struct gpu_shape *shape =
		id <= process->shape_count ? process->kernel_shape_by_id[id] : NULL;
	int result = insert_kernel_thread_and_queue(database, kernel);

	if (shape == NULL)
		shape = &none;
	if (result == 0)
		result = insert_event(database, kernel->correlation, "{}", CATEGORY_OF_KERNELS);
	bind_statement_integer(database, INSERT_DISPATCH, 1, database->process);
	bind_statement_integer(database, INSERT_DISPATCH, 2,
			       make_database_row_id(database, kernel->tid));
	bind_agent_id_if_known(database, INSERT_DISPATCH, 3, shape->agent);
	bind_statement_integer(database, INSERT_DISPATCH, 4,
			       make_database_row_id(database, gpu_names_get_kernel_name_string_id(
								      &database->names, id)));
	bind_statement_integer(database, INSERT_DISPATCH, 5, (sqlite3_int64)kernel->dispatch);
	bind_statement_integer(database, INSERT_DISPATCH, 6,
			       make_database_row_id(database, kernel->queue));
	bind_statement_integer(database, INSERT_DISPATCH, 7, (sqlite3_int64)kernel->start);
	bind_statement_integer(database, INSERT_DISPATCH, 8,
			       (sqlite3_int64)kernel->start + (sqlite3_int64)kernel->duration);
	bind_statement_integer(database, INSERT_DISPATCH, 9, shape->private_bytes);
	bind_statement_integer(database, INSERT_DISPATCH, 10, shape->group_bytes);
	for (int i = 0; i < 3; i++) {
		bind_statement_integer(database, INSERT_DISPATCH, 11 + i, shape->group[i]);
		bind_statement_integer(database, INSERT_DISPATCH, 14 + i, shape->grid[i]);
	}
	bind_statement_integer(database, INSERT_DISPATCH, 17, database->event);
	bind_statement_text(database, INSERT_DISPATCH, 18,
			    gpu_names_get_demangled_kernel_name(&database->names, id));
	return result != 0 ? result : execute_insert_statement(database, INSERT_DISPATCH);
}

/* A track a counter; the event says since when. */
static int insert_device_reading_sample(struct rocpd_database *database,
					const struct gpu_counter_measurement *count)
{
	sqlite3_int64 track = make_database_row_id(database, count->counter->head.id);
	char extra[64];
	int result;

	snprintf(extra, sizeof(extra), "{\"start\": %llu}", (unsigned long long)count->start);
	result = insert_event(database, 0, extra, CATEGORY_OF_READINGS);
	bind_statement_integer(database, INSERT_TRACK, 1, track);
	bind_statement_integer(database, INSERT_TRACK, 2, database->process);
	bind_statement_text(database, INSERT_TRACK, 3,
			    gpu_get_interned_string(database->names.process, count->counter->name));
	if (result == 0)
		result = execute_insert_statement(database, INSERT_TRACK);
	bind_statement_integer(database, INSERT_SAMPLE, 1, track);
	bind_statement_integer(database, INSERT_SAMPLE, 2, (sqlite3_int64)count->end);
	bind_statement_integer(database, INSERT_SAMPLE, 3, database->event);
	return result != 0 ? result : execute_insert_statement(database, INSERT_SAMPLE);
}

/* A name in JSON: the file that has it may hold anything. */
static void copy_name_as_json_word(char *text, size_t size, const char *name)
{
	size_t used = 0;

	for (; *name && used + 1 < size; name++)
		text[used++] = isalnum((unsigned char)*name) ? *name : '_';
	text[used] = '\0';
}

/* {"DIMENSION_XCC": 1, ...} where there is more than one instance. */
static void format_counter_instance_json(const struct rocpd_database *database,
					 const struct gpu_counter *counter, uint32_t instance,
					 char *text, size_t size)
{
	uint32_t positions[GPU_DIMENSIONS_MAX];
	size_t used = (size_t)snprintf(text, size, "{");

	gpu_counter_instance_to_dimension_positions(counter, instance, positions);
	for (uint32_t i = 0; i < counter->dimension_count && used + 64 < size; i++) {
		char name[41];

		copy_name_as_json_word(name, sizeof(name),
				       gpu_get_interned_string(database->names.process,
							       counter->dimensions[i].name));
		used += (size_t)snprintf(text + used, size - used, "%s\"%s\": %u",
					 i != 0 ? ", " : "", name, positions[i]);
	}
	snprintf(text + used, size - used, "}");
}

static int insert_counter_values(const struct gpu_counter_measurement *count, void *context)
{
	struct rocpd_database *database = context;
	char extra[GPU_DIMENSIONS_MAX * 64];
	int result = 0;

	if (count->kernel == NULL)
		result = insert_device_reading_sample(database, count);
	else if (count->kernel != database->open)
		result = insert_kernel_dispatch(database, count->kernel);
	database->open = count->kernel;
	for (size_t i = 0; result == 0 && i < count->value_count; i++) {
		const struct gpu_value *value = &count->values[i];

		bind_statement_integer(database, INSERT_VALUE, 1, database->event);
		bind_statement_integer(database, INSERT_VALUE, 2,
				       make_database_row_id(database, count->counter->head.id));
		/* Infinity as well as what is no number is NULL, as in all files. */
		sqlite3_bind_double(database->prepared_statements[INSERT_VALUE], 3,
				    isfinite(value->value) ? value->value : NAN);
		if (count->value_count > 1) {
			format_counter_instance_json(database, count->counter, value->instance,
						     extra, sizeof(extra));
			bind_statement_text(database, INSERT_VALUE, 4, extra);
		}
		result = execute_insert_statement(database, INSERT_VALUE);
	}
	return result;
}

/* ---- the file ---- */

static int execute_sql(struct rocpd_database *database, const char *text)
{
	return sqlite3_exec(database->handle, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : -EIO;
}

/* The run: when it began, and its first process. */
static void format_guid(const struct session *session, char guid[GUID_TEXT_SIZE])
{
	const struct gpu_data *data = session_get_gpu_data(session);
	uint64_t start_ns = session->start_ns + (uint64_t)session->realtime_minus_boottime_ns;
	uint32_t pid = session->process_count != 0 ? session->processes[0].pid : 0;

	if (data != NULL && data->process_count != 0) {
		start_ns = data->processes[0].header.start_realtime_ns;
		pid = data->processes[0].header.pid;
	}
	snprintf(guid, GUID_TEXT_SIZE, "%016llx-%08x", (unsigned long long)start_ns, pid);
}

struct schema_request {
	struct rocpd_database *database;
	int result;
};

static void execute_schema(rocpd_sql_engine_t engine, rocpd_sql_schema_kind_t kind,
			   rocpd_sql_options_t options,
			   const rocpd_sql_schema_jinja_variables_t *variables, const char *path,
			   const char *text, void *request_data)
{
	struct schema_request *request = request_data;

	(void)engine;
	(void)kind;
	(void)options;
	(void)variables;
	(void)path;
	request->result = execute_sql(request->database, text);
}

static int execute_schema_of_kind(struct rocpd_database *database, rocpd_sql_schema_kind_t kind)
{
	const rocpd_sql_schema_jinja_variables_t variables = {
		.size = sizeof(variables), .uuid = database->guid, .guid = database->guid};
	struct schema_request request = {database, -ENOMEM};

	rocpd_sql_load_schema(ROCPD_SQL_ENGINE_SQLITE3, kind, ROCPD_SQL_OPTIONS_NONE, &variables,
			      execute_schema, NULL, 0, &request);
	return request.result;
}

static int create_tables_and_views(struct rocpd_database *database)
{
	static const rocpd_sql_schema_kind_t kinds[] = {
		ROCPD_SQL_SCHEMA_ROCPD_TABLES, ROCPD_SQL_SCHEMA_ROCPD_VIEWS,
		ROCPD_SQL_SCHEMA_ROCPD_DATA_VIEWS, ROCPD_SQL_SCHEMA_ROCPD_METADATA};
	int result = 0;

	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(kinds); i++)
		result = execute_schema_of_kind(database, kinds[i]);
	return result == 0 ? execute_sql(database, device_counters_view_sql) : result;
}

/* The suffix of the run's tables is what a reader finds as its uuid. */
static int read_table_suffix(struct rocpd_database *database, char suffix[GUID_TEXT_SIZE])
{
	sqlite3_stmt *statement = NULL;
	int result = -EIO;

	if (sqlite3_prepare_v2(database->handle,
			       "SELECT value FROM rocpd_metadata WHERE tag = 'uuid'", -1,
			       &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW) {
		snprintf(suffix, GUID_TEXT_SIZE, "%s",
			 (const char *)sqlite3_column_text(statement, 0));
		result = 0;
	}
	sqlite3_finalize(statement);
	return result;
}

static int prepare_statement(struct rocpd_database *database, enum sql_insert_statement_kind which,
			     const char *suffix)
{
	static const char variable[] = "{{uuid}}";
	const char *from = sql_insert_statement_texts[which], *found;
	char text[STATEMENT_TEXT_SIZE];
	size_t used = 0;

	while ((found = strstr(from, variable)) != NULL) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s%s",
					 (int)(found - from), from, suffix);
		from = found + sizeof(variable) - 1;
		if (used >= sizeof(text))
			return -ENOMEM;
	}
	if ((size_t)snprintf(text + used, sizeof(text) - used, "%s", from) >= sizeof(text) - used)
		return -ENOMEM;
	return sqlite3_prepare_v2(database->handle, text, -1, &database->prepared_statements[which],
				  NULL) == SQLITE_OK
		       ? 0
		       : -EIO;
}

static int prepare_statements(struct rocpd_database *database)
{
	char suffix[GUID_TEXT_SIZE];
	int result = read_table_suffix(database, suffix);

	for (int i = 0; result == 0 && i < SQL_INSERT_STATEMENT_COUNT; i++)
		result = prepare_statement(database, (enum sql_insert_statement_kind)i, suffix);
	return result;
}

/* Of the machine its name is known. */
static int insert_node(struct rocpd_database *database, const struct session *session)
{
	const char *host = session->process_count != 0 ? session->processes[0].host : NULL;

	bind_statement_text(database, INSERT_NODE, 1, host != NULL ? host : "");
	return execute_insert_statement(database, INSERT_NODE);
}

static int fill_counter_tables(struct rocpd_database *database, const struct session *session)
{
	const struct gpu_data *data = session_get_gpu_data(session);
	int result = insert_string(database, CATEGORY_OF_KERNELS);

	if (result == 0)
		result = insert_string(database, CATEGORY_OF_READINGS);
	for (size_t i = 0; result == 0 && i < data->process_count; i++) {
		database->process = (sqlite3_int64)i + 1;
		database->open = NULL;
		result = gpu_names_init(&database->names, &data->processes[i]);
		if (result == 0)
			result = insert_process_and_agents_and_counters(database,
									session->command_line);
		if (result == 0)
			result = gpu_visit_counter_measurements(&data->processes[i],
								insert_counter_values, database);
		gpu_names_deinit(&database->names);
	}
	return result;
}

static int fill_rocpd_tables(struct rocpd_database *database, const struct session *session)
{
	int result = prepare_statements(database);

	if (result == 0)
		result = insert_metadata(database, "kymo_version", KYMO_VERSION);
	if (result == 0)
		result = insert_node(database, session);
	if (result == 0 && session_get_gpu_data(session) != NULL)
		result = fill_counter_tables(database, session);
	return result == 0 ? execute_schema_of_kind(database, ROCPD_SQL_SCHEMA_ROCPD_INDEXES)
			   : result;
}

static int create_and_fill_database_file(struct rocpd_database *database, const char *path,
					 struct session *session, struct problem *problem)
{
	int result = sqlite3_open(path, &database->handle) == SQLITE_OK ? 0 : -EIO;

	format_guid(session, database->guid);
	if (result == 0)
		result = execute_sql(database,
				     "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
				     "BEGIN");
	if (result == 0)
		result = create_tables_and_views(database);
	if (result == 0)
		result = fill_rocpd_tables(database, session);
	if (result == 0)
		result = database_write_tables(database->handle, session, problem);
	if (result == 0 && session_get_nccl_data(session) != NULL)
		result = nccl_db_write_tables(database->handle, session, problem);
	return result == 0 ? execute_sql(database, "COMMIT") : result;
}

/* SQLite calls a full disk so, a limit of file sizes an error of the disk. */
static const char *get_sqlite_failure_reason(sqlite3 *handle)
{
	int error = sqlite3_errcode(handle) == SQLITE_IOERR ? sqlite3_system_errno(handle) : 0;

	return error ? strerror(error) : sqlite3_errmsg(handle);
}

int results_database_create(struct session *session, const char *path, struct problem *problem)
{
	struct rocpd_database database = {.handle = NULL};
	int result;

	*problem->text = '\0';
	result = create_and_fill_database_file(&database, path, session, problem);
	if (result != 0 && *problem->text == '\0')
		problem_set(problem, result, "cannot make the database in '%s': %s", path,
			    result == -ENOMEM || database.handle == NULL
				    ? "out of memory"
				    : get_sqlite_failure_reason(database.handle));
	for (int i = 0; i < SQL_INSERT_STATEMENT_COUNT; i++)
		sqlite3_finalize(database.prepared_statements[i]);
	sqlite3_close(database.handle);
	return result;
}
