/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * counters.json: counters with their dimensions, each launch and reading with the values of all
 * instances, sums by kernel, and what is missing. docs/counters.md describes the keys.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "analysis/gpu_counts.h"
#include "output/gpu_names.h"
#include "output/json_writer.h"
#include "output/writers.h"

#define SCHEMA "kymo.counters/1"

struct document {
	struct json_writer json;
	struct gpu_names names;
	const struct gpu_counted *open; /* the launch that is being written */
	bool readings;                  /* which of the two is wanted */
};

static void put_value(struct json_writer *json, const char *key, double value)
{
	if (value == rint(value) && fabs(value) < 9007199254740992.0)
		json_put_signed(json, key, (int64_t)value);
	else
		json_put_real(json, key, value);
}

/* ---- what there is ---- */

static void put_agents(struct json_writer *json, const struct gpu_process *process)
{
	json_array_begin(json, "agents");
	for (uint32_t i = 1; i <= process->agent_count; i++) {
		const struct gpu_agent *agent = process->agents[i];

		if (agent == NULL)
			continue;
		json_object_begin(json, NULL);
		json_put_count(json, "node", agent->node);
		json_put_text(json, "type", agent->type == GPU_AGENT_GPU ? "gpu" : "cpu");
		json_put_text(json, "name", gpu_string(process, agent->name));
		json_put_text(json, "product", gpu_string(process, agent->product));
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_counter(struct json_writer *json, const struct gpu_process *process,
			const struct gpu_counter *counter)
{
	const char *const texts[] = {"description", "block", "expression"};
	const uint32_t strings[] = {counter->description, counter->block, counter->expression};

	json_object_begin(json, NULL);
	json_put_count(json, "id", counter->head.id);
	json_put_text(json, "name", gpu_string(process, counter->name));
	json_put_text(json, "agent", gpu_names_agent(process, counter->agent).text);
	for (unsigned i = 0; i < 3; i++) {
		if (strings[i] != 0)
			json_put_text(json, texts[i], gpu_string(process, strings[i]));
	}
	json_array_begin(json, "dimensions");
	for (uint32_t i = 0; i < counter->dimension_count; i++) {
		json_object_begin(json, NULL);
		json_put_text(json, "name", gpu_string(process, counter->dimensions[i].name));
		json_put_count(json, "size", counter->dimensions[i].size);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static void put_counters(struct json_writer *json, const struct gpu_process *process)
{
	json_array_begin(json, "counters");
	for (uint32_t i = 1; i <= process->counter_count; i++) {
		if (process->counters[i] != NULL)
			put_counter(json, process, process->counters[i]);
	}
	json_array_end(json);
}

/* ---- values ---- */

static void put_instances(struct json_writer *json, const struct gpu_count *count)
{
	uint32_t positions[GPU_DIMENSIONS_MAX];

	if (count->value_count < 2)
		return;
	json_array_begin(json, "instances");
	for (size_t i = 0; i < count->value_count; i++) {
		gpu_count_positions(count->counter, count->values[i].instance, positions);
		json_object_begin(json, NULL);
		json_array_begin(json, "position");
		for (uint32_t k = 0; k < count->counter->dimension_count; k++)
			json_put_count(json, NULL, positions[k]);
		json_array_end(json);
		put_value(json, "value", count->values[i].value);
		json_object_end(json);
	}
	json_array_end(json);
}

static void close_launch(struct document *document)
{
	if (document->open == NULL)
		return;
	json_array_end(&document->json);
	json_object_end(&document->json);
	document->open = NULL;
}

static void open_launch(struct document *document, const struct gpu_counted *kernel)
{
	struct json_writer *json = &document->json;

	close_launch(document);
	document->open = kernel;
	json_object_begin(json, NULL);
	json_put_count(json, "dispatch", kernel->dispatch);
	json_put_text(json, "kernel", gpu_names_kernel(&document->names, kernel->head.id));
	json_put_count(json, "correlation", kernel->correlation);
	json_put_count(json, "queue", kernel->queue & UINT32_MAX);
	json_put_count(json, "tid", kernel->tid);
	json_put_count(json, "start_ns", kernel->start);
	json_put_count(json, "end_ns", kernel->start + kernel->duration);
	json_array_begin(json, "values");
}

static int put_count(const struct gpu_count *count, void *context)
{
	struct document *document = context;
	struct json_writer *json = &document->json;

	if ((count->kernel == NULL) != document->readings)
		return 0;
	if (count->kernel != NULL && count->kernel != document->open)
		open_launch(document, count->kernel);
	json_object_begin(json, NULL);
	json_put_text(json, "counter", gpu_string(document->names.process, count->counter->name));
	json_put_count(json, "id", count->counter->head.id);
	if (count->kernel == NULL) {
		json_put_count(json, "start_ns", count->start);
		json_put_count(json, "end_ns", count->end);
	}
	put_value(json, "value", count->total);
	put_instances(json, count);
	json_object_end(json);
	return 0;
}

static int put_process(struct document *document, const struct gpu_process *process)
{
	struct json_writer *json = &document->json;
	int result = gpu_names_init(&document->names, process);

	json_object_begin(json, NULL);
	json_put_count(json, "pid", process->header.pid);
	put_agents(json, process);
	put_counters(json, process);
	json_array_begin(json, "dispatches");
	document->readings = false;
	if (result == 0)
		result = gpu_each_count(process, put_count, document);
	close_launch(document);
	json_array_end(json);
	json_array_begin(json, "readings");
	document->readings = true;
	if (result == 0)
		result = gpu_each_count(process, put_count, document);
	json_array_end(json);
	json_object_end(json);
	gpu_names_deinit(&document->names);
	return result;
}

/* ---- sums ---- */

static void put_rows(struct json_writer *json, const char *key, const struct gpu_count_row *rows,
		     size_t count)
{
	json_array_begin(json, key);
	for (size_t i = 0; i < count; i++) {
		const struct gpu_count_row *row = &rows[i];

		json_object_begin(json, NULL);
		if (row->kernel != NULL)
			json_put_text(json, "kernel", row->kernel);
		json_put_text(json, "agent", row->agent);
		json_put_text(json, "counter", row->counter);
		json_put_count(json, row->kernel != NULL ? "launches" : "readings", row->count);
		json_put_count(json, "time_ns", row->ns);
		put_value(json, "sum", row->sum);
		put_value(json, "min", row->minimum);
		put_value(json, "max", row->maximum);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_missing(struct json_writer *json, const struct gpu_data *data)
{
	json_object_begin(json, "missing");
	json_put_count(json, "not_counted", data->losses[GPU_LOSS_NOT_COUNTED]);
	json_put_count(json, "filtered", data->filtered_kernels);
	json_put_count(json, "failed_readings", data->losses[GPU_LOSS_READINGS]);
	json_put_count(json, "buffer_full", data->losses[GPU_LOSS_BUFFER]);
	json_put_count(json, "disk_full", data->losses[GPU_LOSS_DISK_FULL]);
	json_object_end(json);
	json_array_begin(json, "notices");
	for (size_t i = 0; i < data->problem_count; i++)
		json_put_text(json, NULL, data->problems[i]);
	json_array_end(json);
}

int output_counters_json(struct session *session, const struct output_options *options,
			 FILE *stream, struct problem *problem)
{
	static const struct gpu_data nothing;
	const struct gpu_data *data = session->gpu != NULL ? session->gpu : &nothing;
	struct document document = {.open = NULL};
	struct json_writer *json = &document.json;
	int result = 0;

	(void)options;
	json_writer_init(json, stream);
	json_object_begin(json, NULL);
	json_put_text(json, "schema", SCHEMA);
	json_put_text(json, "kymo_version", KYMO_VERSION);
	json_put_text(json, "command", session->command_line);
	json_put_text(json, "time_clock", "boottime");
	put_rows(json, "kernels", data->counts, data->count_rows);
	put_rows(json, "devices", data->readings, data->reading_rows);
	put_missing(json, data);
	json_array_begin(json, "processes");
	for (size_t i = 0; result == 0 && i < data->process_count; i++)
		result = put_process(&document, &data->processes[i]);
	json_array_end(json);
	json_object_end(json);
	if (result != 0)
		return problem_set(problem, result, "out of memory writing counters");
	return json_writer_finish(json, problem);
}
