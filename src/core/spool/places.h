/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where chunks stand in the spool file: places at its end while it may grow; in ring mode, at its
 * limit, the places whose contents are the oldest. Each class of chunks has a queue of its own,
 * since a large chunk fits in no small place.
 *
 * For who holds the refill lock. `file`: the spool file in the calling thread's descriptor table.
 */
#ifndef KYMO_CORE_SPOOL_PLACES_H
#define KYMO_CORE_SPOOL_PLACES_H

#include "core/spool/writer.h"

#define SPOOL_LIMIT_ERRNO                                                                          \
	E2BIG /* stands for our own limit among errnos that the file system gives */
#define SPOOL_OLD_PLACES_MAX (1u << 20) /* of a class; a power of two */

/* spool_chunk_header.state */
#define CHUNK_STATE_FULL           2
#define CHUNK_STATE_IN_USE         1
#define CHUNK_STATE_KEPT_FROM_RING 3

extern const uint32_t spool_chunk_sizes[SPOOL_CHUNK_CLASS_COUNT];
/* By how much the file grows for a class, in one turn. */
extern const uint32_t spool_segment_sizes[SPOOL_CHUNK_CLASS_COUNT];

static inline enum spool_chunk_class spool_chunk_get_class(const struct spool_chunk *chunk)
{
	return chunk->size == SPOOL_CHUNK_LARGE_SIZE ? SPOOL_CHUNK_CLASS_LARGE
						     : SPOOL_CHUNK_CLASS_SMALL;
}

/* One allocator or writer of the file at a time. */
bool spool_try_refill_lock(struct spool_writer *spool);
/* 0 or negative errno. File systems without fallocate get zeros written. */
int spool_places_reserve_blocks(int file, uint64_t offset, uint64_t size);
/* Within our own limit. */
bool spool_places_have_room(const struct spool_writer *spool, uint64_t size);
/* Room at the end of the file, from the old file_size on. 0, -SPOOL_LIMIT_ERRNO or negative errno.
 */
int spool_places_extend_file(struct spool_writer *spool, int file, uint64_t size);
/* Whether the ring has a place to give. */
bool spool_places_have_old(const struct spool_writer *spool, enum spool_chunk_class chunk_class);
/* The offset of it; what stood there is given up and counted. */
uint64_t spool_places_take_oldest(struct spool_writer *spool, int file,
				  enum spool_chunk_class chunk_class);
/* What stands in a full chunk's place may be given up, or has to stay. */
void spool_places_note_full_chunk(struct spool_writer *spool, const struct spool_chunk *chunk);
/* New chunks stand behind what was reserved: it is left, so that what is written later stands
 * further back, as readers of a growing file go. The ring uses it in its turn. */
void spool_places_give_up_reserved(struct spool_writer *spool, enum spool_chunk_class chunk_class);
/* A place of either kind for one chunk; false: there is none. */
bool spool_places_find_for_reused_chunk(struct spool_writer *spool, int file,
					enum spool_chunk_class chunk_class, uint64_t *ret_offset);

#endif
