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
#include "common/foreign_file.h"
#include "job/part.h"

struct part_reader {
	struct job *job;
	struct job_part_header header;
	const uint8_t *tables; /* of the next record */
	const char *strings;
	const char *name;                  /* of the file */
	uint32_t *name_index, *path_index; /* in the job */
	struct problem *problem;
};

static int set_damaged_problem(const struct part_reader *reader, const char *what)
{
	return problem_set(reader->problem, -EBADMSG, "'%s' is damaged: %s; make it again",
			   reader->name, what);
}

static int set_memory_problem(const struct part_reader *reader)
{
	return problem_set(reader->problem, -ENOMEM, "out of memory");
}

static void take_record(struct part_reader *reader, void *ret, size_t size)
{
	memcpy(ret, reader->tables, size);
	reader->tables += size;
}

/* NULL: the offset leads out of the strings. The last byte of all is 0. */
static const char *get_text(const struct part_reader *reader, uint32_t offset)
{
	return offset < reader->header.string_bytes ? reader->strings + offset : NULL;
}

static int read_rank(struct part_reader *reader)
{
	struct job_part_rank record;
	struct job_rank rank;

	take_record(reader, &record, sizeof(record));
	rank = (struct job_rank){.rank = record.rank,
				 .size = record.size,
				 .pid = record.pid,
				 .flags = record.flags,
				 .wait_status = record.wait_status,
				 .processes = record.processes,
				 .cpu_ns = record.cpu_ns,
				 .cpu_in_mpi_ns = record.cpu_in_mpi_ns,
				 .wall_ns = record.wall_ns,
				 .samples = record.samples,
				 .lost = record.lost,
				 .events = record.events,
				 .unknown_events = record.unknown_events,
				 .host = get_text(reader, record.host),
				 .directory = get_text(reader, record.directory),
				 .command = get_text(reader, record.command)};
	memcpy(rank.mpi_ns, record.mpi_ns, sizeof(rank.mpi_ns));
	if (!rank.host || !rank.directory || !rank.command)
		return set_damaged_problem(reader, "a text of a rank is not there");
	if (rank.flags & ~(uint32_t)JOB_RANK_FLAGS_ALL || rank.cpu_ns > JOB_VALUE_MAX ||
	    rank.cpu_in_mpi_ns > JOB_VALUE_MAX || rank.wall_ns > JOB_VALUE_MAX)
		return set_damaged_problem(reader, "a rank has impossible values");
	for (unsigned i = 0; i < JOB_MPI_CLASS_COUNT; i++) {
		if (rank.mpi_ns[i] > JOB_VALUE_MAX)
			return set_damaged_problem(reader, "a rank has impossible values");
	}
	return job_add_rank(reader->job, &rank, reader->problem);
}

static int read_refused(struct part_reader *reader)
{
	struct job_part_refused record;
	const char *directory, *reason;

	take_record(reader, &record, sizeof(record));
	directory = get_text(reader, record.directory);
	reason = get_text(reader, record.reason);
	if (!directory || !reason)
		return set_damaged_problem(reader, "a text of a directory is not there");
	return job_add_refused(reader->job, directory, reason) < 0 ? set_memory_problem(reader) : 0;
}

static int read_name(struct part_reader *reader, uint32_t index)
{
	struct job_part_name record;
	struct job_name name;

	take_record(reader, &record, sizeof(record));
	name = (struct job_name){(enum job_name_kind)record.kind, get_text(reader, record.name),
				 get_text(reader, record.group), get_text(reader, record.file)};
	if (record.kind >= JOB_NAME_KIND_COUNT || !name.name || !name.group || !name.file)
		return set_damaged_problem(reader, "a name is not there");
	return job_find_or_add_name(reader->job, &name, &reader->name_index[index]) < 0
		       ? set_memory_problem(reader)
		       : 0;
}

static int read_path(struct part_reader *reader, uint32_t index)
{
	struct job_part_path record;
	uint32_t parent = JOB_NO_PATH;

	take_record(reader, &record, sizeof(record));
	if (record.name >= reader->header.name_count ||
	    (record.parent != JOB_PART_NONE && record.parent >= index))
		return set_damaged_problem(reader, "a call path leads nowhere");
	if (record.parent != JOB_PART_NONE)
		parent = reader->path_index[record.parent];
	return job_find_or_add_path(reader->job, parent, reader->name_index[record.name],
				    &reader->path_index[index]) < 0
		       ? set_memory_problem(reader)
		       : 0;
}

/* What no set of ranks can have would overflow later, or show nonsense. */
static bool moments_are_possible(const struct job_moments *moments, uint32_t ranks)
{
	uint64_t count = moments->count;

	return count && count <= ranks && moments->minimum <= moments->maximum &&
	       moments->minimum && moments->maximum <= JOB_VALUE_MAX &&
	       moments->sum >= (job_wide)moments->minimum * count &&
	       moments->sum <= (job_wide)moments->maximum * count &&
	       moments->sum_of_squares >= (job_wide)moments->minimum * moments->minimum * count &&
	       moments->sum_of_squares <= (job_wide)moments->maximum * moments->maximum * count &&
	       (moments->lowest_rank_without == JOB_NO_RANK) == (count == ranks);
}

static bool job_has_rank(const struct job *job, uint32_t rank)
{
	return id_map_get(&job->rank_map, rank) != ID_MAP_NONE;
}

static int read_row(struct part_reader *reader)
{
	struct job_part_row record;
	const struct job_part_header *header = &reader->header;
	struct job_moments moments;
	uint32_t owner;

	take_record(reader, &record, sizeof(record));
	moments = (struct job_moments){.sum = (job_wide)record.sum[1] << 64 | record.sum[0],
				       .sum_of_squares = (job_wide)record.sum_of_squares[1] << 64 |
							 record.sum_of_squares[0],
				       .minimum = record.minimum,
				       .maximum = record.maximum,
				       .minimum_rank = record.minimum_rank,
				       .maximum_rank = record.maximum_rank,
				       .count = record.count,
				       .lowest_rank_without = record.lowest_rank_without};
	if (record.quantity >= JOB_QUANTITY_COUNT || record.is_of_path > 1 ||
	    record.owner >= (record.is_of_path ? header->path_count : header->name_count))
		return set_damaged_problem(reader, "a row belongs to nothing");
	if (!moments_are_possible(&moments, header->rank_count) ||
	    !job_has_rank(reader->job, moments.minimum_rank) ||
	    !job_has_rank(reader->job, moments.maximum_rank) ||
	    (moments.lowest_rank_without != JOB_NO_RANK &&
	     !job_has_rank(reader->job, moments.lowest_rank_without)))
		return set_damaged_problem(reader, "a row has impossible values");
	owner = record.is_of_path ? reader->path_index[record.owner]
				  : reader->name_index[record.owner];
	if (job_find_row(reader->job, owner, record.is_of_path, (enum job_quantity)record.quantity))
		return set_damaged_problem(reader, "a row is there twice");
	return job_add_moments(reader->job, owner, record.is_of_path,
			       (enum job_quantity)record.quantity, &moments) < 0
		       ? set_memory_problem(reader)
		       : 0;
}

static int read_event(struct part_reader *reader)
{
	struct job_part_event record;
	const struct job_part_header *header = &reader->header;
	struct job_event event;

	take_record(reader, &record, sizeof(record));
	if (record.kind >= JOB_EVENT_KIND_COUNT || record.is_mixed > 1 ||
	    record.begin_name >= header->name_count || record.name >= header->name_count ||
	    !job_has_rank(reader->job, record.rank) || record.begin_ns > record.end_ns ||
	    record.wait_ns > record.end_ns || record.end_ns > JOB_EVENT_TIME_MAX)
		return set_damaged_problem(reader, "an event of MPI has impossible values");
	event = (struct job_event){.context = record.context,
				   .begin_ns = record.begin_ns,
				   .wait_ns = record.wait_ns,
				   .end_ns = record.end_ns,
				   .rank = record.rank,
				   .peer = record.peer,
				   .tag = record.tag,
				   .order = record.order,
				   .begin_name = reader->name_index[record.begin_name],
				   .name = reader->name_index[record.name],
				   .call = record.call,
				   .size = record.size,
				   .kind = (enum job_event_kind)record.kind,
				   .is_mixed = record.is_mixed};
	return job_add_event(reader->job, &event) < 0 ? set_memory_problem(reader) : 0;
}

static int read_tables(struct part_reader *reader)
{
	const struct job_part_header *header = &reader->header;
	int error = 0;

	for (uint32_t i = 0; !error && i < header->rank_count; i++)
		error = read_rank(reader);
	for (uint32_t i = 0; !error && i < header->refused_count; i++)
		error = read_refused(reader);
	for (uint32_t i = 0; !error && i < header->name_count; i++)
		error = read_name(reader, i);
	for (uint32_t i = 0; !error && i < header->path_count; i++)
		error = read_path(reader, i);
	for (uint32_t i = 0; !error && i < header->row_count; i++)
		error = read_row(reader);
	for (uint32_t i = 0; !error && i < header->event_count; i++)
		error = read_event(reader);
	if (!error && header->job_size != reader->job->size)
		error = set_damaged_problem(reader, "the number of ranks is not theirs");
	return error;
}

static uint64_t get_table_bytes(const struct job_part_header *header)
{
	return (uint64_t)header->rank_count * sizeof(struct job_part_rank) +
	       (uint64_t)header->refused_count * sizeof(struct job_part_refused) +
	       (uint64_t)header->name_count * sizeof(struct job_part_name) +
	       (uint64_t)header->path_count * sizeof(struct job_part_path) +
	       (uint64_t)header->row_count * sizeof(struct job_part_row) +
	       (uint64_t)header->event_count * sizeof(struct job_part_event);
}

static uint64_t compute_checksum(struct job_part_header header, const uint8_t *tables,
				 size_t table_bytes)
{
	struct checksum_state sum = checksum_get_initial_state();

	header.checksum = 0;
	checksum_add_bytes(&sum, &header, sizeof(header));
	checksum_add_bytes(&sum, tables, table_bytes);
	checksum_add_bytes(&sum, tables + table_bytes, header.string_bytes);
	return checksum_compute_final_value(&sum);
}

static int check_header(struct part_reader *reader, const uint8_t *bytes, size_t size)
{
	struct job_part_header *header = &reader->header;
	uint64_t table_bytes;

	if (size < sizeof(*header) || memcmp(bytes, JOB_PART_MAGIC, sizeof(header->magic)))
		return problem_set(reader->problem, -EBADMSG,
				   "'%s' is not a part (kymo merge --shard writes them)",
				   reader->name);
	memcpy(header, bytes, sizeof(*header));
	if (header->version != JOB_PART_VERSION)
		return problem_set(reader->problem, -EPROTONOSUPPORT,
				   "'%s' is a part of version %u, and this kymo reads version %u: "
				   "make it again with this kymo",
				   reader->name, header->version, JOB_PART_VERSION);
	table_bytes = get_table_bytes(header);
	if (header->header_bytes != sizeof(*header) || size > JOB_PART_BYTES_MAX ||
	    table_bytes > size || !header->string_bytes || header->string_bytes > size ||
	    table_bytes + header->string_bytes != size - sizeof(*header))
		return set_damaged_problem(reader, "it is cut, or longer than it says");
	reader->tables = bytes + sizeof(*header);
	reader->strings = (const char *)reader->tables + table_bytes;
	if (reader->strings[header->string_bytes - 1])
		return set_damaged_problem(reader, "its texts have no end");
	if (compute_checksum(*header, reader->tables, table_bytes) != header->checksum)
		return set_damaged_problem(reader, "its checksum is wrong");
	return 0;
}

int job_part_read(struct job *job, const void *bytes, size_t size, const char *name,
		  struct problem *problem)
{
	struct part_reader reader = {.job = job, .name = name, .problem = problem};
	int error = check_header(&reader, bytes, size);

	if (error)
		return error;
	reader.name_index = calloc((size_t)reader.header.name_count + 1, sizeof(uint32_t));
	reader.path_index = calloc((size_t)reader.header.path_count + 1, sizeof(uint32_t));
	error = reader.name_index && reader.path_index ? read_tables(&reader)
						       : set_memory_problem(&reader);
	free(reader.name_index);
	free(reader.path_index);
	return error;
}

int job_part_read_file(struct job *job, const char *path, struct problem *problem)
{
	_cleanup_(cleanup_free) char *bytes = NULL;
	size_t size;
	int error = foreign_read_whole_file(&foreign_policy_of_result_files, path,
					    JOB_PART_BYTES_MAX, &bytes, &size);

	if (error)
		return problem_set(problem, error, "cannot read '%s': %s", path,
				   foreign_error_to_text(error));
	return job_part_read(job, bytes, size, path, problem);
}
