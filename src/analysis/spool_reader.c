/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Header check, chunk index and repair; see spool_reader.h. A chunk header that makes no sense is
 * skipped page by page until the next plausible one, and the bytes are counted as torn. Pages of
 * zeros are room that the writer had reserved and not yet used, and count as nothing.
 */
#include "analysis/spool_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/arena.h"
#include "analysis/record_file.h"
#include "common/foreign_file.h"

#define FILE_HEADER_BYTES_LEAST offsetof(struct spool_file_header, reserved)

static int check_file_header(const struct spool_file *file, ssize_t got, struct problem *problem)
{
	const struct spool_file_header *header = &file->header;

	if (got < (ssize_t)FILE_HEADER_BYTES_LEAST)
		return problem_set(problem, -ENODATA, "%s: too short for a spool file (%zd bytes)",
				   file->path, got);
	if (memcmp(header->magic, SPOOL_MAGIC, sizeof(header->magic)) != 0)
		return problem_set(problem, -ENODATA, "%s: not a spool file of kymo", file->path);
	if (header->version_major != SPOOL_VERSION_MAJOR)
		return problem_set(problem, -EPROTO,
				   "%s: spool format %u.%u; this version of kymo reads %d.x; use "
				   "the version that recorded it",
				   file->path, header->version_major, header->version_minor,
				   SPOOL_VERSION_MAJOR);
	return 0;
}

static bool chunk_header_is_plausible(const struct spool_chunk_header *header)
{
	return header->magic == SPOOL_CHUNK_MAGIC && header->size >= SPOOL_ALIGNMENT &&
	       header->size <= SPOOL_CHUNK_SIZE_MAX && header->size % SPOOL_ALIGNMENT == 0;
}

static int add_chunk_to_index(struct spool_file *file, uint64_t offset,
			      const struct spool_chunk_header *header)
{
	uint64_t room = header->size - SPOOL_CHUNK_HEADER_SIZE;
	uint64_t present = file->size - offset - SPOOL_CHUNK_HEADER_SIZE;
	uint64_t committed = header->committed;

	if (committed > room || committed > present) {
		file->torn_chunks++;
		if (committed > room)
			committed = room;
		if (committed > present) {
			file->torn_bytes += committed - present;
			committed = present;
		}
	}
	if (committed == 0)
		return 0;
	if (array_reserve_one_more((void **)&file->chunks, &file->chunk_capacity, file->chunk_count,
				   sizeof(*file->chunks)) < 0)
		return -ENOMEM;
	file->chunks[file->chunk_count++] =
		(struct spool_chunk){offset, header->sequence, (uint32_t)committed, false};
	return 0;
}

/* Where to look after a page without a chunk: unwritten room is one hole to the file system. */
static uint64_t find_data_after_unused_page(const struct spool_file *file, uint64_t offset)
{
	off_t data = lseek(file->descriptor, (off_t)(offset + SPOOL_ALIGNMENT), SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? file->size : offset + SPOOL_ALIGNMENT;
	return (uint64_t)data / SPOOL_ALIGNMENT * SPOOL_ALIGNMENT;
}

static int compare_chunks_by_sequence(const void *left, const void *right)
{
	const struct spool_chunk *a = left, *b = right;

	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* The next chunk from *offset on, which goes on behind it; false at the end. Room that was not used
 * yet may hold chunks later: *unused is where it was first seen. */
static bool find_next_chunk(struct spool_file *file, uint64_t *offset, uint64_t *unused,
			    struct spool_chunk_header *ret)
{
	static const struct spool_chunk_header zeros;
	bool searching = false;

	while (*offset < file->size) {
		memset(ret, 0, sizeof(*ret));
		ssize_t got =
			record_file_read_at_offset(file->descriptor, ret, sizeof(*ret), *offset);

		if (got < (ssize_t)sizeof(*ret)) {
			file->torn_bytes += file->size - *offset;
			return false;
		}
		if (chunk_header_is_plausible(ret)) {
			*offset += ret->size;
			return true;
		}
		if (memcmp(ret, &zeros, sizeof(*ret)) == 0) {
			if (*unused > *offset)
				*unused = *offset;
			*offset = find_data_after_unused_page(file, *offset);
		} else {
			file->torn_chunks += !searching;
			file->torn_bytes += SPOOL_ALIGNMENT;
			*offset += SPOOL_ALIGNMENT;
			searching = true;
		}
	}
	return false;
}

/* A chunk may be in two places. It is whole in the first: the process may have been killed while it
 * wrote the second. */
static void drop_second_copies_of_chunks(struct spool_file *file)
{
	struct spool_chunk *chunks = file->chunks;
	size_t kept = 0;

	for (size_t i = 0; i < file->chunk_count; i++) {
		if (!kept || !chunks[i].sequence || chunks[i].sequence != chunks[kept - 1].sequence)
			chunks[kept++] = chunks[i];
		else if (chunks[i].offset < file->settled)
			file->settled = chunks[i].offset;
	}
	file->chunk_count = kept;
}

static int build_chunk_index(struct spool_file *file)
{
	struct spool_chunk_header header;
	uint64_t end = SPOOL_ALIGNMENT;
	int result = 0;

	file->settled = file->size;
	while (result == 0 && find_next_chunk(file, &end, &file->settled, &header))
		result = add_chunk_to_index(file, end - header.size, &header);
	if (file->chunk_count > 1)
		qsort(file->chunks, file->chunk_count, sizeof(*file->chunks),
		      compare_chunks_by_sequence);
	drop_second_copies_of_chunks(file);
	return result;
}

/* The process was replaced or killed between making the file and writing its header, of which the
 * magic comes last. */
static bool header_was_never_written(struct spool_file *file)
{
	static const char zeros[sizeof(file->header.magic)];

	return file->size >= sizeof(file->header) &&
	       memcmp(file->header.magic, zeros, sizeof(zeros)) == 0 &&
	       build_chunk_index(file) == 0 && file->chunk_count == 0;
}

int spool_file_open(const char *path, struct spool_file *ret, struct problem *problem)
{
	struct spool_file file = {.descriptor = -1};
	int result = record_file_open_and_get_size(path, &file.descriptor, &file.size, problem);
	struct stat status;

	if (result == 0 && !fstat(file.descriptor, &status))
		file.owner = status.st_uid;
	if (result == 0) {
		file.path = strdup(path);
		if (!file.path)
			result = problem_set(problem, -ENOMEM, "out of memory reading %s", path);
	}
	if (result == 0) {
		ssize_t got = record_file_read_at_offset(file.descriptor, &file.header,
							 sizeof(file.header), 0);

		if (got < 0)
			result = problem_set(problem, (int)got, "cannot read %s: %s", path,
					     strerror((int)-got));
		else if (header_was_never_written(&file))
			result = problem_set(problem, -ENOMSG, "%s contains no data yet", path);
		else
			result = check_file_header(&file, got, problem);
	}
	if (result == 0) {
		result = build_chunk_index(&file);
		if (result < 0)
			problem_set(problem, result, "out of memory reading %s", path);
	}
	if (result < 0)
		spool_file_close(&file);
	else
		*ret = file;
	return result;
}

void spool_file_close_temporarily(struct spool_file *file)
{
	if (file->descriptor >= 0)
		close(file->descriptor);
	file->descriptor = -1;
	free(file->buffer.bytes);
	file->buffer = (struct spool_chunk_buffer){NULL, 0};
}

int spool_file_reopen(struct spool_file *file, struct problem *problem)
{
	if (file->descriptor >= 0)
		return 0;
	file->descriptor = foreign_open_file(&foreign_policy_of_result_files, file->path, NULL);
	if (file->descriptor >= 0)
		return 0;
	problem_set(problem, 0, "cannot open %s again: %s", file->path,
		    foreign_error_to_text(file->descriptor));
	return file->descriptor;
}

void spool_file_close(struct spool_file *file)
{
	spool_file_close_temporarily(file);
	free(file->path);
	free(file->chunks);
	memset(file, 0, sizeof(*file));
	file->descriptor = -1;
}

static int reserve_buffer_bytes(struct spool_chunk_buffer *buffer, size_t size)
{
	uint8_t *bytes;

	if (buffer->bytes && size <= buffer->size)
		return 0;
	bytes = realloc(buffer->bytes, size + SPOOL_BUFFER_PADDING_BYTES);
	if (!bytes)
		return -ENOMEM;
	buffer->bytes = bytes;
	buffer->size = size;
	return 0;
}

/* ---- what was moved since ---- */

static bool chunk_is_still_at_its_offset(const struct spool_file *file,
					 const struct spool_chunk *wanted)
{
	struct spool_chunk_header header;

	return record_file_read_at_offset(file->descriptor, &header, sizeof(header),
					  wanted->offset) == (ssize_t)sizeof(header) &&
	       header.sequence == wanted->sequence;
}

static struct spool_chunk *find_chunk_by_sequence(const struct spool_file *file, uint64_t sequence)
{
	struct spool_chunk wanted = {.sequence = sequence};
	size_t low = 0, high = file->chunk_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_chunks_by_sequence(&file->chunks[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < file->chunk_count && file->chunks[low].sequence == sequence
		       ? &file->chunks[low]
		       : NULL;
}

/* Looks for chunks of the index among those that were written since it was made. */
static void update_moved_chunk_offsets(struct spool_file *file)
{
	struct spool_file now = *file;
	uint64_t end = file->settled;
	struct spool_chunk_header header;
	struct stat status;

	if (fstat(file->descriptor, &status) < 0)
		return;
	now.size = (uint64_t)status.st_size;
	file->settled = now.size;
	while (find_next_chunk(&now, &end, &file->settled, &header)) {
		struct spool_chunk *chunk = find_chunk_by_sequence(file, header.sequence);

		if (chunk && header.committed >= chunk->committed &&
		    !chunk_is_still_at_its_offset(file, chunk))
			chunk->offset = end - header.size;
	}
}

/* `size` bytes from `from` on; false: they are not there any more. Negative errno. */
static int read_chunk_bytes_if_not_moved(struct spool_file *file, const struct spool_chunk *wanted,
					 size_t from, size_t size, uint8_t *bytes, size_t *ret_got)
{
	ssize_t got = record_file_read_at_offset(file->descriptor, bytes, size,
						 wanted->offset + SPOOL_CHUNK_HEADER_SIZE + from);

	if (got < 0)
		return (int)got;
	*ret_got = (size_t)got;
	/* After the records, so that what was reused meanwhile is noticed. */
	return chunk_is_still_at_its_offset(file, wanted);
}

int spool_file_read_chunk_part_into(struct spool_file *file, struct spool_chunk_buffer *buffer,
				    size_t chunk, size_t from, size_t size,
				    struct spool_chunk_record_cursor *ret)
{
	const struct spool_chunk *wanted = &file->chunks[chunk];
	size_t got = 0;
	int result;

	*ret = (struct spool_chunk_record_cursor){NULL, NULL};
	if (reserve_buffer_bytes(buffer, size) < 0)
		return -ENOMEM;
	result = read_chunk_bytes_if_not_moved(file, wanted, from, size, buffer->bytes, &got);
	if (result == 0) {
		update_moved_chunk_offsets(file);
		result = read_chunk_bytes_if_not_moved(file, wanted, from, size, buffer->bytes,
						       &got);
	}
	if (result <= 0)
		return result;
	memset(buffer->bytes + got, 0, SPOOL_BUFFER_PADDING_BYTES);
	*ret = (struct spool_chunk_record_cursor){buffer->bytes, buffer->bytes + got};
	return 0;
}

int spool_file_read_chunk(struct spool_file *file, size_t chunk,
			  struct spool_chunk_record_cursor *ret)
{
	return spool_file_read_chunk_part_into(file, &file->buffer, chunk, 0,
					       file->chunks[chunk].committed, ret);
}

int spool_file_read_chunk_part(struct spool_file *file, size_t chunk, size_t from, size_t size,
			       struct spool_chunk_record_cursor *ret)
{
	return spool_file_read_chunk_part_into(file, &file->buffer, chunk, from, size, ret);
}

uint64_t spool_read_unsigned_slowly(struct spool_record_payload_cursor *payload)
{
	uint64_t value = 0;

	if (!leb128_read(&payload->at, payload->end, &value)) {
		payload->bad = true;
		payload->at = payload->end;
		return 0;
	}
	return value;
}
