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

#define HEADER_FIELDS offsetof(struct spool_file_header, reserved)

static int header_check(const struct spool_file *file, ssize_t got, struct problem *problem)
{
	const struct spool_file_header *header = &file->header;

	if (got < (ssize_t)HEADER_FIELDS)
		return problem_set(problem, -ENODATA, "%s: too short for a spool file (%zd bytes)",
				   file->path, got);
	if (memcmp(header->magic, SPOOL_MAGIC, sizeof(header->magic)) != 0)
		return problem_set(problem, -ENODATA, "%s: not a spool file of kymo", file->path);
	if (header->version_major != SPOOL_VERSION_MAJOR)
		return problem_set(problem, -EPROTO,
				   "%s: spool format %u.%u; this kymo reads %d.x, use the kymo "
				   "that recorded it",
				   file->path, header->version_major, header->version_minor,
				   SPOOL_VERSION_MAJOR);
	return 0;
}

static bool chunk_plausible(const struct spool_chunk_header *header)
{
	return header->magic == SPOOL_CHUNK_MAGIC && header->size >= SPOOL_ALIGNMENT &&
	       header->size <= SPOOL_CHUNK_SIZE_MAX && header->size % SPOOL_ALIGNMENT == 0;
}

static int index_chunk(struct spool_file *file, uint64_t offset,
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
	if (array_reserve((void **)&file->chunks, &file->chunk_capacity, file->chunk_count,
			  sizeof(*file->chunks)) < 0)
		return -ENOMEM;
	file->chunks[file->chunk_count++] =
		(struct spool_chunk){offset, header->sequence, (uint32_t)committed, false};
	return 0;
}

/* Where to look after a page without a chunk: unwritten room is one hole to the file system. */
static uint64_t after_unused(const struct spool_file *file, uint64_t offset)
{
	off_t data = lseek(file->descriptor, (off_t)(offset + SPOOL_ALIGNMENT), SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? file->size : offset + SPOOL_ALIGNMENT;
	return (uint64_t)data / SPOOL_ALIGNMENT * SPOOL_ALIGNMENT;
}

static int by_sequence(const void *left, const void *right)
{
	const struct spool_chunk *a = left, *b = right;

	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* The next chunk from *offset on, which goes on behind it; false at the end. Room that was not used
 * yet may hold chunks later: *unused is where it was first seen. */
static bool next_chunk(struct spool_file *file, uint64_t *offset, uint64_t *unused,
		       struct spool_chunk_header *ret)
{
	static const struct spool_chunk_header zeros;
	bool searching = false;

	while (*offset < file->size) {
		memset(ret, 0, sizeof(*ret));
		ssize_t got = record_file_read(file->descriptor, ret, sizeof(*ret), *offset);

		if (got < (ssize_t)sizeof(*ret)) {
			file->torn_bytes += file->size - *offset;
			return false;
		}
		if (chunk_plausible(ret)) {
			*offset += ret->size;
			return true;
		}
		if (memcmp(ret, &zeros, sizeof(*ret)) == 0) {
			if (*unused > *offset)
				*unused = *offset;
			*offset = after_unused(file, *offset);
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
static void keep_first_places(struct spool_file *file)
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

static int index_chunks(struct spool_file *file)
{
	struct spool_chunk_header header;
	uint64_t end = SPOOL_ALIGNMENT;
	int result = 0;

	file->settled = file->size;
	while (result == 0 && next_chunk(file, &end, &file->settled, &header))
		result = index_chunk(file, end - header.size, &header);
	if (file->chunk_count > 1)
		qsort(file->chunks, file->chunk_count, sizeof(*file->chunks), by_sequence);
	keep_first_places(file);
	return result;
}

/* The process was replaced or killed between making the file and writing its header, of which the
 * magic comes last. */
static bool never_begun(struct spool_file *file)
{
	static const char zeros[sizeof(file->header.magic)];

	return file->size >= sizeof(file->header) &&
	       memcmp(file->header.magic, zeros, sizeof(zeros)) == 0 && index_chunks(file) == 0 &&
	       file->chunk_count == 0;
}

int spool_file_open(const char *path, struct spool_file *ret, struct problem *problem)
{
	struct spool_file file = {.descriptor = -1};
	int result = record_file_open(path, &file.descriptor, &file.size, problem);

	if (result == 0) {
		file.path = strdup(path);
		if (!file.path)
			result = problem_set(problem, -ENOMEM, "out of memory reading %s", path);
	}
	if (result == 0) {
		ssize_t got =
			record_file_read(file.descriptor, &file.header, sizeof(file.header), 0);

		if (got < 0)
			result = problem_set(problem, (int)got, "cannot read %s: %s", path,
					     strerror((int)-got));
		else if (never_begun(&file))
			result = problem_set(problem, -ENOMSG, "%s holds nothing yet", path);
		else
			result = header_check(&file, got, problem);
	}
	if (result == 0) {
		result = index_chunks(&file);
		if (result < 0)
			problem_set(problem, result, "out of memory reading %s", path);
	}
	if (result < 0)
		spool_file_close(&file);
	else
		*ret = file;
	return result;
}

void spool_file_pause(struct spool_file *file)
{
	if (file->descriptor >= 0)
		close(file->descriptor);
	file->descriptor = -1;
	free(file->buffer.bytes);
	file->buffer = (struct spool_buffer){NULL, 0};
}

int spool_file_resume(struct spool_file *file, struct problem *problem)
{
	if (file->descriptor >= 0)
		return 0;
	file->descriptor = open(file->path, O_RDONLY | O_CLOEXEC);
	if (file->descriptor < 0)
		return problem_set(problem, -errno, "cannot open %s again: %s", file->path,
				   strerror(errno));
	return 0;
}

void spool_file_close(struct spool_file *file)
{
	spool_file_pause(file);
	free(file->path);
	free(file->chunks);
	memset(file, 0, sizeof(*file));
	file->descriptor = -1;
}

static int buffer_reserve(struct spool_buffer *buffer, size_t size)
{
	uint8_t *bytes;

	if (buffer->bytes && size <= buffer->size)
		return 0;
	bytes = realloc(buffer->bytes, size + SPOOL_PADDING);
	if (!bytes)
		return -ENOMEM;
	buffer->bytes = bytes;
	buffer->size = size;
	return 0;
}

/* ---- what was moved since ---- */

static bool is_still_there(const struct spool_file *file, const struct spool_chunk *wanted)
{
	struct spool_chunk_header header;

	return record_file_read(file->descriptor, &header, sizeof(header), wanted->offset) ==
		       (ssize_t)sizeof(header) &&
	       header.sequence == wanted->sequence;
}

static struct spool_chunk *find_chunk(const struct spool_file *file, uint64_t sequence)
{
	struct spool_chunk wanted = {.sequence = sequence};
	size_t low = 0, high = file->chunk_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (by_sequence(&file->chunks[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < file->chunk_count && file->chunks[low].sequence == sequence
		       ? &file->chunks[low]
		       : NULL;
}

/* Looks for chunks of the index among those that were written since it was made. */
static void follow_moves(struct spool_file *file)
{
	struct spool_file now = *file;
	uint64_t end = file->settled;
	struct spool_chunk_header header;
	struct stat status;

	if (fstat(file->descriptor, &status) < 0)
		return;
	now.size = (uint64_t)status.st_size;
	file->settled = now.size;
	while (next_chunk(&now, &end, &file->settled, &header)) {
		struct spool_chunk *chunk = find_chunk(file, header.sequence);

		if (chunk && header.committed >= chunk->committed && !is_still_there(file, chunk))
			chunk->offset = end - header.size;
	}
}

/* `size` bytes from `from` on; false: they are not there any more. Negative errno. */
static int read_records(struct spool_file *file, const struct spool_chunk *wanted, size_t from,
			size_t size, uint8_t *bytes, size_t *ret_got)
{
	ssize_t got = record_file_read(file->descriptor, bytes, size,
				       wanted->offset + SPOOL_CHUNK_HEADER_SIZE + from);

	if (got < 0)
		return (int)got;
	*ret_got = (size_t)got;
	/* After the records, so that what was reused meanwhile is noticed. */
	return is_still_there(file, wanted);
}

int spool_file_read_into(struct spool_file *file, struct spool_buffer *buffer, size_t chunk,
			 size_t from, size_t size, struct spool_cursor *ret)
{
	const struct spool_chunk *wanted = &file->chunks[chunk];
	size_t got = 0;
	int result;

	*ret = (struct spool_cursor){NULL, NULL};
	if (buffer_reserve(buffer, size) < 0)
		return -ENOMEM;
	result = read_records(file, wanted, from, size, buffer->bytes, &got);
	if (result == 0) {
		follow_moves(file);
		result = read_records(file, wanted, from, size, buffer->bytes, &got);
	}
	if (result <= 0)
		return result;
	memset(buffer->bytes + got, 0, SPOOL_PADDING);
	*ret = (struct spool_cursor){buffer->bytes, buffer->bytes + got};
	return 0;
}

int spool_file_read(struct spool_file *file, size_t chunk, struct spool_cursor *ret)
{
	return spool_file_read_into(file, &file->buffer, chunk, 0, file->chunks[chunk].committed,
				    ret);
}

int spool_file_read_part(struct spool_file *file, size_t chunk, size_t from, size_t size,
			 struct spool_cursor *ret)
{
	return spool_file_read_into(file, &file->buffer, chunk, from, size, ret);
}

uint64_t spool_unsigned_slowly(struct spool_payload *payload)
{
	uint64_t value = 0;

	if (!leb128_get(&payload->at, payload->end, &value)) {
		payload->bad = true;
		payload->at = payload->end;
		return 0;
	}
	return value;
}
