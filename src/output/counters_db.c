/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * results.db: counters, and what NCCL did (nccl_db.c), as SQLite; of counters with the tables and
 * columns of rocpd (schema 3) that have to do with kernels and counters, and its view
 * counters_collection. Tables carry no suffix of a run's uuid. A reading of a device is a sample
 * with an event, as rocpd has it.
 *
 * The database is made in a temporary file, which is then copied into the stream. Ids are
 * process << 32 | id, so that no id needs to be looked up.
 */
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/gpu_counts.h"
#include "output/counters_schema.h"
#include "output/gpu_names.h"
#include "output/nccl_db.h"
#include "output/writers.h"

#define GUID_SIZE 40

enum statement {
	INSERT_METADATA,
	INSERT_STRING,
	INSERT_PROCESS,
	INSERT_THREAD,
	INSERT_AGENT,
	INSERT_QUEUE,
	INSERT_COUNTER,
	INSERT_KERNEL,
	INSERT_EVENT,
	INSERT_DISPATCH,
	INSERT_TRACK,
	INSERT_SAMPLE,
	INSERT_VALUE,
	STATEMENTS
};

static const char *const statements[STATEMENTS] = {
	[INSERT_METADATA] = "INSERT INTO rocpd_metadata(tag, value) VALUES(?1, ?2)",
	[INSERT_STRING] = "INSERT OR IGNORE INTO rocpd_string(id, guid, string) "
			  "VALUES(?1, (SELECT value FROM rocpd_metadata WHERE tag = 'guid'), ?2)",
	[INSERT_PROCESS] = "INSERT INTO rocpd_info_process(id, nid, pid, start, command) "
			   "VALUES(?1, 1, ?2, ?3, ?4)",
	[INSERT_THREAD] =
		"INSERT OR IGNORE INTO rocpd_info_thread(id, nid, pid, tid) VALUES(?1, 1, ?2, ?3)",
	[INSERT_AGENT] = "INSERT INTO rocpd_info_agent(id, nid, pid, type, absolute_index, "
			 "type_index, name, model_name, vendor_name, product_name) "
			 "VALUES(?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?7)",
	[INSERT_QUEUE] = "INSERT OR IGNORE INTO rocpd_info_queue(id, nid, pid, name) "
			 "VALUES(?1, 1, ?2, ?3)",
	[INSERT_COUNTER] =
		"INSERT INTO rocpd_info_pmc(id, nid, pid, agent_id, target_arch, name, symbol, "
		"description, block, expression, value_type, is_constant, is_derived) "
		"VALUES(?1, 1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, 'ABS', ?9, ?10)",
	[INSERT_KERNEL] = "INSERT OR IGNORE INTO rocpd_info_kernel_symbol(id, nid, pid, "
			  "kernel_name, display_name) VALUES(?1, 1, ?2, ?3, ?4)",
	[INSERT_EVENT] = "INSERT INTO rocpd_event(id, stack_id, extdata) VALUES(?1, ?2, ?3)",
	[INSERT_DISPATCH] =
		"INSERT INTO rocpd_kernel_dispatch(nid, pid, tid, agent_id, kernel_id, "
		"dispatch_id, queue_id, start, end, private_segment_size, group_segment_size, "
		"workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, "
		"grid_size_z, event_id) VALUES(1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, "
		"?12, ?13, ?14, ?15, ?16, ?17)",
	[INSERT_TRACK] = "INSERT OR IGNORE INTO rocpd_track(id, nid, pid, name_id) "
			 "VALUES(?1, 1, ?2, ?3)",
	[INSERT_SAMPLE] =
		"INSERT INTO rocpd_sample(track_id, timestamp, event_id) VALUES(?1, ?2, ?3)",
	[INSERT_VALUE] = "INSERT INTO rocpd_pmc_event(event_id, pmc_id, value, extdata) "
			 "VALUES(?1, ?2, ?3, ?4)",
};

struct database {
	sqlite3 *handle;
	sqlite3_stmt *prepared[STATEMENTS];
	struct gpu_names names;
	sqlite3_int64 process; /* number of it, from 1 */
	sqlite3_int64 event;   /* the last one's id */
	const struct gpu_counted *open;
};

static sqlite3_int64 id_of(const struct database *database, uint64_t id)
{
	return database->process << 32 | (sqlite3_int64)(id & UINT32_MAX);
}

static void bind_text(struct database *database, enum statement which, int place, const char *text)
{
	sqlite3_bind_text(database->prepared[which], place, text, -1, SQLITE_TRANSIENT);
}

static void bind_id(struct database *database, enum statement which, int place, sqlite3_int64 id)
{
	sqlite3_bind_int64(database->prepared[which], place, id);
}

/* 0 or -EIO; what went wrong is the handle's to tell. */
static int step(struct database *database, enum statement which)
{
	sqlite3_stmt *statement = database->prepared[which];
	int result = sqlite3_step(statement);

	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	return result == SQLITE_DONE ? 0 : -EIO;
}

/* ---- what there is ---- */

static int put_metadata(struct database *database, const char *tag, const char *value)
{
	bind_text(database, INSERT_METADATA, 1, tag);
	bind_text(database, INSERT_METADATA, 2, value);
	return step(database, INSERT_METADATA);
}

static int put_string(struct database *database, uint32_t id)
{
	bind_id(database, INSERT_STRING, 1, id_of(database, id));
	bind_text(database, INSERT_STRING, 2, gpu_string(database->names.process, id));
	return step(database, INSERT_STRING);
}

static int put_agent(struct database *database, const struct gpu_agent *agent)
{
	const struct gpu_process *process = database->names.process;

	bind_id(database, INSERT_AGENT, 1, id_of(database, agent->head.id));
	bind_id(database, INSERT_AGENT, 2, database->process);
	bind_text(database, INSERT_AGENT, 3, agent->type == GPU_AGENT_GPU ? "GPU" : "CPU");
	bind_id(database, INSERT_AGENT, 4, agent->node);
	bind_id(database, INSERT_AGENT, 5, agent->ordinal);
	bind_text(database, INSERT_AGENT, 6, gpu_string(process, agent->name));
	bind_text(database, INSERT_AGENT, 7, gpu_string(process, agent->product));
	bind_text(database, INSERT_AGENT, 8, gpu_string(process, agent->vendor));
	return step(database, INSERT_AGENT);
}

static int put_counter(struct database *database, const struct gpu_counter *counter)
{
	const struct gpu_process *process = database->names.process;
	const struct gpu_agent *agent =
		counter->agent <= process->agent_count ? process->agents[counter->agent] : NULL;
	const uint32_t texts[] = {counter->description, counter->block, counter->expression};
	int result = put_string(database, counter->name);

	bind_id(database, INSERT_COUNTER, 1, id_of(database, counter->head.id));
	bind_id(database, INSERT_COUNTER, 2, database->process);
	bind_id(database, INSERT_COUNTER, 3, id_of(database, counter->agent));
	bind_text(database, INSERT_COUNTER, 4,
		  agent != NULL && agent->type == GPU_AGENT_GPU ? "GPU" : "CPU");
	bind_text(database, INSERT_COUNTER, 5, gpu_string(process, counter->name));
	for (int i = 0; i < 3; i++)
		bind_text(database, INSERT_COUNTER, 6 + i,
			  texts[i] != 0 ? gpu_string(process, texts[i]) : "");
	bind_id(database, INSERT_COUNTER, 9, (counter->flags & GPU_COUNTER_CONSTANT) != 0);
	bind_id(database, INSERT_COUNTER, 10, (counter->flags & GPU_COUNTER_DERIVED) != 0);
	return result != 0 ? result : step(database, INSERT_COUNTER);
}

static int put_process(struct database *database, const char *command)
{
	const struct gpu_process *process = database->names.process;
	int result;

	bind_id(database, INSERT_PROCESS, 1, database->process);
	bind_id(database, INSERT_PROCESS, 2, process->header.pid);
	bind_id(database, INSERT_PROCESS, 3, (sqlite3_int64)process->header.start_boottime_ns);
	bind_text(database, INSERT_PROCESS, 4, command != NULL ? command : "");
	result = step(database, INSERT_PROCESS);
	for (uint32_t i = 1; result == 0 && i <= process->agent_count; i++) {
		if (process->agents[i] != NULL)
			result = put_agent(database, process->agents[i]);
	}
	for (uint32_t i = 1; result == 0 && i <= process->counter_count; i++) {
		if (process->counters[i] != NULL)
			result = put_counter(database, process->counters[i]);
	}
	return result;
}

/* ---- events and values ---- */

static int put_event(struct database *database, uint64_t correlation, const char *extra)
{
	bind_id(database, INSERT_EVENT, 1, ++database->event);
	bind_id(database, INSERT_EVENT, 2, (sqlite3_int64)correlation);
	bind_text(database, INSERT_EVENT, 3, extra);
	return step(database, INSERT_EVENT);
}

/* What a launch refers to. */
static int put_references(struct database *database, const struct gpu_counted *kernel)
{
	const struct gpu_process *process = database->names.process;
	uint32_t shape = kernel->head.id;
	uint32_t name = gpu_names_kernel_id(&database->names, shape);
	char queue[32];
	int result;

	bind_id(database, INSERT_KERNEL, 1, id_of(database, name));
	bind_id(database, INSERT_KERNEL, 2, database->process);
	bind_text(database, INSERT_KERNEL, 3, gpu_string(process, name));
	bind_text(database, INSERT_KERNEL, 4, gpu_names_kernel(&database->names, shape));
	result = step(database, INSERT_KERNEL);
	bind_id(database, INSERT_THREAD, 1, id_of(database, kernel->tid));
	bind_id(database, INSERT_THREAD, 2, database->process);
	bind_id(database, INSERT_THREAD, 3, kernel->tid);
	if (result == 0)
		result = step(database, INSERT_THREAD);
	snprintf(queue, sizeof(queue), "Queue %u", (unsigned)(kernel->queue & UINT32_MAX));
	bind_id(database, INSERT_QUEUE, 1, id_of(database, kernel->queue));
	bind_id(database, INSERT_QUEUE, 2, database->process);
	bind_text(database, INSERT_QUEUE, 3, queue);
	return result != 0 ? result : step(database, INSERT_QUEUE);
}

static int put_dispatch(struct database *database, const struct gpu_counted *kernel)
{
	static const struct gpu_shape none;
	const struct gpu_process *process = database->names.process;
	uint32_t id = kernel->head.id;
	const struct gpu_shape *shape = id <= process->shape_count ? process->shapes[id] : NULL;
	int result = put_references(database, kernel);

	if (shape == NULL)
		shape = &none;
	if (result == 0)
		result = put_event(database, kernel->correlation, "{}");
	bind_id(database, INSERT_DISPATCH, 1, database->process);
	bind_id(database, INSERT_DISPATCH, 2, id_of(database, kernel->tid));
	bind_id(database, INSERT_DISPATCH, 3, id_of(database, shape->agent));
	bind_id(database, INSERT_DISPATCH, 4,
		id_of(database, gpu_names_kernel_id(&database->names, id)));
	bind_id(database, INSERT_DISPATCH, 5, (sqlite3_int64)kernel->dispatch);
	bind_id(database, INSERT_DISPATCH, 6, id_of(database, kernel->queue));
	bind_id(database, INSERT_DISPATCH, 7, (sqlite3_int64)kernel->start);
	bind_id(database, INSERT_DISPATCH, 8,
		(sqlite3_int64)kernel->start + (sqlite3_int64)kernel->duration);
	bind_id(database, INSERT_DISPATCH, 9, shape->private_bytes);
	bind_id(database, INSERT_DISPATCH, 10, shape->group_bytes);
	for (int i = 0; i < 3; i++) {
		bind_id(database, INSERT_DISPATCH, 11 + i, shape->group[i]);
		bind_id(database, INSERT_DISPATCH, 14 + i, shape->grid[i]);
	}
	bind_id(database, INSERT_DISPATCH, 17, database->event);
	return result != 0 ? result : step(database, INSERT_DISPATCH);
}

/* A track a counter; the event says since when. */
static int put_sample(struct database *database, const struct gpu_count *count)
{
	sqlite3_int64 track = id_of(database, count->counter->head.id);
	char extra[64];
	int result;

	snprintf(extra, sizeof(extra), "{\"start\": %llu}", (unsigned long long)count->start);
	result = put_event(database, 0, extra);
	bind_id(database, INSERT_TRACK, 1, track);
	bind_id(database, INSERT_TRACK, 2, database->process);
	bind_id(database, INSERT_TRACK, 3, id_of(database, count->counter->name));
	if (result == 0)
		result = step(database, INSERT_TRACK);
	bind_id(database, INSERT_SAMPLE, 1, track);
	bind_id(database, INSERT_SAMPLE, 2, (sqlite3_int64)count->end);
	bind_id(database, INSERT_SAMPLE, 3, database->event);
	return result != 0 ? result : step(database, INSERT_SAMPLE);
}

/* {"DIMENSION_XCC": 1, ...} where there is more than one instance. */
static void describe_instance(const struct database *database, const struct gpu_counter *counter,
			      uint32_t instance, char *text, size_t size)
{
	uint32_t positions[GPU_DIMENSIONS_MAX];
	size_t used = (size_t)snprintf(text, size, "{");

	gpu_count_positions(counter, instance, positions);
	for (uint32_t i = 0; i < counter->dimension_count && used + 64 < size; i++)
		used += (size_t)snprintf(
			text + used, size - used, "%s\"%.40s\": %u", i != 0 ? ", " : "",
			gpu_string(database->names.process, counter->dimensions[i].name),
			positions[i]);
	snprintf(text + used, size - used, "}");
}

static int put_count(const struct gpu_count *count, void *context)
{
	struct database *database = context;
	char extra[GPU_DIMENSIONS_MAX * 64];
	int result = 0;

	if (count->kernel == NULL)
		result = put_sample(database, count);
	else if (count->kernel != database->open)
		result = put_dispatch(database, count->kernel);
	database->open = count->kernel;
	for (size_t i = 0; result == 0 && i < count->value_count; i++) {
		const struct gpu_value *value = &count->values[i];

		bind_id(database, INSERT_VALUE, 1, database->event);
		bind_id(database, INSERT_VALUE, 2, id_of(database, count->counter->head.id));
		/* Infinity as well as what is no number is NULL, as in all files. */
		sqlite3_bind_double(database->prepared[INSERT_VALUE], 3,
				    isfinite(value->value) ? value->value : NAN);
		if (count->value_count > 1) {
			describe_instance(database, count->counter, value->instance, extra,
					  sizeof(extra));
			bind_text(database, INSERT_VALUE, 4, extra);
		}
		result = step(database, INSERT_VALUE);
	}
	return result;
}

/* ---- the file ---- */

static int execute(struct database *database, const char *text)
{
	return sqlite3_exec(database->handle, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : -EIO;
}

static int fill(struct database *database, const struct session *session)
{
	const struct gpu_data *data = session->gpu;
	char guid[GUID_SIZE];
	int result;

	snprintf(guid, sizeof(guid), "%016llx-%08x",
		 (unsigned long long)data->processes[0].header.start_realtime_ns,
		 data->processes[0].header.pid);
	result = put_metadata(database, "schema_version", "3");
	if (result == 0)
		result = put_metadata(database, "guid", guid);
	if (result == 0)
		result = put_metadata(database, "kymo_version", KYMO_VERSION);
	for (size_t i = 0; result == 0 && i < data->process_count; i++) {
		database->process = (sqlite3_int64)i + 1;
		database->open = NULL;
		result = gpu_names_init(&database->names, &data->processes[i]);
		if (result == 0)
			result = put_process(database, session->command_line);
		if (result == 0)
			result = gpu_each_count(&data->processes[i], put_count, database);
		gpu_names_deinit(&database->names);
	}
	return result;
}

static int make(struct database *database, const char *path, const struct session *session,
		struct problem *problem)
{
	int result = sqlite3_open(path, &database->handle) == SQLITE_OK ? 0 : -EIO;

	if (result == 0)
		result = execute(database, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
					   "BEGIN");
	if (result == 0)
		result = execute(database, counters_schema);
	for (int i = 0; result == 0 && i < STATEMENTS; i++) {
		if (sqlite3_prepare_v2(database->handle, statements[i], -1, &database->prepared[i],
				       NULL) != SQLITE_OK)
			result = -EIO;
	}
	if (result == 0 && session->gpu != NULL && session->gpu->process_count != 0)
		result = fill(database, session);
	if (result == 0 && session->nccl != NULL)
		result = nccl_db_fill(database->handle, session, problem);
	return result == 0 ? execute(database, "COMMIT") : result;
}

static int copy(const char *path, FILE *stream)
{
	FILE *made = fopen(path, "re");
	char bytes[65536];
	size_t got;
	int result = 0;

	if (made == NULL)
		return -errno;
	errno = 0;
	while (result == 0 && (got = fread(bytes, 1, sizeof(bytes), made)) != 0) {
		if (fwrite(bytes, 1, got, stream) != got)
			result = errno ? -errno : -EIO;
	}
	if (ferror(made))
		result = errno ? -errno : -EIO;
	fclose(made);
	return result;
}

/* SQLite calls a full disk so, a limit of file sizes an error of the disk. */
static const char *reason(sqlite3 *handle)
{
	int error = sqlite3_errcode(handle) == SQLITE_IOERR ? sqlite3_system_errno(handle) : 0;

	return error ? strerror(error) : sqlite3_errmsg(handle);
}

int output_counters_db(struct session *session, const struct output_options *options, FILE *stream,
		       struct problem *problem)
{
	const char *directory = getenv("TMPDIR");
	struct database database = {.handle = NULL};
	char path[4096];
	int descriptor, result;

	(void)options;
	snprintf(path, sizeof(path), "%s/kymo-results-XXXXXX",
		 directory != NULL && *directory != '\0' ? directory : "/tmp");
	descriptor = mkstemp(path);
	if (descriptor < 0)
		return problem_set(problem, -errno, "cannot make '%s': %s", path, strerror(errno));
	close(descriptor);
	*problem->text = '\0';
	result = make(&database, path, session, problem);
	if (result != 0 && *problem->text == '\0')
		problem_set(problem, result, "cannot make the database in '%s': %s", path,
			    result == -ENOMEM || database.handle == NULL ? "out of memory"
									 : reason(database.handle));
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(database.prepared[i]);
	sqlite3_close(database.handle);
	if (result == 0) {
		result = copy(path, stream);
		if (result != 0)
			problem_set(problem, result, "cannot write the database: %s",
				    strerror(-result));
	}
	unlink(path);
	return result;
}
