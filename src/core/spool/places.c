/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See places.h. Blocks of the file are reserved with fallocate before a chunk is handed out, so
 * that a full disk shows as an error here (counted drops) and not when the chunk is full.
 */
#include "core/spool/places.h"

#include <errno.h>

#include "common/syscalls.h"

const uint32_t spool_chunk_sizes[SPOOL_CHUNK_CLASS_COUNT] = {
	[SPOOL_CHUNK_CLASS_SMALL] = SPOOL_CHUNK_SMALL_SIZE,
	[SPOOL_CHUNK_CLASS_LARGE] = SPOOL_CHUNK_LARGE_SIZE,
};
const uint32_t spool_segment_sizes[SPOOL_CHUNK_CLASS_COUNT] = {
	[SPOOL_CHUNK_CLASS_SMALL] = 32 * SPOOL_CHUNK_SMALL_SIZE,
	[SPOOL_CHUNK_CLASS_LARGE] = 16 * SPOOL_CHUNK_LARGE_SIZE,
};

int spool_places_reserve_blocks(int fd, uint64_t offset, uint64_t size)
{
	static const uint8_t zeros[4096];
	long result;

	if (!sys_is_file_size_allowed(offset + size))
		return -EFBIG;
	result = sys_call4(SYS_fallocate, fd, 0, (long)offset, (long)size);
	if (result != -EOPNOTSUPP && result != -ENOSYS)
		return (int)result;
	for (uint64_t done = 0; done < size; done += sizeof(zeros)) {
		result = sys_pwrite(fd, zeros, sizeof(zeros), offset + done);
		if (result != (long)sizeof(zeros))
			return result < 0 ? (int)result : -ENOSPC;
	}
	return 0;
}

bool spool_places_have_room(const struct spool_writer *spool, uint64_t size)
{
	return !spool->limit || spool->file_size + size <= spool->limit;
}

int spool_places_extend_file(struct spool_writer *spool, int file, uint64_t size)
{
	int error;

	if (!spool_places_have_room(spool, size))
		return -SPOOL_LIMIT_ERRNO;
	error = spool_places_reserve_blocks(file, spool->file_size, size);
	if (error)
		return error;
	spool->file_size += size;
	spool->header->file_size = spool->file_size;
	return 0;
}

/* ---- the ring: places in the file whose contents are given up for what is newer ---- */

static uint32_t count_old_places(const struct spool_place_queue *queue)
{
	return queue->head - queue->tail;
}

/* What finds no room stays in the file for good. */
static void put_newest(struct spool_place_queue *queue, uint64_t offset)
{
	if (count_old_places(queue) < SPOOL_OLD_PLACES_MAX)
		queue->offsets[queue->head++ % SPOOL_OLD_PLACES_MAX] = offset;
}

/* Readers see that the contents are given up before any of it changes. */
static void erase_place_in_file(int file, uint64_t offset, uint32_t size)
{
	struct spool_chunk_header empty = {.magic = SPOOL_CHUNK_MAGIC, .size = size};

	sys_pwrite(file, &empty, sizeof(empty), offset);
}

/* Its contents are given up and counted. */
static uint64_t take_place_from_queue(struct spool_writer *spool, int file,
				      enum spool_chunk_class chunk_class)
{
	struct spool_place_queue *queue = &spool->reusable_places[chunk_class];
	uint64_t offset = queue->offsets[queue->tail++ % SPOOL_OLD_PLACES_MAX];
	struct spool_chunk_header header = {.sequence = 1};

	sys_pread(file, &header, sizeof(header), offset);
	if (header.sequence) { /* else it is the free part of a large one */
		spool->header->overwritten_bytes += header.committed;
		spool_count_loss(spool, SPOOL_LOSS_RING_OVERWRITE);
	}
	erase_place_in_file(file, offset, spool_chunk_sizes[chunk_class]);
	return offset;
}

/* A small one may be a part of a large one; the other parts are the next. */
bool spool_places_have_old(const struct spool_writer *spool, enum spool_chunk_class chunk_class)
{
	return count_old_places(&spool->reusable_places[chunk_class]) ||
	       (chunk_class == SPOOL_CHUNK_CLASS_SMALL &&
		count_old_places(&spool->reusable_places[SPOOL_CHUNK_CLASS_LARGE]));
}

uint64_t spool_places_take_oldest(struct spool_writer *spool, int file,
				  enum spool_chunk_class chunk_class)
{
	uint64_t offset;

	if (count_old_places(&spool->reusable_places[chunk_class]))
		return take_place_from_queue(spool, file, chunk_class);
	offset = take_place_from_queue(spool, file, SPOOL_CHUNK_CLASS_LARGE);
	/* From behind: a reader that walks from chunk to chunk meanwhile sees a large one, or all
	 * of the small ones. */
	for (uint32_t at = SPOOL_CHUNK_LARGE_SIZE; at;) {
		at -= SPOOL_CHUNK_SMALL_SIZE;
		erase_place_in_file(file, offset + at, SPOOL_CHUNK_SMALL_SIZE);
		if (at)
			put_newest(&spool->reusable_places[chunk_class], offset + at);
	}
	return offset;
}

void spool_places_note_full_chunk(struct spool_writer *spool, const struct spool_chunk *chunk)
{
	if (!spool->ring)
		return;
	if (chunk->header->state == CHUNK_STATE_KEPT_FROM_RING)
		spool->ring_kept_bytes += chunk->size;
	else
		put_newest(&spool->reusable_places[spool_chunk_get_class(chunk)], chunk->offset);
}

void spool_places_give_up_reserved(struct spool_writer *spool, enum spool_chunk_class chunk_class)
{
	struct spool_reserved_room *room = &spool->reserved[chunk_class];

	for (; spool->ring && room->begin < room->end;
	     room->begin += spool_chunk_sizes[chunk_class])
		put_newest(&spool->reusable_places[chunk_class], room->begin);
	room->begin = room->end;
}

/* Large ones at a multiple of their size, for the page cache's sake. */
bool spool_places_find_for_reused_chunk(struct spool_writer *spool, int file,
					enum spool_chunk_class chunk_class, uint64_t *ret_offset)
{
	struct spool_reserved_room *room = &spool->reserved[chunk_class];
	uint64_t gap = -spool->file_size % spool_chunk_sizes[chunk_class];

	if (room->end == room->begin) {
		uint32_t size = spool_segment_sizes[chunk_class];

		if (!spool_places_have_room(spool, gap + size) &&
		    spool_places_have_old(spool, chunk_class)) {
			*ret_offset = spool_places_take_oldest(spool, file, chunk_class);
			return true;
		}
		if (spool_places_extend_file(spool, file, gap + size))
			return false;
		room->end = spool->file_size;
		room->begin = room->end - size;
	}
	*ret_offset = room->begin;
	room->begin += spool_chunk_sizes[chunk_class];
	return true;
}
