/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * profile.pb.gz for pprof, Pyroscope, Parca and speedscope: every call path of every thread with
 * its sample count and times, labelled with thread and process.
 */
#include "output/pprof/pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/gzip.h"
#include "output/output.h"

#define FLUSH_THRESHOLD_BYTES (64u << 10)

/* Which value columns the profile has; the count of samples is always the first. */
struct existing_value_columns {
	bool has_cpu, has_wall, has_events, has_device;
};

uint64_t pprof_intern_string(struct pprof_profile *profile, const char *text)
{
	uint32_t number = 0;

	if (strings_find_or_add(&profile->strings, text, &number) != 0 &&
	    profile->writer.error == 0)
		profile->writer.error = -ENOMEM;
	return number;
}

static void write_value_type(struct pprof_profile *profile, unsigned field, const char *type,
			     const char *unit)
{
	protobuf_open_message(&profile->writer, field);
	protobuf_write_uint(&profile->writer, 1, pprof_intern_string(profile, type));
	protobuf_write_uint(&profile->writer, 2, pprof_intern_string(profile, unit));
	protobuf_close_message(&profile->writer);
}

static void sum_samples_by_source(const struct session *session,
				  uint64_t samples[MODEL_SOURCE_COUNT],
				  uint64_t weights[MODEL_SOURCE_COUNT])
{
	for (uint32_t i = 0; i < session->node_count; i++) {
		for (int source = 0; source < MODEL_SOURCE_COUNT; source++) {
			samples[source] += session->nodes[i].self_samples[source];
			weights[source] += session->nodes[i].self_weight[source];
		}
	}
}

static struct existing_value_columns write_sample_types_and_times(struct pprof_profile *profile)
{
	const struct session *session = profile->session;
	struct protobuf_writer *writer = &profile->writer;
	uint64_t samples[MODEL_SOURCE_COUNT] = {0}, weights[MODEL_SOURCE_COUNT] = {0};

	sum_samples_by_source(session, samples, weights);
	struct existing_value_columns columns = {
		.has_wall = samples[SPOOL_SOURCE_WALL] + samples[SPOOL_SOURCE_RUNNABLE] != 0,
		.has_events = samples[SPOOL_SOURCE_OVERFLOW] != 0,
		.has_device = samples[MODEL_SOURCE_DEVICE] != 0,
	};
	columns.has_cpu =
		samples[SPOOL_SOURCE_CPU] != 0 || (!columns.has_wall && !columns.has_events);
	pprof_intern_string(profile, "");
	write_value_type(profile, PROFILE_FIELD_SAMPLE_TYPE, "samples", "count");
	if (columns.has_cpu)
		write_value_type(profile, PROFILE_FIELD_SAMPLE_TYPE, "cpu", "nanoseconds");
	if (columns.has_wall)
		write_value_type(profile, PROFILE_FIELD_SAMPLE_TYPE, "wall", "nanoseconds");
	if (columns.has_events)
		write_value_type(profile, PROFILE_FIELD_SAMPLE_TYPE, "events", "count");
	if (columns.has_device)
		write_value_type(profile, PROFILE_FIELD_SAMPLE_TYPE, "device", "nanoseconds");
	protobuf_write_uint(writer, PROFILE_FIELD_TIME_NS,
			    session->start_ns + (uint64_t)session->realtime_minus_boottime_ns);
	if (session->end_ns > session->start_ns)
		protobuf_write_uint(writer, PROFILE_FIELD_DURATION_NS,
				    session->end_ns - session->start_ns);
	if (samples[SPOOL_SOURCE_CPU] != 0) {
		write_value_type(profile, PROFILE_FIELD_PERIOD_TYPE, "cpu", "nanoseconds");
		protobuf_write_uint(writer, PROFILE_FIELD_PERIOD,
				    weights[SPOOL_SOURCE_CPU] / samples[SPOOL_SOURCE_CPU]);
	}
	protobuf_write_uint(writer, PROFILE_FIELD_DEFAULT_SAMPLE_TYPE,
			    pprof_intern_string(profile, columns.has_cpu    ? "cpu"
							 : columns.has_wall ? "wall"
									    : "events"));
	protobuf_write_uint(writer, PROFILE_FIELD_COMMENT,
			    pprof_intern_string(profile, session->command_line));
	return columns;
}

static void write_text_label(struct pprof_profile *profile, const char *key, const char *value)
{
	protobuf_open_message(&profile->writer, 3);
	protobuf_write_uint(&profile->writer, 1, pprof_intern_string(profile, key));
	protobuf_write_uint(&profile->writer, 2, pprof_intern_string(profile, value));
	protobuf_close_message(&profile->writer);
}

static void write_number_label(struct pprof_profile *profile, const char *key, uint64_t value)
{
	protobuf_open_message(&profile->writer, 3);
	protobuf_write_uint(&profile->writer, 1, pprof_intern_string(profile, key));
	protobuf_write_uint(&profile->writer, 3, value);
	protobuf_close_message(&profile->writer);
}

static void write_sample_values(struct protobuf_writer *writer,
				const struct view_thread_node_row *row,
				struct existing_value_columns columns)
{
	uint8_t values[5 * PROTOBUF_VARINT_BYTES_MAX], *at = values;
	uint64_t samples = 0;

	for (int source = 0; source < SPOOL_SOURCE_COUNT; source++)
		samples += row->self_samples[source];
	at = protobuf_encode_varint(at, samples);
	if (columns.has_cpu)
		at = protobuf_encode_varint(
			at, view_sum_sources_of_measure(row->self_weight, VIEW_MEASURE_CPU_TIME));
	if (columns.has_wall)
		at = protobuf_encode_varint(
			at, view_sum_sources_of_measure(row->self_weight, VIEW_MEASURE_REAL_TIME));
	if (columns.has_events)
		at = protobuf_encode_varint(
			at,
			view_sum_sources_of_measure(row->self_weight, VIEW_MEASURE_COUNTER_EVENTS));
	if (columns.has_device)
		at = protobuf_encode_varint(
			at,
			view_sum_sources_of_measure(row->self_weight, VIEW_MEASURE_DEVICE_TIME));
	protobuf_write_bytes(writer, 2, values, (size_t)(at - values));
}

/* `locations` has room for the varints of the deepest path. */
static void write_sample(struct pprof_profile *profile, const struct view_thread_node_row *row,
			 struct existing_value_columns columns, uint8_t *locations)
{
	const struct model_thread *thread = &profile->session->threads[row->thread];
	const struct model_process *process = &profile->session->processes[thread->process];
	uint8_t *at = locations;

	for (uint32_t node = row->node; node != MODEL_ENTRY_INDEX_NONE;)
		at = protobuf_encode_varint(at, pprof_find_or_write_location(profile, node, &node));
	protobuf_open_message(&profile->writer, PROFILE_FIELD_SAMPLE);
	protobuf_write_bytes(&profile->writer, 1, locations, (size_t)(at - locations));
	write_sample_values(&profile->writer, row, columns);
	write_text_label(profile, "thread", thread->name);
	write_number_label(profile, "tid", thread->tid);
	write_text_label(profile, "process", process->name);
	write_number_label(profile, "pid", process->pid);
	protobuf_close_message(&profile->writer);
}

static int write_samples(struct pprof_profile *profile, struct session *session,
			 struct existing_value_columns columns)
{
	const struct view_thread_node_row *rows;
	uint32_t deepest = 0;
	size_t count;
	int error = view_sum_by_thread_and_node(session, &rows, &count);

	if (error != 0)
		return error;
	for (uint32_t i = 0; i < session->node_count; i++) {
		if (session->nodes[i].depth > deepest)
			deepest = session->nodes[i].depth;
	}
	uint8_t *locations = malloc(((size_t)deepest + 1) * PROTOBUF_VARINT_BYTES_MAX);
	if (locations == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count && profile->writer.error == 0; i++)
		write_sample(profile, &rows[i], columns, locations);
	free(locations);
	return profile->writer.error;
}

static int write_profile_message(struct pprof_profile *profile, struct session *session)
{
	int error = pprof_locations_init(profile);

	if (error != 0)
		return error;
	struct existing_value_columns columns = write_sample_types_and_times(profile);
	error = write_samples(profile, session, columns);
	for (uint32_t i = 0; i < profile->strings.count && error == 0; i++)
		protobuf_write_string(&profile->writer, PROFILE_FIELD_STRING,
				      profile->strings.text[i]);
	return error != 0 ? error : protobuf_finish(&profile->writer);
}

static int output_write_pprof(struct session *session, const struct output_options *options,
			      FILE *stream, struct problem *problem)
{
	struct pprof_profile profile = {.session = session};
	struct gzip_stream *gzip = malloc(sizeof(*gzip));
	int error = gzip == NULL ? -ENOMEM : gzip_init(gzip, stream);

	(void)options;
	if (error == 0) {
		error = protobuf_init(&profile.writer, FLUSH_THRESHOLD_BYTES, gzip_write_bytes,
				      gzip);
		if (error == 0)
			error = write_profile_message(&profile, session);
		if (error == 0)
			error = gzip_write_trailer(gzip);
		gzip_deinit(gzip);
	}
	errno = 0;
	if (error == 0 && (fflush(stream) != 0 || ferror(stream)))
		error = errno != 0 ? -errno : -EIO;
	pprof_locations_deinit(&profile);
	strings_deinit(&profile.strings);
	protobuf_deinit(&profile.writer);
	free(gzip);
	if (error != 0)
		problem_set(problem, error, "cannot write the pprof profile: %s", strerror(-error));
	return error;
}

const struct output_format output_format_pprof = {
	.name = "pprof",
	.file_name = "profile.pb.gz",
	.description = "profile for pprof, Pyroscope, Parca and speedscope",
	.is_binary = true,
	.write = output_write_pprof,
};
