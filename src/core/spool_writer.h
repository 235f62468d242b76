/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The spool file of this process: segments of the file, mapped shared and touched in advance, cut
 * into chunks that writers take and give back without locks.
 *
 * Life of a chunk: a background thread grows the file by a segment, reserves and touches its
 * blocks, and pushes its chunks on the ready stack of their size. A writer pops one, fills it, and
 * retires it; a thread that ends with room left pushes it on the partial stack for the next thread.
 * Where large chunks are wanted again, full ones are moved: written to a place further back in the
 * file, cleared, and made ready, for a page that is written costs a fifth of one that is mapped and
 * touched. When all chunks of a segment are retired for good the background thread unmaps it (or,
 * in ring mode, makes them ready again): memory stays bounded however long the run is.
 *
 * Signal-safety: spool_chunk_* may be called anywhere. spool_open, spool_refill, spool_close:
 * background thread only.
 */
#ifndef KYMO_CORE_SPOOL_WRITER_H
#define KYMO_CORE_SPOOL_WRITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/leb128.h"
#include "core/options.h"
#include "kymo/spool.h"

#define SPOOL_CHUNK_SMALL   8192u
#define SPOOL_CHUNK_LARGE   65536u
#define SPOOL_PARTIAL_WORTH 1024u /* less room than this is not worth handing to another thread */

enum spool_chunk_class { SPOOL_SMALL, SPOOL_LARGE, SPOOL_CLASSES };

struct spool_chunk {
	struct spool_chunk_header *header;
	uint32_t size;
	uint32_t segment;
	_Atomic uint32_t next; /* index + 1 in a stack; 0 ends it */
};

/* Lock-free LIFO (Treiber); the upper half of head counts pops, against ABA. */
struct spool_stack {
	_Atomic uint64_t head;
	_Atomic uint32_t count;
};

struct spool_segment {
	uint8_t *address;
	uint32_t size, chunks, retired;
};

struct spool_writer {
	struct spool_file_header *header;
	struct spool_chunk *chunks; /* reserved address space, filled as the file grows */
	struct spool_segment *segments;
	struct spool_stack ready[SPOOL_CLASSES], partial, retired;
	_Atomic uint64_t next_sequence;
	_Atomic uint32_t wanted; /* bit per class: a writer found it nearly empty */
	_Atomic uint32_t
		disk_error; /* errno of the last failed growth; 0 when space was found again */
	uint32_t chunk_count, segment_count;
	_Atomic uint32_t low_water[SPOOL_CLASSES];
	uint64_t file_size;
	uint64_t move_at, move_end; /* blocks that are reserved for chunks that move */
	uint64_t limit;
	uint32_t *ring_order, ring_head, ring_tail; /* retired chunks, oldest first (ring mode) */
	bool ring;
	_Atomic uint32_t refill_lock; /* one allocator at a time; never waited for */
	int fd;                       /* in the background thread's descriptor table */
	char path[OPTIONS_PATH_SIZE + 64];
	bool kept; /* spool_let_go() */
};

/* Creates `directory`/<pid>-<n>.spool and maps its header. 0 or negative errno. */
int spool_open(struct spool_writer *spool, const struct options *options);
/* Keeps the ready stacks filled and takes back what was retired; `fd` is the spool file in the
 * calling thread's descriptor table. Returns true when it did anything. Own threads only. */
bool spool_refill(struct spool_writer *spool, int fd);
/* Opens the same file in the calling thread's descriptor table. Descriptor or negative errno. */
int spool_reopen(const struct spool_writer *spool);
/* In a forked child: lets go of the parent's mappings; the struct may be opened again. */
void spool_abandon(struct spool_writer *spool);

/* The process goes on without the file: its mappings become anonymous memory at the same addresses,
 * which takes late writes and keeps nothing. Until spool_abandon(), or for good: where a thread may
 * be in the midst of writing, nobody can tell when it will be given a processor again. */
void spool_let_go(struct spool_writer *spool, bool kept);

/* Takes a chunk of the class (any other class rather than none); NULL when none is ready. */
struct spool_chunk *spool_chunk_take(struct spool_writer *spool,
				     enum spool_chunk_class chunk_class);
/* A chunk with room for at least SPOOL_PARTIAL_WORTH left by a thread that ended; NULL when there
 * is none. */
struct spool_chunk *spool_chunk_take_partial(struct spool_writer *spool);
void spool_chunk_retire(struct spool_writer *spool, struct spool_chunk *chunk);
/* For a writer that ends: partial if worth it, else retired. */
void spool_chunk_give_back(struct spool_writer *spool, struct spool_chunk *chunk);
/* What is in this chunk must stay: a ring does not use it again. */
void spool_chunk_keep(struct spool_chunk *chunk);
void spool_count_loss(struct spool_writer *spool, enum spool_loss loss);
/* Something is dropped because no chunk could be had: counted by the reason for that. */
void spool_count_no_chunk(struct spool_writer *spool);

static inline uint8_t *spool_chunk_data(const struct spool_chunk *chunk)
{
	return (uint8_t *)(chunk->header + 1);
}

static inline uint32_t spool_chunk_capacity(const struct spool_chunk *chunk)
{
	return chunk->size - SPOOL_CHUNK_HEADER_SIZE;
}

#endif
