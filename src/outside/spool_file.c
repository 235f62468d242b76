/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See spool_file.h.
 */
#include "outside/spool_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/leb128.h"

#define CHUNK_BYTES    8192u
#define CHUNK_IN_USE   1u
#define CHUNK_FULL     2u
#define TEXT_BYTES_MAX 4000u
#define IMAGES_MAX     100000u

int outside_spool_create(struct outside_spool *spool, const char *directory)
{
	char path[PATH_MAX];

	spool->file = -1;
	for (uint32_t image = 0; spool->file < 0 && image < IMAGES_MAX; image++) {
		if (snprintf(path, sizeof(path), "%s/%u-%u.spool", directory, spool->header.pid,
			     image) >= (int)sizeof(path))
			return -ENAMETOOLONG;
		spool->file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (spool->file < 0 && errno != EEXIST)
			return -errno;
		spool->header.image = image;
	}
	memcpy(spool->header.magic, SPOOL_MAGIC, sizeof(spool->header.magic));
	spool->header.version_major = SPOOL_VERSION_MAJOR;
	spool->header.version_minor = SPOOL_VERSION_MINOR;
	spool->header.header_size = SPOOL_ALIGNMENT;
	spool->header.file_size = SPOOL_ALIGNMENT;
	spool->header.state = SPOOL_STATE_OPEN;
	spool->header.exit_status = -1;
	spool->header.collecting = 1;
	return 0;
}

static bool write_at(struct outside_spool *spool, const void *bytes, size_t size, uint64_t offset)
{
	if (spool->file >= 0 && pwrite(spool->file, bytes, size, (off_t)offset) == (ssize_t)size)
		return true;
	spool->header.losses[SPOOL_LOSS_DISK_FULL]++;
	return false;
}

/* Header and records in one go: who reads meanwhile stops at what is committed, and a record that
 * is not whole is dropped. */
static void write_chunk(struct outside_spool *spool, struct outside_chunk *chunk)
{
	struct spool_chunk_header header;

	if (chunk->written == chunk->used)
		return;
	memcpy(&header, chunk->bytes, sizeof(header));
	header.committed = chunk->used - SPOOL_CHUNK_HEADER_SIZE;
	memcpy(chunk->bytes, &header, sizeof(header));
	if (write_at(spool, chunk->bytes, chunk->used, chunk->offset))
		chunk->written = chunk->used;
}

struct outside_chunk *outside_chunk_open(struct outside_spool *spool, uint32_t room)
{
	uint32_t size = CHUNK_BYTES;
	struct outside_chunk *chunk;
	struct spool_chunk_header header;

	while (size < room + SPOOL_CHUNK_HEADER_SIZE)
		size *= 2;
	chunk = calloc(1, sizeof(*chunk) + size);
	if (!chunk || spool->file < 0 ||
	    ftruncate(spool->file, (off_t)(spool->header.file_size + size))) {
		free(chunk);
		spool->header.losses[SPOOL_LOSS_DISK_FULL]++;
		return NULL;
	}
	header = (struct spool_chunk_header){.magic = SPOOL_CHUNK_MAGIC,
					     .size = size,
					     .state = CHUNK_IN_USE,
					     .sequence = ++spool->last_sequence};
	memcpy(chunk->bytes, &header, sizeof(header));
	chunk->size = size;
	chunk->used = SPOOL_CHUNK_HEADER_SIZE;
	chunk->offset = spool->header.file_size;
	spool->header.file_size += size;
	chunk->next = spool->open_chunks;
	spool->open_chunks = chunk;
	return chunk;
}

void outside_chunk_close(struct outside_spool *spool, struct outside_chunk *chunk)
{
	struct outside_chunk **link = &spool->open_chunks;

	while (*link && *link != chunk)
		link = &(*link)->next;
	if (*link)
		*link = chunk->next;
	((struct spool_chunk_header *)(void *)chunk->bytes)->state = CHUNK_FULL;
	chunk->written = 0;
	write_chunk(spool, chunk);
	free(chunk);
}

void outside_spool_flush(struct outside_spool *spool)
{
	for (struct outside_chunk *chunk = spool->open_chunks; chunk; chunk = chunk->next)
		write_chunk(spool, chunk);
	write_at(spool, &spool->header, sizeof(spool->header), 0);
}

void outside_spool_close(struct outside_spool *spool, enum spool_state state, uint64_t end_ns)
{
	spool->header.state = state;
	spool->header.end_ticks = end_ns;
	while (spool->open_chunks)
		outside_chunk_close(spool, spool->open_chunks);
	spool->records = NULL;
	outside_spool_flush(spool);
	if (spool->file >= 0)
		close(spool->file);
	spool->file = -1;
}

/* ---- records of the process ---- */

static size_t get_scratch_room(const struct outside_spool *spool)
{
	return sizeof(spool->scratch) - (size_t)(spool->at - spool->scratch);
}

void outside_record_begin(struct outside_spool *spool)
{
	spool->at = spool->scratch;
}

void outside_record_unsigned(struct outside_spool *spool, uint64_t value)
{
	if (get_scratch_room(spool) >= LEB128_BYTES_MAX)
		spool->at = leb128_write(spool->at, value);
}

void outside_record_fixed64(struct outside_spool *spool, uint64_t value)
{
	if (get_scratch_room(spool) >= 8)
		spool->at = write_fixed64_little_endian(spool->at, value);
}

void outside_record_bytes(struct outside_spool *spool, const void *bytes, size_t size)
{
	if (size > TEXT_BYTES_MAX)
		size = TEXT_BYTES_MAX;
	if (get_scratch_room(spool) < size + LEB128_BYTES_MAX)
		return;
	spool->at = leb128_write(spool->at, size);
	if (size)
		memcpy(spool->at, bytes, size);
	spool->at += size;
}

void outside_record_text(struct outside_spool *spool, const char *text)
{
	outside_record_bytes(spool, text, strlen(text));
}

void outside_record_end(struct outside_spool *spool, enum spool_record kind)
{
	uint32_t size = (uint32_t)(spool->at - spool->scratch);
	struct outside_chunk *chunk = spool->records;
	uint8_t *at;

	if (outside_chunk_room(chunk) < size + 1 + LEB128_BYTES_MAX) {
		if (chunk)
			outside_chunk_close(spool, chunk);
		chunk = spool->records = outside_chunk_open(spool, size + 1 + LEB128_BYTES_MAX);
		if (!chunk)
			return;
	}
	at = chunk->bytes + chunk->used;
	*at++ = (uint8_t)kind;
	at = leb128_write(at, size);
	memcpy(at, spool->scratch, size);
	chunk->used = (uint32_t)(at + size - chunk->bytes);
}
