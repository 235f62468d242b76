/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Files of the NCCL plugin; see reader.h. Chunks have one size and stand at fixed places, so
 * that a damaged one costs itself only.
 */
#include "analysis/nccl/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/arena.h"
#include "analysis/record_file.h"
#include "common/foreign_file.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are read as the file has them");

#define CHUNK_GENERATION_MASK 0xfffffu

static void zero_last_byte_of_text(char *text, size_t size)
{
	text[size - 1] = '\0';
}

static int read_file_header(struct nccl_file *file, struct problem *problem)
{
	struct nccl_file_header *header = &file->header;
	ssize_t got = record_file_read_at_offset(file->descriptor, header, sizeof(*header), 0);

	if (got < 0)
		return problem_set(problem, (int)got, "cannot read %s: %s", file->path,
				   strerror((int)-got));
	if (got < (ssize_t)sizeof(header->magic) + 4 ||
	    memcmp(header->magic, NCCL_FILE_MAGIC, sizeof(header->magic)) != 0)
		return problem_set(problem, -ENODATA, "%s: not a file of kymo's NCCL plugin%s",
				   file->path, file->size ? "" : " (it is empty)");
	if (header->version_major != NCCL_FILE_VERSION_MAJOR)
		return problem_set(problem, -EPROTO,
				   "%s: NCCL record format %u.%u; this version of kymo reads %d.x; "
				   "use the version that recorded it",
				   file->path, header->version_major, header->version_minor,
				   NCCL_FILE_VERSION_MAJOR);
	if (got < (ssize_t)sizeof(*header) || header->header_size != NCCL_HEADER_SIZE)
		return problem_set(problem, -ENODATA, "%s: cut off within its header (%zd bytes)",
				   file->path, got);
	zero_last_byte_of_text(header->host, sizeof(header->host));
	zero_last_byte_of_text(header->boot_id, sizeof(header->boot_id));
	zero_last_byte_of_text(header->program, sizeof(header->program));
	zero_last_byte_of_text(header->job, sizeof(header->job));
	zero_last_byte_of_text(header->problem, sizeof(header->problem));
	return 0;
}

/* Names that are cut off are empty. */
static int read_name_table(struct nccl_file *file, struct problem *problem)
{
	ssize_t got;

	file->names = calloc(NCCL_NAMES, NCCL_NAME_SIZE);
	if (!file->names)
		return problem_set(problem, -ENOMEM, "out of memory");
	got = record_file_read_at_offset(file->descriptor, file->names,
					 (size_t)NCCL_NAMES * NCCL_NAME_SIZE, NCCL_HEADER_SIZE);
	if (got < 0)
		return problem_set(problem, (int)got, "cannot read %s: %s", file->path,
				   strerror((int)-got));
	for (unsigned i = 0; i < NCCL_NAMES; i++)
		zero_last_byte_of_text(file->names[i], NCCL_NAME_SIZE);
	return 0;
}

/* ---- chunks ---- */

static size_t get_record_size(uint32_t kind)
{
	switch (kind) {
	case NCCL_CHUNK_COMMUNICATORS:
		return sizeof(struct nccl_communicator_record);
	case NCCL_CHUNK_OPERATIONS:
		return sizeof(struct nccl_operation);
	case NCCL_CHUNK_EVENTS:
		return sizeof(struct nccl_event);
	case NCCL_CHUNK_TOTALS:
		return sizeof(struct nccl_total);
	default:
		return 0;
	}
}

static bool chunk_is_unused(const struct nccl_chunk_header *header)
{
	return !header->magic || (header->magic == NCCL_CHUNK_MAGIC && !header->kind);
}

static int add_chunk_to_index(struct nccl_file *file, const struct nccl_chunk_header *header,
			      uint64_t offset)
{
	if (chunk_is_unused(header))
		return 0;
	/* A minor version may add kinds, but not change the size of records. */
	if (header->magic != NCCL_CHUNK_MAGIC || !get_record_size(header->kind) ||
	    header->record_size != get_record_size(header->kind)) {
		file->torn_chunk_count++;
		return 0;
	}
	if (array_reserve_one_more((void **)&file->chunks, &file->chunk_capacity, file->chunk_count,
				   sizeof(*file->chunks)) < 0)
		return -ENOMEM;
	file->chunks[file->chunk_count++] = (struct nccl_chunk_location){
		offset, header->sequence, header->kind, header->generation, header->communicator};
	return 0;
}

static int compare_chunks_by_sequence(const void *left, const void *right)
{
	const struct nccl_chunk_location *a = left, *b = right;

	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Chunks may lie behind the file's end as the header has it, where it was damaged or is older than
 * the chunks: it is a hint only. */
static int build_chunk_index(struct nccl_file *file, struct problem *problem)
{
	int result = 0;

	if (file->header.file_size > file->size)
		file->missing_bytes = file->header.file_size - file->size;
	for (uint64_t offset = NCCL_CHUNKS_OFFSET; result == 0 && offset < file->size;
	     offset += NCCL_CHUNK_SIZE) {
		struct nccl_chunk_header header = {0};
		ssize_t got = record_file_read_at_offset(file->descriptor, &header, sizeof(header),
							 offset);

		if (got < 0)
			return problem_set(problem, (int)got, "cannot read %s: %s", file->path,
					   strerror((int)-got));
		if (got == (ssize_t)sizeof(header))
			result = add_chunk_to_index(file, &header, offset);
	}
	if (result < 0)
		return problem_set(problem, result, "out of memory");
	if (file->chunk_count > 1)
		qsort(file->chunks, file->chunk_count, sizeof(*file->chunks),
		      compare_chunks_by_sequence);
	return 0;
}

int nccl_file_open(const char *path, struct nccl_file *ret, struct problem *problem)
{
	struct nccl_file file = {.descriptor = -1};
	int result = record_file_open_and_get_size(path, &file.descriptor, &file.size, problem);

	if (result == 0) {
		file.path = strdup(path);
		if (!file.path)
			result = problem_set(problem, -ENOMEM, "out of memory");
	}
	if (result == 0)
		result = read_file_header(&file, problem);
	if (result == 0)
		result = read_name_table(&file, problem);
	if (result == 0)
		result = build_chunk_index(&file, problem);
	if (result < 0)
		nccl_file_close(&file);
	else
		*ret = file;
	return result;
}

void nccl_file_close_temporarily(struct nccl_file *file)
{
	if (file->descriptor >= 0)
		close(file->descriptor);
	file->descriptor = -1;
	free(file->buffer);
	file->buffer = NULL;
}

int nccl_file_reopen(struct nccl_file *file, struct problem *problem)
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

void nccl_file_close(struct nccl_file *file)
{
	nccl_file_close_temporarily(file);
	free(file->path);
	free(file->names);
	free(file->chunks);
	*file = (struct nccl_file){.descriptor = -1};
}

/* ---- records ---- */

/* Records that the chunk had before it was used again have another generation: they are no loss
 * of this reader, the plugin has counted them. */
static bool record_is_of_chunk_generation(struct nccl_file *file,
					  const struct nccl_chunk_location *chunk,
					  const uint8_t *record, uint64_t offset)
{
	uint64_t id;

	memcpy(&id, record, sizeof(id));
	if (!id)
		return false;
	if (id >> 60 != NCCL_ID_MAGIC || NCCL_ID_OFFSET(id) != offset) {
		file->torn_record_count++;
		return false;
	}
	return (id >> 28 & CHUNK_GENERATION_MASK) == (chunk->generation & CHUNK_GENERATION_MASK);
}

int nccl_chunk_visit_records(struct nccl_file *file, const struct nccl_chunk_location *chunk,
			     int (*each)(const void *record, void *context), void *context)
{
	size_t size = get_record_size(chunk->kind), end;
	struct nccl_chunk_header now;
	ssize_t got;
	int result = 0;

	if (!file->buffer)
		file->buffer = malloc(NCCL_CHUNK_SIZE);
	if (!file->buffer)
		return -ENOMEM;
	got = record_file_read_at_offset(file->descriptor, file->buffer, NCCL_CHUNK_SIZE,
					 chunk->offset);
	if (got < (ssize_t)sizeof(now))
		return got < 0 ? (int)got : 0;
	memcpy(&now, file->buffer, sizeof(now));
	if (now.sequence != chunk->sequence || now.kind != chunk->kind)
		return 0; /* used again since */
	end = (size_t)got;
	for (size_t at = NCCL_CHUNK_HEADER_SIZE; result == 0 && at + size <= end; at += size) {
		if (!record_is_of_chunk_generation(file, chunk, file->buffer + at,
						   chunk->offset + at))
			continue;
		if (chunk->kind == NCCL_CHUNK_OPERATIONS)
			nccl_operation_join((struct nccl_operation *)(void *)(file->buffer + at));
		result = each(file->buffer + at, context);
	}
	return result;
}

int nccl_file_visit_records_of_kind(struct nccl_file *file, enum nccl_chunk_kind kind,
				    int (*each)(const void *record, void *context), void *context)
{
	int result = 0;

	for (size_t i = 0; result == 0 && i < file->chunk_count; i++) {
		if (file->chunks[i].kind == kind)
			result = nccl_chunk_visit_records(file, &file->chunks[i], each, context);
	}
	return result;
}

const char *nccl_file_get_interned_name(const struct nccl_file *file, uint8_t name)
{
	return file->names[name];
}
