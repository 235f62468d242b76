/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * profile.pb.gz for pprof, Pyroscope, Parca and speedscope: every call path of every thread with
 * its sample count and times, labelled with thread and process.
 */
#include "output/pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/gzip.h"
#include "output/writers.h"

#define FLUSH_AT (64u << 10)

/* Which value columns the profile has; the count of samples is always the first. */
struct columns {
	bool cpu, wall, events;
};

uint64_t pprof_string(struct pprof *profile, const char *text)
{
	uint32_t number = 0;

	if (strings_add(&profile->strings, text, &number) != 0 && profile->writer.error == 0)
		profile->writer.error = -ENOMEM;
	return number;
}

static void write_value_type(struct pprof *profile, unsigned field, const char *type,
			     const char *unit)
{
	protobuf_open(&profile->writer, field);
	protobuf_uint(&profile->writer, 1, pprof_string(profile, type));
	protobuf_uint(&profile->writer, 2, pprof_string(profile, unit));
	protobuf_close(&profile->writer);
}

static void sum_sources(const struct session *session, uint64_t samples[SPOOL_SOURCE_COUNT],
			uint64_t weights[SPOOL_SOURCE_COUNT])
{
	for (uint32_t i = 0; i < session->node_count; i++) {
		for (int source = 0; source < SPOOL_SOURCE_COUNT; source++) {
			samples[source] += session->nodes[i].self_samples[source];
			weights[source] += session->nodes[i].self_weight[source];
		}
	}
}

static struct columns write_header(struct pprof *profile)
{
	const struct session *session = profile->session;
	struct protobuf *writer = &profile->writer;
	uint64_t samples[SPOOL_SOURCE_COUNT] = {0}, weights[SPOOL_SOURCE_COUNT] = {0};

	sum_sources(session, samples, weights);
	struct columns columns = {
		.wall = samples[SPOOL_SOURCE_WALL] + samples[SPOOL_SOURCE_RUNNABLE] != 0,
		.events = samples[SPOOL_SOURCE_OVERFLOW] != 0,
	};
	columns.cpu = samples[SPOOL_SOURCE_CPU] != 0 || (!columns.wall && !columns.events);
	pprof_string(profile, "");
	write_value_type(profile, PROFILE_SAMPLE_TYPE, "samples", "count");
	if (columns.cpu)
		write_value_type(profile, PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds");
	if (columns.wall)
		write_value_type(profile, PROFILE_SAMPLE_TYPE, "wall", "nanoseconds");
	if (columns.events)
		write_value_type(profile, PROFILE_SAMPLE_TYPE, "events", "count");
	protobuf_uint(writer, PROFILE_TIME_NS,
		      session->start_ns + (uint64_t)session->realtime_minus_boottime_ns);
	if (session->end_ns > session->start_ns)
		protobuf_uint(writer, PROFILE_DURATION_NS, session->end_ns - session->start_ns);
	if (samples[SPOOL_SOURCE_CPU] != 0) {
		write_value_type(profile, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
		protobuf_uint(writer, PROFILE_PERIOD,
			      weights[SPOOL_SOURCE_CPU] / samples[SPOOL_SOURCE_CPU]);
	}
	protobuf_uint(writer, PROFILE_DEFAULT_SAMPLE_TYPE,
		      pprof_string(profile, columns.cpu    ? "cpu"
					    : columns.wall ? "wall"
							   : "events"));
	protobuf_uint(writer, PROFILE_COMMENT, pprof_string(profile, session->command_line));
	return columns;
}

static void write_text_label(struct pprof *profile, const char *key, const char *value)
{
	protobuf_open(&profile->writer, 3);
	protobuf_uint(&profile->writer, 1, pprof_string(profile, key));
	protobuf_uint(&profile->writer, 2, pprof_string(profile, value));
	protobuf_close(&profile->writer);
}

static void write_number_label(struct pprof *profile, const char *key, uint64_t value)
{
	protobuf_open(&profile->writer, 3);
	protobuf_uint(&profile->writer, 1, pprof_string(profile, key));
	protobuf_uint(&profile->writer, 3, value);
	protobuf_close(&profile->writer);
}

static void write_values(struct protobuf *writer, const struct view_thread_node *row,
			 struct columns columns)
{
	uint8_t values[4 * PROTOBUF_VARINT_MAX], *at = values;
	uint64_t samples = 0;

	for (int source = 0; source < SPOOL_SOURCE_COUNT; source++)
		samples += row->self_samples[source];
	at = protobuf_put_varint(at, samples);
	if (columns.cpu)
		at = protobuf_put_varint(at, view_sum(row->self_weight, MEASURE_CPU));
	if (columns.wall)
		at = protobuf_put_varint(at, view_sum(row->self_weight, MEASURE_WALL));
	if (columns.events)
		at = protobuf_put_varint(at, view_sum(row->self_weight, MEASURE_OVERFLOW));
	protobuf_bytes(writer, 2, values, (size_t)(at - values));
}

/* `locations` has room for the varints of the deepest path. */
static void write_sample(struct pprof *profile, const struct view_thread_node *row,
			 struct columns columns, uint8_t *locations)
{
	const struct model_thread *thread = &profile->session->threads[row->thread];
	const struct model_process *process = &profile->session->processes[thread->process];
	uint8_t *at = locations;

	for (uint32_t node = row->node; node != MODEL_NONE;)
		at = protobuf_put_varint(at, pprof_location(profile, node, &node));
	protobuf_open(&profile->writer, PROFILE_SAMPLE);
	protobuf_bytes(&profile->writer, 1, locations, (size_t)(at - locations));
	write_values(&profile->writer, row, columns);
	write_text_label(profile, "thread", thread->name);
	write_number_label(profile, "tid", thread->tid);
	write_text_label(profile, "process", process->name);
	write_number_label(profile, "pid", process->pid);
	protobuf_close(&profile->writer);
}

static int write_samples(struct pprof *profile, struct session *session, struct columns columns)
{
	const struct view_thread_node *rows;
	uint32_t deepest = 0;
	size_t count;
	int error = view_thread_nodes(session, &rows, &count);

	if (error != 0)
		return error;
	for (uint32_t i = 0; i < session->node_count; i++) {
		if (session->nodes[i].depth > deepest)
			deepest = session->nodes[i].depth;
	}
	uint8_t *locations = malloc(((size_t)deepest + 1) * PROTOBUF_VARINT_MAX);
	if (locations == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count && profile->writer.error == 0; i++)
		write_sample(profile, &rows[i], columns, locations);
	free(locations);
	return profile->writer.error;
}

static int write_profile(struct pprof *profile, struct session *session)
{
	int error = pprof_locations_init(profile);

	if (error != 0)
		return error;
	struct columns columns = write_header(profile);
	error = write_samples(profile, session, columns);
	for (uint32_t i = 0; i < profile->strings.count && error == 0; i++)
		protobuf_string(&profile->writer, PROFILE_STRING, profile->strings.text[i]);
	return error != 0 ? error : protobuf_finish(&profile->writer);
}

int output_pprof(struct session *session, const struct output_options *options, FILE *stream,
		 struct problem *problem)
{
	struct pprof profile = {.session = session};
	struct gzip *gzip = malloc(sizeof(*gzip));
	int error = gzip == NULL ? -ENOMEM : gzip_init(gzip, stream);

	(void)options;
	if (error == 0) {
		error = protobuf_init(&profile.writer, FLUSH_AT, gzip_sink, gzip);
		if (error == 0)
			error = write_profile(&profile, session);
		if (error == 0)
			error = gzip_finish(gzip);
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
