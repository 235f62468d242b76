/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * OpenTelemetry profiles; see otlp.h. A resource is a process, with a profile for each of its
 * measures; a sample is a call path of a thread with its sum.
 */
#include "output/exchange/otlp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_THRESHOLD_BYTES (64u << 10)
#define SCHEMA_URL            "https://opentelemetry.io/schemas/1.37.0"

enum {
	DATA_RESOURCE_PROFILES = 1,
	DATA_DICTIONARY = 2,
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLES = 2,
	PROFILE_TIME = 3,
	PROFILE_DURATION = 4,
};

static const struct {
	const char *type, *unit;
} measures[VIEW_MEASURE_COUNT] = {
	[VIEW_MEASURE_CPU_TIME] = {"cpu", "nanoseconds"},
	[VIEW_MEASURE_REAL_TIME] = {"wall", "nanoseconds"},
	[VIEW_MEASURE_COUNTER_EVENTS] = {"events", "count"},
	[VIEW_MEASURE_DEVICE_TIME] = {"device", "nanoseconds"},
};

/* A call path of a thread, or of a process's other threads. */
struct path_row {
	uint32_t group, node;
	uint64_t weight[MODEL_SOURCE_COUNT];
};

/* ---- resources ---- */

static void write_key(struct protobuf_writer *protobuf, const char *key)
{
	protobuf_open_message(protobuf, 1);
	protobuf_write_string(protobuf, 1, key);
	protobuf_open_message(protobuf, 2);
}

static void write_text_attribute(struct protobuf_writer *protobuf, const char *key,
				 const char *value)
{
	if (value == NULL || value[0] == 0)
		return;
	write_key(protobuf, key);
	protobuf_write_string(protobuf, 1, value);
	protobuf_close_message(protobuf);
	protobuf_close_message(protobuf);
}

static void write_number_attribute(struct protobuf_writer *protobuf, const char *key,
				   uint64_t value)
{
	write_key(protobuf, key);
	protobuf_write_uint(protobuf, 3, value);
	protobuf_close_message(protobuf);
	protobuf_close_message(protobuf);
}

/* Names of OpenTelemetry's conventions; what is not complete is said in kymo's own. */
static void write_resource(struct otlp_writer *writer, const struct model_process *process)
{
	struct protobuf_writer *protobuf = &writer->protobuf;

	protobuf_open_message(protobuf, 1);
	write_text_attribute(protobuf, "service.name", process->name);
	write_number_attribute(protobuf, "process.pid", process->pid);
	write_number_attribute(protobuf, "process.parent_pid", process->parent_pid);
	write_text_attribute(protobuf, "process.executable.path", process->executable);
	write_text_attribute(protobuf, "process.command_line", process->command_line);
	write_text_attribute(protobuf, "host.name", process->host);
	if (writer->incomplete.text[0] != 0)
		write_text_attribute(protobuf, "kymo.incomplete", writer->incomplete.text);
	protobuf_close_message(protobuf);
}

static void write_scope(struct protobuf_writer *protobuf)
{
	protobuf_open_message(protobuf, 1);
	protobuf_write_string(protobuf, 1, "kymo");
	protobuf_write_string(protobuf, 2, KYMO_VERSION);
	protobuf_close_message(protobuf);
}

/* ---- profiles ---- */

static void write_value_type(struct otlp_writer *writer, unsigned field,
			     enum view_measure_kind measure)
{
	protobuf_open_message(&writer->protobuf, field);
	protobuf_write_uint(&writer->protobuf, 1,
			    otlp_get_string_number(writer, measures[measure].type));
	protobuf_write_uint(&writer->protobuf, 2,
			    otlp_get_string_number(writer, measures[measure].unit));
	protobuf_close_message(&writer->protobuf);
}

static void write_sample(struct otlp_writer *writer, const struct path_row *row, uint64_t value)
{
	struct protobuf_writer *protobuf = &writer->protobuf;
	uint32_t attribute = otlp_get_thread_attribute(writer, row->group);
	uint8_t packed[2 * PROTOBUF_VARINT_BYTES_MAX], *at;

	protobuf_open_message(protobuf, PROFILE_SAMPLES);
	protobuf_write_uint(protobuf, 1, otlp_get_stack_number(writer, row->node));
	at = protobuf_encode_varint(packed, attribute);
	at = protobuf_encode_varint(at, attribute + 1);
	protobuf_write_bytes(protobuf, 2, packed, (size_t)(at - packed));
	at = protobuf_encode_varint(packed, value);
	protobuf_write_bytes(protobuf, 4, packed, (size_t)(at - packed));
	protobuf_close_message(protobuf);
}

static void write_times(struct otlp_writer *writer)
{
	const struct session *session = writer->session;
	uint64_t start_ns = exchange_get_start_realtime_ns(session);

	if (start_ns != 0)
		protobuf_write_fixed64(&writer->protobuf, PROFILE_TIME, start_ns);
	if (session->end_ns > session->start_ns)
		protobuf_write_uint(&writer->protobuf, PROFILE_DURATION,
				    session->end_ns - session->start_ns);
}

/* Nothing, where the process has none of the measure. Without waits, real time is CPU time. */
static void write_profile(struct otlp_writer *writer, const struct path_row *rows, size_t count,
			  enum view_measure_kind measure)
{
	uint64_t sum = 0, waits = 0;

	for (size_t i = 0; i < count; i++) {
		sum += view_sum_sources_of_measure(rows[i].weight, measure);
		waits += rows[i].weight[SPOOL_SOURCE_WALL] + rows[i].weight[SPOOL_SOURCE_RUNNABLE];
	}
	if (sum == 0 || (measure == VIEW_MEASURE_REAL_TIME && waits == 0))
		return;
	protobuf_open_message(&writer->protobuf, 2);
	write_value_type(writer, PROFILE_SAMPLE_TYPE, measure);
	for (size_t i = 0; i < count; i++) {
		uint64_t value = view_sum_sources_of_measure(rows[i].weight, measure);
		if (value != 0)
			write_sample(writer, &rows[i], value);
	}
	write_times(writer);
	protobuf_close_message(&writer->protobuf);
}

static void write_process(struct otlp_writer *writer, uint32_t process, const struct path_row *rows,
			  size_t count)
{
	struct protobuf_writer *protobuf = &writer->protobuf;

	protobuf_open_message(protobuf, DATA_RESOURCE_PROFILES);
	write_resource(writer, &writer->session->processes[process]);
	protobuf_open_message(protobuf, 2);
	write_scope(protobuf);
	for (int measure = 0; measure < VIEW_MEASURE_COUNT; measure++)
		write_profile(writer, rows, count, (enum view_measure_kind)measure);
	protobuf_write_string(protobuf, 3, SCHEMA_URL);
	protobuf_close_message(protobuf);
	protobuf_write_string(protobuf, 3, SCHEMA_URL);
	protobuf_close_message(protobuf);
}

/* ---- rows ---- */

static int compare_rows(const void *left, const void *right)
{
	const struct path_row *a = left, *b = right;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

/* Rows of the same group and node become one; returns how many are left. */
static size_t sort_and_merge(struct path_row *rows, size_t count)
{
	size_t kept = 0;

	if (count != 0)
		qsort(rows, count, sizeof(*rows), compare_rows);
	for (size_t i = 0; i < count; i++) {
		if (kept == 0 || compare_rows(&rows[kept - 1], &rows[i]) != 0) {
			rows[kept++] = rows[i];
			continue;
		}
		for (int k = 0; k < MODEL_SOURCE_COUNT; k++)
			rows[kept - 1].weight[k] += rows[i].weight[k];
	}
	return kept;
}

static int write_processes(struct otlp_writer *writer, struct session *session)
{
	const struct view_thread_node_row *rows;
	size_t count, at = 0;
	int error = view_sum_by_thread_and_node(session, &rows, &count);
	struct path_row *paths = calloc(count + 1, sizeof(*paths));

	if (error == 0 && paths == NULL)
		error = -ENOMEM;
	/* Threads of a process follow each other. */
	while (error == 0 && at < count && writer->protobuf.error == 0) {
		uint32_t process = session->threads[rows[at].thread].process;
		size_t of_process = 0;
		for (; at < count && session->threads[rows[at].thread].process == process; at++) {
			struct path_row *path = &paths[of_process++];
			path->group = writer->group_of_thread[rows[at].thread];
			path->node = rows[at].node;
			memcpy(path->weight, rows[at].self_weight, sizeof(path->weight));
		}
		write_process(writer, process, paths, sort_and_merge(paths, of_process));
	}
	free(paths);
	return error;
}

static int output_write_otlp(struct session *session, const struct output_options *options,
			     FILE *stream, struct problem *problem)
{
	struct otlp_writer writer = {.session = session,
				     .incomplete = incomplete_get_first(session, false)};
	int error;

	(void)options;
	problem->text[0] = 0;
	error = protobuf_init(&writer.protobuf, FLUSH_THRESHOLD_BYTES, protobuf_sink_write_to_file,
			      stream);
	if (error == 0)
		error = otlp_dictionary_init(&writer);
	writer.group_of_thread = timed_samples_create_groups(session);
	if (error == 0 && writer.group_of_thread == NULL)
		error = -ENOMEM;
	if (error == 0)
		error = write_processes(&writer, session);
	if (error == 0) {
		otlp_write_dictionary(&writer, DATA_DICTIONARY);
		error = protobuf_finish(&writer.protobuf);
	}
	otlp_dictionary_deinit(&writer);
	protobuf_deinit(&writer.protobuf);
	free(writer.group_of_thread);
	return exchange_finish(stream, error, "OpenTelemetry profiles", problem);
}

const struct output_format output_format_otlp = {
	.name = "otlp",
	.file_name = "profiles.otlp",
	.description = "OpenTelemetry profiles (protobuf, v1development)",
	.is_binary = true,
	.write = output_write_otlp,
};
