/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See tables.h: from the session's views, whose numbers every other output has, to tables.
 */
#include "output/database/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/gpu/gpu.h"
#include "analysis/views.h"
#include "output/database/rows.h"
#include "output/database/schema.h"
#include "output/device_steps.h"
#include "output/gpu_names.h"
#include "output/interpreter_states.h"
#include "output/region_rows.h"

#define LOCK_STATE_NAME_SIZE 32

const char *const database_table_names[] = {
	"metadata",    "processes", "threads",   "frames",  "nodes", "samples",   "stacks",
	"functions",   "lines",     "addresses", "regions", "calls", "kernels",   "copies",
	"device_work", "steps",     "metrics",   "losses",  "waits", "cpu_times", NULL,
};

static const char *const source_names[SPOOL_SOURCE_COUNT] = {
	[SPOOL_SOURCE_CPU] = "cpu",
	[SPOOL_SOURCE_WALL] = "blocked",
	[SPOOL_SOURCE_OVERFLOW] = "event",
	[SPOOL_SOURCE_RUNNABLE] = "runnable",
};

static void put_weights(struct table_rows *rows, const uint64_t weight[SPOOL_SOURCE_COUNT],
			const uint64_t samples[SPOOL_SOURCE_COUNT])
{
	uint64_t count = 0;

	for (unsigned source = 0; source < SPOOL_SOURCE_COUNT; source++)
		count += samples[source];
	put_count(rows, weight[SPOOL_SOURCE_CPU]);
	put_count(rows, weight[SPOOL_SOURCE_WALL]);
	put_count(rows, weight[SPOOL_SOURCE_RUNNABLE]);
	put_count(rows, weight[SPOOL_SOURCE_OVERFLOW]);
	put_count(rows, count);
}

/* ---- the run ---- */

static int write_metadata(sqlite3 *handle, const struct session *session)
{
	const struct {
		const char *tag, *text;
		uint64_t number;
	} tags[] = {
		{"schema", DATABASE_SCHEMA, 0},
		{"kymo_version", KYMO_VERSION, 0},
		{"command_line", session->command_line, 0},
		{"host", session->process_count ? session->processes[0].host : "", 0},
		{"measure", view_measure_get_name(view_choose_default_measure(session)), 0},
		{"start_ns", NULL, session->start_ns},
		{"end_ns", NULL, session->end_ns},
		{"realtime_minus_boottime_ns", NULL, (uint64_t)session->realtime_minus_boottime_ns},
	};
	struct table_rows rows;

	table_rows_begin(&rows, handle, "kymo_metadata", 2);
	for (size_t i = 0; i < sizeof(tags) / sizeof(*tags); i++) {
		put_text(&rows, tags[i].tag);
		if (tags[i].text)
			put_text(&rows, tags[i].text);
		else
			put_count(&rows, tags[i].number);
		put_row(&rows);
	}
	return table_rows_finish(&rows);
}

static int write_processes(sqlite3 *handle, const struct session *session)
{
	struct table_rows rows;

	table_rows_begin(&rows, handle, "kymo_processes", 12);
	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];

		put_count(&rows, i);
		put_count(&rows, process->pid);
		put_count(&rows, process->parent_pid);
		put_null_unless(&rows, process->rank_count != 0, process->rank);
		put_text(&rows, process->name);
		put_text(&rows, process->executable);
		put_text(&rows, process->command_line);
		put_text(&rows, process->host);
		put_count(&rows, process->start_ns);
		put_count(&rows, process->end_ns);
		put_null_unless(&rows, process->wait_status >= 0, (uint64_t)process->wait_status);
		if (process->cgroup)
			put_text(&rows, process->cgroup);
		else
			put_null_unless(&rows, false, 0);
		put_row(&rows);
	}
	return table_rows_finish(&rows);
}

static int write_cpu_times(sqlite3 *handle, const struct session *session)
{
	struct table_rows rows;

	table_rows_begin(&rows, handle, "kymo_cpu_times", 3);
	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];

		for (uint32_t k = 0; k < process->times_by_cpu_count; k++) {
			put_count(&rows, i);
			put_count(&rows, process->times_by_cpu[k].cpu);
			put_count(&rows, process->times_by_cpu[k].ns);
			put_row(&rows);
		}
	}
	return table_rows_finish(&rows);
}

/* kymo's own threads are none of the program's. */
static int write_threads(sqlite3 *handle, const struct session *session)
{
	struct table_rows rows;

	table_rows_begin(&rows, handle, "kymo_threads",
			 12 + INTERPRETER_STATE_END - INTERPRETER_STATE_FIRST);
	for (uint32_t i = 0; i < session->thread_count; i++) {
		const struct model_thread *thread = &session->threads[i];

		if (thread->how == 3)
			continue;
		put_count(&rows, i);
		put_count(&rows, thread->process);
		put_count(&rows, thread->tid);
		put_text(&rows, thread->name);
		put_count(&rows, thread->start_ns);
		put_null_unless(&rows, thread->end_ns != UINT64_MAX, thread->end_ns);
		put_count(&rows, thread->cpu_ns);
		put_weights(&rows, thread->weight, thread->samples);
		for (unsigned state = INTERPRETER_STATE_FIRST; state < INTERPRETER_STATE_END;
		     state++)
			put_null_unless(&rows, interpreter_state_sum_ns(thread) != 0,
					interpreter_state_get_ns(thread, state));
		put_row(&rows);
	}
	return table_rows_finish(&rows);
}

static int write_metrics(sqlite3 *handle, const struct session *session)
{
	struct table_rows rows;

	table_rows_begin(&rows, handle, "kymo_metrics", 5);
	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];

		for (size_t k = 0; k < process->metric_count; k++) {
			const struct model_metric_sample *sample = &process->metrics[k];
			const char *unit = NULL;
			const char *name = spool_process_metric_get_name(sample->metric, &unit);

			put_count(&rows, i);
			put_count(&rows, sample->time_ns);
			put_text(&rows, name);
			put_text(&rows, unit);
			put_count(&rows, sample->value);
			put_row(&rows);
		}
	}
	return table_rows_finish(&rows);
}

static int write_losses(sqlite3 *handle, const struct session *session)
{
	struct table_rows rows;

	table_rows_begin(&rows, handle, "kymo_losses", 3);
	for (uint32_t i = 0; i < session->process_count; i++) {
		for (int loss = 0; loss < SPOOL_LOSS_COUNT; loss++) {
			if (!session->processes[i].losses[loss])
				continue;
			put_count(&rows, i);
			put_text(&rows, spool_loss_name((enum spool_loss)loss));
			put_count(&rows, session->processes[i].losses[loss]);
			put_row(&rows);
		}
	}
	return table_rows_finish(&rows);
}

/* ---- code ---- */

static int write_frames(sqlite3 *handle, const struct session *session)
{
	static const char *const kinds[] = {
		[FRAME_NATIVE] = "native",
		[FRAME_INLINE] = "inline",
		[FRAME_JIT] = "jit",
		[FRAME_UNRESOLVED] = "unresolved",
		[FRAME_SYNTHETIC] = "synthetic",
		[FRAME_THREAD_STATE] = "thread_state",
		[FRAME_INTERPRETED] = "interpreted",
		[FRAME_DEVICE_WORK] = "device",
	};
	struct table_rows rows;

	table_rows_begin(&rows, handle, "kymo_frames", 10);
	for (uint32_t i = 0; i < session->frame_count; i++) {
		const struct model_frame *frame = &session->frames[i];
		bool has_module = frame->module != MODEL_ENTRY_INDEX_NONE;

		put_count(&rows, i);
		put_count(&rows, frame->function_id);
		put_text(&rows, frame->function);
		put_text(&rows, frame->linkage_name ? frame->linkage_name : frame->function);
		put_text(&rows, kinds[frame->kind]);
		put_text(&rows, has_module ? session->modules[frame->module].path : NULL);
		put_text(&rows, frame->file);
		put_null_unless(&rows, frame->line != 0, frame->line);
		put_null_unless(&rows, frame->function_line != 0, frame->function_line);
		put_null_unless(&rows, has_module, frame->relative_pc);
		put_row(&rows);
	}
	return table_rows_finish(&rows);
}

static int write_nodes(sqlite3 *handle, const struct session *session)
{
	struct table_rows rows;

	table_rows_begin(&rows, handle, "kymo_nodes", 10);
	for (uint32_t i = 0; i < session->node_count; i++) {
		const struct model_calltree_node *node = &session->nodes[i];

		put_count(&rows, i);
		put_null_unless(&rows, node->parent != MODEL_ENTRY_INDEX_NONE, node->parent);
		put_count(&rows, node->frame);
		put_count(&rows, node->process);
		put_count(&rows, node->depth);
		put_weights(&rows, node->self_weight, node->self_samples);
		put_row(&rows);
	}
	return table_rows_finish(&rows);
}

struct function_sums {
	uint32_t frame;
	uint64_t self[3], total[3]; /* by measure */
};

static int sum_functions(const struct session *session, struct function_sums *sums)
{
	for (unsigned measure = 0; measure < 3; measure++) {
		struct view_flat_profile_row *functions;
		size_t count;
		int error = view_build_flat_profile(session, (enum view_measure_kind)measure,
						    &functions, &count);

		if (error)
			return error;
		for (size_t i = 0; i < count; i++) {
			struct function_sums *it = &sums[functions[i].function_id];

			it->frame = functions[i].frame + 1;
			it->self[measure] = functions[i].self;
			it->total[measure] = functions[i].inclusive;
		}
		free(functions);
	}
	return 0;
}

static int write_functions(sqlite3 *handle, const struct session *session)
{
	struct function_sums *sums = calloc((size_t)session->function_count + 1, sizeof(*sums));
	int error = sums ? sum_functions(session, sums) : -ENOMEM;
	struct table_rows rows;

	if (error) {
		free(sums);
		return error;
	}
	table_rows_begin(&rows, handle, "kymo_functions", 11);
	for (uint32_t i = 0; i < session->function_count; i++) {
		const struct model_frame *frame;

		if (!sums[i].frame)
			continue;
		frame = &session->frames[sums[i].frame - 1];
		put_count(&rows, i);
		put_text(&rows, frame->function);
		put_text(&rows, frame->module != MODEL_ENTRY_INDEX_NONE
					? session->modules[frame->module].path
					: NULL);
		put_text(&rows, frame->file);
		put_null_unless(&rows, frame->function_line != 0, frame->function_line);
		for (unsigned measure = 0; measure < 3; measure++) {
			put_count(&rows, sums[i].self[measure]);
			put_count(&rows, sums[i].total[measure]);
		}
		put_row(&rows);
	}
	free(sums);
	return table_rows_finish(&rows);
}

/* As columns of threads, without the unit; NULL: none. */
static const char *get_lock_state_name(unsigned state, char *buffer)
{
	const char *key = interpreter_state_get_key(state);

	if (!key)
		return NULL;
	snprintf(buffer, LOCK_STATE_NAME_SIZE, "%.*s", (int)(strlen(key) - strlen("_ns")), key);
	return buffer;
}

static int write_sample(const struct model_sample *sample, void *context)
{
	struct table_rows *rows = context;
	char name[LOCK_STATE_NAME_SIZE];

	put_count(rows, sample->time_ns);
	put_count(rows, sample->thread);
	put_null_unless(rows, sample->node != MODEL_ENTRY_INDEX_NONE, sample->node);
	put_text(rows, source_names[sample->source]);
	put_count(rows, sample->weight);
	put_text(rows, get_lock_state_name(interpreter_state_of_sample(sample), name));
	put_row(rows);
	return rows->error;
}

/* CPU time that no sample covers is in the nodes; it has neither a time nor a thread. */
static void write_unsampled_time(struct table_rows *rows, const struct session *session)
{
	for (uint32_t i = 0; i < session->node_count; i++) {
		const struct model_calltree_node *node = &session->nodes[i];

		if (strcmp(session->frames[node->frame].function,
			   SESSION_UNSAMPLED_TIME_FRAME_NAME) != 0 ||
		    node->self_samples[SPOOL_SOURCE_CPU])
			continue;
		put_null_unless(rows, false, 0);
		put_null_unless(rows, false, 0);
		put_count(rows, i);
		put_text(rows, source_names[SPOOL_SOURCE_CPU]);
		put_count(rows, node->self_weight[SPOOL_SOURCE_CPU]);
		put_text(rows, NULL);
		put_row(rows);
	}
}

static int write_samples(sqlite3 *handle, struct session *session, struct problem *problem)
{
	struct table_rows rows;
	int error;

	table_rows_begin(&rows, handle, "kymo_samples", 6);
	error = rows.error ? rows.error
			   : session_visit_samples(session, write_sample, &rows, problem);
	if (error == 0)
		write_unsampled_time(&rows, session);
	table_rows_finish(&rows);
	return error ? error : rows.error;
}

/* ---- regions and devices ---- */

static void put_region_values(struct table_rows *table, const struct region_rows *rows,
			      uint32_t index, uint32_t wall)
{
	const struct region_row *row = &rows->rows[index];
	const struct region_value *value =
		wall == MODEL_ENTRY_INDEX_NONE ? NULL : region_rows_get_value(rows, index, wall);
	bool is_timed = value && row->count;

	put_count(table, row->count);
	put_count(table, row->open);
	put_null_unless(table, value, value ? (uint64_t)llround(value->inclusive) : 0);
	put_null_unless(table, value, value ? (uint64_t)llround(value->self) : 0);
	put_null_unless(table, is_timed, is_timed ? (uint64_t)llround(value->calls.minimum) : 0);
	put_null_unless(table, is_timed, is_timed ? (uint64_t)llround(value->calls.maximum) : 0);
}

static int write_region_rows(sqlite3 *handle, const struct session *session, bool flat)
{
	struct region_table_layout_options layout = {.flat = flat, .collapse_processes = flat};
	const struct model_regions *regions = session_get_regions(session);
	uint32_t wall;
	struct region_rows rows;
	struct table_rows table;
	int error;

	if (!regions || regions->node_count == 0)
		return 0;
	wall = regions_find_wall_clock_component(session);
	error = region_rows_build(&rows, session, &layout);
	table_rows_begin(&table, handle, flat ? "kymo_regions" : "kymo_calls", flat ? 9 : 11);
	for (uint32_t i = 0; error == 0 && i < rows.count; i++) {
		const struct region_row *row = &rows.rows[i];
		const struct model_region *region = row->region == MODEL_ENTRY_INDEX_NONE
							    ? NULL
							    : &regions->regions[row->region];

		if (!region && flat)
			continue;
		put_count(&table, i);
		if (!flat) {
			put_null_unless(&table, row->parent != MODEL_ENTRY_INDEX_NONE, row->parent);
			put_null_unless(&table, row->process != MODEL_ENTRY_INDEX_NONE,
					row->process);
		}
		put_text(&table, region ? region->name
				 : row->thread != MODEL_ENTRY_INDEX_NONE
					 ? session->threads[row->thread].name
					 : session->processes[row->process].name);
		put_text(&table, region ? region->category : NULL);
		put_region_values(&table, &rows, i, wall);
		put_row(&table);
	}
	region_rows_deinit(&rows);
	table_rows_finish(&table);
	return error ? error : table.error;
}

/* What devices did, one by one. */
struct device_work_writer {
	struct table_rows rows;
	struct gpu_demangled_name_cache names;
};

static int write_device_work(const struct gpu_record_head *head, void *context)
{
	struct device_work_writer *writer = context;
	const struct gpu_records_of_process *process = writer->names.process;
	const struct gpu_kernel *kernel = (const void *)head;
	const struct gpu_copy *copy = (const void *)head;
	bool is_kernel = head->kind == GPU_RECORD_KERNEL;

	if (!is_kernel && head->kind != GPU_RECORD_COPY)
		return 0;
	put_count(&writer->rows, process->header.pid);
	put_text(&writer->rows, is_kernel ? "kernel" : "copy");
	put_text(&writer->rows,
		 is_kernel ? gpu_names_get_demangled_kernel_name(&writer->names, head->id)
			   : gpu_get_copy_direction_name(head->id));
	put_null_unless(&writer->rows, is_kernel, kernel->queue);
	put_null_unless(&writer->rows, (is_kernel ? kernel->tid : copy->tid) != 0,
			is_kernel ? kernel->tid : copy->tid);
	put_null_unless(&writer->rows, kernel->start != 0, kernel->start);
	put_null_unless(&writer->rows, kernel->start != 0, kernel->duration);
	put_null_unless(&writer->rows, !is_kernel, is_kernel ? 0 : copy->bytes);
	put_row(&writer->rows);
	return writer->rows.error;
}

static int write_all_device_work(sqlite3 *handle, const struct gpu_data *data)
{
	struct device_work_writer writer;
	int error;

	table_rows_begin(&writer.rows, handle, "kymo_device_work", 8);
	error = writer.rows.error;
	for (size_t i = 0; error == 0 && i < data->process_count; i++) {
		error = gpu_names_init(&writer.names, &data->processes[i]);
		if (error == 0)
			error = gpu_visit_records(&data->processes[i], write_device_work, &writer);
		gpu_names_deinit(&writer.names);
	}
	table_rows_finish(&writer.rows);
	return error;
}

/* Each step of the work on devices. */
static int write_steps(sqlite3 *handle, const struct session *session)
{
	const struct gpu_data *data = session_get_gpu_data(session);
	struct table_rows rows;
	char name[512];

	if (!data)
		return 0;
	table_rows_begin(&rows, handle, "kymo_steps", 12);
	for (size_t i = 0; i < data->steps.count; i++) {
		const struct gpu_step_series *series = &data->steps.series[i];
		const struct gpu_records_of_process *process = &data->processes[series->process];

		device_step_format_name(name, sizeof(name), series);
		for (size_t k = 0; k < series->count; k++) {
			const struct gpu_step *step = &series->steps[k];

			put_count(&rows, process->header.pid);
			put_text(&rows, gpu_get_agent_name(process, series->agent));
			put_text(&rows, name);
			put_count(&rows, k + 1);
			put_count(&rows, step->begin_ns);
			put_count(&rows, step->end_ns - step->begin_ns);
			for (unsigned part = 0; part < GPU_STEP_PART_COUNT; part++)
				put_count(&rows, step->part_ns[part]);
			put_count(&rows, step->is_slow);
			put_row(&rows);
		}
	}
	return table_rows_finish(&rows);
}

static int write_devices(sqlite3 *handle, const struct session *session)
{
	const struct gpu_data *data = session_get_gpu_data(session);
	struct table_rows rows;
	int error;

	if (!data)
		return 0;
	table_rows_begin(&rows, handle, "kymo_kernels", 7);
	for (size_t i = 0; i < data->kernel_count; i++) {
		const struct gpu_kernel_row *kernel = &data->kernels[i];

		put_text(&rows, kernel->name);
		put_text(&rows, kernel->agent_name);
		put_count(&rows, kernel->count);
		put_count(&rows, kernel->total_ns);
		put_count(&rows, kernel->minimum_ns);
		put_count(&rows, kernel->maximum_ns);
		put_count(&rows, kernel->incomplete);
		put_row(&rows);
	}
	error = table_rows_finish(&rows);
	if (error)
		return error;
	table_rows_begin(&rows, handle, "kymo_copies", 4);
	for (unsigned i = 0; i < GPU_DIRECTION_COUNT; i++) {
		const struct gpu_copy_direction_sums *sums = &data->copy_sums_by_direction[i];

		if (!sums->count)
			continue;
		put_text(&rows, gpu_get_copy_direction_name(i));
		put_count(&rows, sums->count);
		put_count(&rows, sums->bytes);
		put_count(&rows, sums->total_ns);
		put_row(&rows);
	}
	error = table_rows_finish(&rows);
	return error ? error : write_all_device_work(handle, data);
}

/* ---- all ---- */

int database_write_tables(sqlite3 *handle, struct session *session, struct problem *problem)
{
	static int (*const writers[])(sqlite3 *, const struct session *) = {
		write_metadata, write_processes, write_cpu_times, database_write_waits,
		write_threads,  write_metrics,   write_losses,    write_frames,
		write_nodes,    write_functions, write_devices,   write_steps};
	int error =
		sqlite3_exec(handle, database_schema_sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : -EIO;

	for (size_t i = 0; error == 0 && i < sizeof(writers) / sizeof(*writers); i++)
		error = writers[i](handle, session);
	if (error == 0)
		error = write_region_rows(handle, session, true);
	if (error == 0)
		error = write_region_rows(handle, session, false);
	if (error == 0)
		error = write_samples(handle, session, problem);
	if (error == 0 && sqlite3_exec(handle, database_indexes_sql, NULL, NULL, NULL) != SQLITE_OK)
		error = -EIO;
	return error;
}
