/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See part.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/checksum.h"
#include "common/cleanup.h"
#include "job/part.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "parts are written as they are in memory");

/* The file is made in memory: its checksum stands in front. */
struct part_writer {
	FILE *stream; /* of the tables */
	struct arena strings;
	struct id_map offsets; /* address of an interned string -> offset */
	FILE *string_stream;
	uint64_t string_bytes;
	bool failed;
};

static uint32_t put_text(struct part_writer *writer, const char *text)
{
	const char *interned = arena_intern_string(&writer->strings, text);
	uint32_t offset = id_map_get(&writer->offsets, (uintptr_t)interned);
	size_t size = strlen(text) + 1;

	if (!interned)
		writer->failed = true;
	if (!interned || offset != ID_MAP_NONE)
		return offset;
	offset = (uint32_t)writer->string_bytes;
	if (writer->string_bytes + size >= JOB_PART_STRINGS_MAX ||
	    id_map_set(&writer->offsets, (uintptr_t)interned, offset) < 0)
		writer->failed = true;
	else
		fwrite(text, size, 1, writer->string_stream);
	writer->string_bytes += size;
	return offset;
}

static void write_rank(struct part_writer *writer, const struct job_rank *rank)
{
	struct job_part_rank record = {.rank = rank->rank,
				       .size = rank->size,
				       .pid = rank->pid,
				       .flags = rank->flags,
				       .wait_status = rank->wait_status,
				       .processes = rank->processes,
				       .cpu_ns = rank->cpu_ns,
				       .cpu_in_mpi_ns = rank->cpu_in_mpi_ns,
				       .wall_ns = rank->wall_ns,
				       .samples = rank->samples,
				       .lost = rank->lost,
				       .events = rank->events,
				       .unknown_events = rank->unknown_events};

	memcpy(record.mpi_ns, rank->mpi_ns, sizeof(record.mpi_ns));
	record.host = put_text(writer, rank->host);
	record.directory = put_text(writer, rank->directory);
	record.command = put_text(writer, rank->command);
	fwrite(&record, sizeof(record), 1, writer->stream);
}

static void write_name(struct part_writer *writer, const struct job_name *name)
{
	struct job_part_name record = {.kind = name->kind};

	record.name = put_text(writer, name->name);
	record.group = put_text(writer, name->group);
	record.file = put_text(writer, name->file);
	fwrite(&record, sizeof(record), 1, writer->stream);
}

static void write_row(struct part_writer *writer, const struct job_row *row)
{
	const struct job_moments *moments = &row->moments;
	struct job_part_row record = {
		.owner = row->owner,
		.is_of_path = row->is_of_path,
		.quantity = (uint16_t)row->quantity,
		.sum = {(uint64_t)moments->sum, (uint64_t)(moments->sum >> 64)},
		.sum_of_squares = {(uint64_t)moments->sum_of_squares,
				   (uint64_t)(moments->sum_of_squares >> 64)},
		.minimum = moments->minimum,
		.maximum = moments->maximum,
		.minimum_rank = moments->minimum_rank,
		.maximum_rank = moments->maximum_rank,
		.count = moments->count,
		.lowest_rank_without = moments->lowest_rank_without};

	fwrite(&record, sizeof(record), 1, writer->stream);
}

static void write_event(const struct part_writer *writer, const struct job_event *event)
{
	struct job_part_event record = {.context = event->context,
					.begin_ns = event->begin_ns,
					.wait_ns = event->wait_ns,
					.end_ns = event->end_ns,
					.rank = event->rank,
					.peer = event->peer,
					.tag = event->tag,
					.order = event->order,
					.begin_name = event->begin_name,
					.name = event->name,
					.call = event->call,
					.size = event->size,
					.kind = (uint16_t)event->kind,
					.is_mixed = event->is_mixed};

	fwrite(&record, sizeof(record), 1, writer->stream);
}

static void write_tables(struct part_writer *writer, const struct job *job)
{
	put_text(writer, "");
	for (uint32_t i = 0; i < job->rank_count; i++)
		write_rank(writer, &job->ranks[i]);
	for (uint32_t i = 0; i < job->refused_count; i++) {
		struct job_part_refused record = {
			.directory = put_text(writer, job->refused[i].directory)};

		record.reason = put_text(writer, job->refused[i].reason);
		fwrite(&record, sizeof(record), 1, writer->stream);
	}
	for (uint32_t i = 0; i < job->name_count; i++)
		write_name(writer, &job->names[i]);
	for (uint32_t i = 0; i < job->path_count; i++)
		fwrite(&(struct job_part_path){job->paths[i].parent, job->paths[i].name},
		       sizeof(struct job_part_path), 1, writer->stream);
	for (uint32_t i = 0; i < job->row_count; i++)
		write_row(writer, &job->rows[i]);
	for (uint32_t i = 0; i < job->event_count; i++)
		write_event(writer, &job->events[i]);
}

static int write_whole_part(const struct job *job, const char *tables, size_t table_bytes,
			    const char *strings, size_t string_bytes, FILE *stream)
{
	struct job_part_header header = {.version = JOB_PART_VERSION,
					 .header_bytes = sizeof(header),
					 .job_size = job->size,
					 .rank_count = job->rank_count,
					 .refused_count = job->refused_count,
					 .name_count = job->name_count,
					 .path_count = job->path_count,
					 .row_count = job->row_count,
					 .event_count = job->event_count,
					 .string_bytes = string_bytes};
	struct checksum_state sum = checksum_get_initial_state();

	memcpy(header.magic, JOB_PART_MAGIC, sizeof(header.magic));
	checksum_add_bytes(&sum, &header, sizeof(header));
	checksum_add_bytes(&sum, tables, table_bytes);
	checksum_add_bytes(&sum, strings, string_bytes);
	header.checksum = checksum_compute_final_value(&sum);
	errno = 0;
	if (fwrite(&header, sizeof(header), 1, stream) != 1 ||
	    (table_bytes && fwrite(tables, table_bytes, 1, stream) != 1) ||
	    fwrite(strings, string_bytes, 1, stream) != 1 || fflush(stream))
		return errno ? -errno : -EIO;
	return 0;
}

int job_part_write(const struct job *job, FILE *stream, struct problem *problem)
{
	_cleanup_(cleanup_free) char *tables = NULL, *strings = NULL;
	size_t table_bytes = 0, string_bytes = 0;
	struct part_writer writer = {.stream = open_memstream(&tables, &table_bytes),
				     .string_stream = open_memstream(&strings, &string_bytes)};
	int error = -ENOMEM;

	if (writer.stream && writer.string_stream) {
		write_tables(&writer, job);
		error = fflush(writer.stream) || fflush(writer.string_stream) || writer.failed
				? -ENOMEM
				: 0;
	}
	if (writer.stream && fclose(writer.stream))
		error = -ENOMEM;
	if (writer.string_stream && fclose(writer.string_stream))
		error = -ENOMEM;
	arena_deinit(&writer.strings);
	id_map_deinit(&writer.offsets);
	if (!error)
		error = write_whole_part(job, tables, table_bytes, strings, string_bytes, stream);
	return error ? problem_set(problem, error, "cannot write the part: %s", strerror(-error))
		     : 0;
}
