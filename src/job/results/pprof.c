/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * profile.pb.gz of a job: a sample is a call path with its sums over the ranks. A location is a
 * function, since addresses are not what ranks have in common.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "files/stream.h"
#include "job/results/results.h"
#include "output/gzip.h"
#include "output/pprof/pprof.h"

#define FLUSH_THRESHOLD_BYTES (64u << 10)

enum { COLUMN_CPU, COLUMN_BLOCKED, COLUMN_EVENTS, COLUMN_DEVICE, COLUMN_COUNT };

static const struct {
	const char *type, *unit;
} columns[COLUMN_COUNT] = {[COLUMN_CPU] = {"cpu", "nanoseconds"},
			   [COLUMN_BLOCKED] = {"blocked", "nanoseconds"},
			   [COLUMN_EVENTS] = {"events", "count"},
			   [COLUMN_DEVICE] = {"device", "nanoseconds"}};

struct job_profile {
	struct pprof_profile pprof; /* its writer and its strings */
	const struct job *job;
};

static uint64_t get_sum(const struct job *job, uint32_t path, enum job_quantity quantity)
{
	const struct job_row *row = job_find_row(job, path, true, quantity);

	if (!row)
		return 0;
	return row->moments.sum > INT64_MAX ? INT64_MAX : (uint64_t)row->moments.sum;
}

static void write_sample_types(struct job_profile *profile)
{
	struct protobuf_writer *writer = &profile->pprof.writer;

	pprof_intern_string(&profile->pprof, "");
	for (size_t i = 0; i < COLUMN_COUNT; i++) {
		protobuf_open_message(writer, PROFILE_FIELD_SAMPLE_TYPE);
		protobuf_write_uint(writer, 1,
				    pprof_intern_string(&profile->pprof, columns[i].type));
		protobuf_write_uint(writer, 2,
				    pprof_intern_string(&profile->pprof, columns[i].unit));
		protobuf_close_message(writer);
	}
}

static void write_function_and_location(struct job_profile *profile, uint32_t index)
{
	const struct job_name *name = &profile->job->names[index];
	struct protobuf_writer *writer = &profile->pprof.writer;
	uint64_t id = (uint64_t)index + 1, text = pprof_intern_string(&profile->pprof, name->name);

	protobuf_open_message(writer, PROFILE_FIELD_FUNCTION);
	protobuf_write_uint(writer, 1, id);
	protobuf_write_uint(writer, 2, text);
	protobuf_write_uint(writer, 3, text);
	protobuf_write_uint(writer, 4, pprof_intern_string(&profile->pprof, name->file));
	protobuf_close_message(writer);
	protobuf_open_message(writer, PROFILE_FIELD_LOCATION);
	protobuf_write_uint(writer, 1, id);
	protobuf_open_message(writer, 4);
	protobuf_write_uint(writer, 1, id);
	protobuf_close_message(writer);
	protobuf_close_message(writer);
}

static void write_sample(struct job_profile *profile, uint32_t path, const uint64_t *values)
{
	const struct job *job = profile->job;
	struct protobuf_writer *writer = &profile->pprof.writer;

	protobuf_open_message(writer, PROFILE_FIELD_SAMPLE);
	for (uint32_t at = path; at != JOB_NO_PATH; at = job->paths[at].parent)
		protobuf_write_uint(writer, 1, (uint64_t)job->paths[at].name + 1);
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		protobuf_write_uint(writer, 2, values[i]);
	protobuf_close_message(writer);
}

static int write_profile(struct job_profile *profile)
{
	const struct job *job = profile->job;
	struct pprof_profile *pprof = &profile->pprof;

	write_sample_types(profile);
	for (uint32_t i = 0; i < job->name_count; i++) {
		if (job->names[i].kind != JOB_NAME_REGION)
			write_function_and_location(profile, i);
	}
	for (uint32_t i = 0; i < job->path_count && !pprof->writer.error; i++) {
		const uint64_t values[COLUMN_COUNT] = {
			[COLUMN_CPU] = get_sum(job, i, JOB_CPU_OUTSIDE_MPI) +
				       get_sum(job, i, JOB_CPU_INSIDE_MPI),
			[COLUMN_BLOCKED] = get_sum(job, i, JOB_BLOCKED_OUTSIDE_MPI) +
					   get_sum(job, i, JOB_BLOCKED_INSIDE_MPI),
			[COLUMN_EVENTS] = get_sum(job, i, JOB_EVENTS),
			[COLUMN_DEVICE] = get_sum(job, i, JOB_DEVICE)};

		if (values[COLUMN_CPU] || values[COLUMN_BLOCKED] || values[COLUMN_EVENTS] ||
		    values[COLUMN_DEVICE])
			write_sample(profile, i, values);
	}
	for (uint32_t i = 0; i < pprof->strings.count; i++)
		protobuf_write_string(&pprof->writer, PROFILE_FIELD_STRING, pprof->strings.text[i]);
	return protobuf_finish(&pprof->writer);
}

int job_write_pprof(const struct job *job, unsigned top, FILE *stream, struct problem *problem)
{
	struct job_profile profile = {.job = job};
	struct gzip_stream *gzip = malloc(sizeof(*gzip));
	int error = gzip ? gzip_init(gzip, stream) : -ENOMEM;

	(void)top;
	if (!error) {
		error = protobuf_init(&profile.pprof.writer, FLUSH_THRESHOLD_BYTES,
				      gzip_write_bytes, gzip);
		if (!error)
			error = write_profile(&profile);
		if (!error)
			error = gzip_write_trailer(gzip);
		gzip_deinit(gzip);
	}
	strings_deinit(&profile.pprof.strings);
	protobuf_deinit(&profile.pprof.writer);
	free(gzip);
	if (error)
		return problem_set(problem, error, "cannot write the pprof profile: %s",
				   strerror(-error));
	return stream_flush_or_set_problem(stream, "the pprof profile", problem);
}
