/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * counters.json: counters with their dimensions, each launch and reading with the values of all
 * instances, sums by kernel, and what is missing. docs/reference/counters.md describes the keys.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analysis/gpu/counts.h"
#include "output/gpu_names.h"
#include "output/json_writer.h"
#include "output/output.h"

#define COUNTERS_SCHEMA_NAME "kymo.counters/1"

struct counters_json_writer {
	struct json_writer json;
	struct gpu_demangled_name_cache names;
	const struct gpu_counted *open; /* the launch that is being written */
	bool is_for_readings;           /* which of the two is wanted */
};

static void json_put_counter_value(struct json_writer *json, const char *key, double value)
{
	if (value == rint(value) && fabs(value) < 9007199254740992.0)
		json_put_signed_integer(json, key, (int64_t)value);
	else
		json_put_real_with_12_digits(json, key, value);
}

/* ---- what there is ---- */

static void json_put_agents(struct json_writer *json, const struct gpu_records_of_process *process)
{
	json_array_begin(json, "agents");
	for (uint32_t i = 1; i <= process->agent_count; i++) {
		const struct gpu_agent *agent = process->agent_by_id[i];

		if (agent == NULL)
			continue;
		json_object_begin(json, NULL);
		json_put_count(json, "node", agent->node);
		json_put_text(json, "type", agent->type == GPU_AGENT_GPU ? "gpu" : "cpu");
		json_put_text(json, "name", gpu_get_interned_string(process, agent->name));
		json_put_text(json, "product", gpu_get_interned_string(process, agent->product));
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_counter_definition(struct json_writer *json,
					const struct gpu_records_of_process *process,
					const struct gpu_counter *counter)
{
	const char *const texts[] = {"description", "block", "expression"};
	const uint32_t strings[] = {counter->description, counter->block, counter->expression};

	json_object_begin(json, NULL);
	json_put_count(json, "id", counter->head.id);
	json_put_text(json, "name", gpu_get_interned_string(process, counter->name));
	json_put_text(json, "agent", gpu_names_format_agent_label(process, counter->agent).text);
	for (unsigned i = 0; i < 3; i++) {
		if (strings[i] != 0)
			json_put_text(json, texts[i], gpu_get_interned_string(process, strings[i]));
	}
	json_array_begin(json, "dimensions");
	for (uint32_t i = 0; i < counter->dimension_count; i++) {
		json_object_begin(json, NULL);
		json_put_text(json, "name",
			      gpu_get_interned_string(process, counter->dimensions[i].name));
		json_put_count(json, "size", counter->dimensions[i].size);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static void json_put_counter_definitions(struct json_writer *json,
					 const struct gpu_records_of_process *process)
{
	json_array_begin(json, "counters");
	for (uint32_t i = 1; i <= process->counter_count; i++) {
		if (process->counters[i] != NULL)
			json_put_counter_definition(json, process, process->counters[i]);
	}
	json_array_end(json);
}

/* ---- values ---- */

static void json_put_instance_values(struct json_writer *json,
				     const struct gpu_counter_measurement *count)
{
	uint32_t positions[GPU_DIMENSIONS_MAX];

	if (count->value_count < 2)
		return;
	json_array_begin(json, "instances");
	for (size_t i = 0; i < count->value_count; i++) {
		gpu_counter_instance_to_dimension_positions(count->counter,
							    count->values[i].instance, positions);
		json_object_begin(json, NULL);
		json_array_begin(json, "position");
		for (uint32_t k = 0; k < count->counter->dimension_count; k++)
			json_put_count(json, NULL, positions[k]);
		json_array_end(json);
		json_put_counter_value(json, "value", count->values[i].value);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_close_launch(struct counters_json_writer *document)
{
	if (document->open == NULL)
		return;
	json_array_end(&document->json);
	json_object_end(&document->json);
	document->open = NULL;
}

static void json_open_launch(struct counters_json_writer *document,
			     const struct gpu_counted *kernel)
{
	struct json_writer *json = &document->json;

	json_close_launch(document);
	document->open = kernel;
	json_object_begin(json, NULL);
	json_put_count(json, "dispatch", kernel->dispatch);
	json_put_text(json, "kernel",
		      gpu_names_get_demangled_kernel_name(&document->names, kernel->head.id));
	json_put_count(json, "correlation", kernel->correlation);
	json_put_count(json, "queue", kernel->queue & UINT32_MAX);
	json_put_count(json, "tid", kernel->tid);
	json_put_count(json, "start_ns", kernel->start);
	json_put_count(json, "end_ns", kernel->start + kernel->duration);
	json_array_begin(json, "values");
}

static int json_put_launch_or_reading(const struct gpu_counter_measurement *count, void *context)
{
	struct counters_json_writer *document = context;
	struct json_writer *json = &document->json;

	if ((count->kernel == NULL) != document->is_for_readings)
		return 0;
	if (count->kernel != NULL && count->kernel != document->open)
		json_open_launch(document, count->kernel);
	json_object_begin(json, NULL);
	json_put_text(json, "counter",
		      gpu_get_interned_string(document->names.process, count->counter->name));
	json_put_count(json, "id", count->counter->head.id);
	if (count->kernel == NULL) {
		json_put_count(json, "start_ns", count->start);
		json_put_count(json, "end_ns", count->end);
	}
	json_put_counter_value(json, "value", count->total);
	json_put_instance_values(json, count);
	json_object_end(json);
	return 0;
}

static int json_put_process_counters(struct counters_json_writer *document,
				     const struct gpu_records_of_process *process)
{
	struct json_writer *json = &document->json;
	int result = gpu_names_init(&document->names, process);

	json_object_begin(json, NULL);
	json_put_count(json, "pid", process->header.pid);
	json_put_agents(json, process);
	json_put_counter_definitions(json, process);
	json_array_begin(json, "dispatches");
	document->is_for_readings = false;
	if (result == 0)
		result = gpu_visit_counter_measurements(process, json_put_launch_or_reading,
							document);
	json_close_launch(document);
	json_array_end(json);
	json_array_begin(json, "readings");
	document->is_for_readings = true;
	if (result == 0)
		result = gpu_visit_counter_measurements(process, json_put_launch_or_reading,
							document);
	json_array_end(json);
	json_object_end(json);
	gpu_names_deinit(&document->names);
	return result;
}

/* ---- sums ---- */

static void json_put_counter_sums(struct json_writer *json, const char *key,
				  const struct gpu_counter_row *rows, size_t count)
{
	json_array_begin(json, key);
	for (size_t i = 0; i < count; i++) {
		const struct gpu_counter_row *row = &rows[i];

		json_object_begin(json, NULL);
		if (row->kernel_name != NULL)
			json_put_text(json, "kernel", row->kernel_name);
		json_put_text(json, "agent", row->agent_name);
		json_put_text(json, "counter", row->counter_name);
		json_put_count(json, row->kernel_name != NULL ? "launches" : "readings",
			       row->count);
		json_put_count(json, "time_ns", row->ns);
		json_put_counter_value(json, "sum", row->sum);
		json_put_counter_value(json, "min", row->minimum);
		json_put_counter_value(json, "max", row->maximum);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_counter_losses(struct json_writer *json, const struct gpu_data *data)
{
	json_object_begin(json, "missing");
	json_put_count(json, "not_counted", data->losses[GPU_LOSS_NOT_COUNTED]);
	json_put_count(json, "filtered", data->filtered_out_kernel_count);
	json_put_count(json, "failed_readings", data->losses[GPU_LOSS_READINGS]);
	json_put_count(json, "buffer_full", data->losses[GPU_LOSS_BUFFER]);
	json_put_count(json, "disk_full", data->losses[GPU_LOSS_DISK_FULL]);
	json_object_end(json);
	json_array_begin(json, "notices");
	for (size_t i = 0; i < data->problem_count; i++)
		json_put_text(json, NULL, data->problems[i]);
	json_array_end(json);
}

static int write_counters_json(struct session *session, const struct output_options *options,
			       FILE *stream, struct problem *problem)
{
	static const struct gpu_data nothing;
	const struct gpu_data *data =
		session_get_gpu_data(session) != NULL ? session_get_gpu_data(session) : &nothing;
	struct counters_json_writer document = {.open = NULL};
	struct json_writer *json = &document.json;
	int result = 0;

	(void)options;
	json_writer_init(json, stream);
	json_object_begin(json, NULL);
	json_put_text(json, "schema", COUNTERS_SCHEMA_NAME);
	json_put_text(json, "kymo_version", KYMO_VERSION);
	json_put_text(json, "command", session->command_line);
	json_put_text(json, "time_clock", "boottime");
	json_put_counter_sums(json, "kernels", data->kernel_counter_rows,
			      data->kernel_counter_row_count);
	json_put_counter_sums(json, "devices", data->device_reading_rows,
			      data->device_reading_row_count);
	json_put_counter_losses(json, data);
	json_array_begin(json, "processes");
	for (size_t i = 0; result == 0 && i < data->process_count; i++)
		result = json_put_process_counters(&document, &data->processes[i]);
	json_array_end(json);
	json_object_end(json);
	if (result != 0)
		return problem_set(problem, result, "out of memory writing counters");
	return json_writer_finish(json, problem);
}

const struct output_format output_format_counters_json = {
	.name = "counters-json",
	.file_name = "counters.json",
	.description = "both as JSON, with all instances",
	.has_whole_run_only = true,
	.write = write_counters_json,
};
