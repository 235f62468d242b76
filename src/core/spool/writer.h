/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The spool file of this process: segments of memory, touched in advance, cut into chunks that
 * writers take and give back without locks, and written to the file by the helper (write_out.c).
 * The file itself is not mapped: whoever shortens it, or a disk that fails, would end the program
 * by SIGBUS.
 *
 * Life of a chunk: a background thread reserves blocks of the file for a segment, and pushes its
 * chunks on the ready stack of their size, each with its place in the file. A writer pops one,
 * fills it, and retires it; a thread that ends with room left pushes it on the partial stack for
 * the next thread. What is in a chunk is written to its place in every round. Where large chunks
 * are wanted again, full ones are given another place further back in the file, cleared, and made
 * ready. When all chunks of a segment are retired for good the background thread unmaps it: memory
 * stays bounded however long the run is. So does the file: at its limit, in ring mode, chunks get
 * the places whose contents are the oldest.
 *
 * Signal-safety: spool_chunk_* may be called anywhere. spool_open, spool_refill_ready_chunks,
 * spool_write_new_records: the helper's threads only.
 */
#ifndef KYMO_CORE_SPOOL_WRITER_H
#define KYMO_CORE_SPOOL_WRITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/leb128.h"
#include "core/base/options.h"
#include "kymo/spool.h"

#define SPOOL_CHUNK_SMALL_SIZE 8192u
#define SPOOL_CHUNK_LARGE_SIZE 65536u
#define SPOOL_PARTIAL_CHUNK_ROOM_LEAST                                                             \
	1024u /* less room than this is not worth handing to another thread */

enum spool_chunk_class {
	SPOOL_CHUNK_CLASS_SMALL,
	SPOOL_CHUNK_CLASS_LARGE,
	SPOOL_CHUNK_CLASS_COUNT
};

struct spool_chunk {
	struct spool_chunk_header *header;
	uint32_t size;
	uint32_t segment_index;
	_Atomic uint32_t next; /* index + 1 in a stack; 0 ends it */
	uint64_t offset;       /* its place in the file */
	uint32_t written; /* bytes after the header that are in the file; SPOOL_CHUNK_WRITTEN_WHOLE
			   */
	bool in_place;    /* what is committed changes still */
};

#define SPOOL_CHUNK_WRITTEN_WHOLE UINT32_MAX /* all is in the file, and its memory may be gone */

/* Lock-free LIFO (Treiber); the upper half of head counts pops, against ABA. */
struct spool_chunk_stack {
	_Atomic uint64_t head;
	_Atomic uint32_t count;
};

struct spool_segment {
	uint8_t *address;
	uint32_t size, first_chunk_index, chunk_count, retired_chunk_count;
	uint32_t next_unmapped; /* index + 1 in the list of them; 0 ends it */
};

struct spool_reserved_room {
	uint64_t begin, end; /* in the file */
};

/* Places in the file whose contents may be given up, the oldest first. */
struct spool_place_queue {
	uint64_t *offsets;
	uint32_t head, tail; /* of all that were ever put in and taken out */
};

/* The threads that make chunks; set before spool_open(), kept by spool_unmap_old_run(). */
struct spool_chunk_maker_wakeup {
	void (*wake)(void *context); /* signal-safe */
	void *context;
};

struct spool_writer {
	struct spool_chunk_maker_wakeup chunk_maker_wakeup;
	struct spool_file_header *header; /* in memory */
	/* The file's first page, which nobody may touch: by it others find out that this process
	 * is being profiled, and the file (/proc/PID/maps). */
	void *profiled_process_mark_page;
	struct spool_tables *tables; /* holds chunks, segments and places */
	struct spool_chunk *chunks;  /* filled as the file grows */
	struct spool_segment *segments;
	struct spool_chunk_stack ready_chunks[SPOOL_CHUNK_CLASS_COUNT], partial_chunks,
		retired_chunks;
	_Atomic uint64_t last_chunk_sequence;
	_Atomic uint32_t wanted; /* bit per class: a writer found it nearly empty */
	_Atomic uint32_t
		growth_errno; /* errno of the last failed growth; 0 when space was found again */
	uint32_t chunk_count, segment_count;
	uint32_t first_mapped_segment_index; /* all before it are unmapped */
	uint32_t unmapped_segments;          /* list */
	uint64_t next_in_place_rewrite_ns; /* when chunks that change in place are written again */
	bool was_file_shortened, mended;   /* somebody cut the file short; notice given */
	_Atomic uint32_t ready_chunks_low_water[SPOOL_CHUNK_CLASS_COUNT];
	uint64_t file_size;
	/* Blocks for chunks whose memory is used again. */
	struct spool_reserved_room reserved[SPOOL_CHUNK_CLASS_COUNT];
	uint64_t limit;
	bool ring;
	uint64_t ring_kept_bytes; /* of chunks that the ring does not use again */
	struct spool_place_queue reusable_places[SPOOL_CHUNK_CLASS_COUNT];
	_Atomic uint32_t refill_lock; /* tid of who makes chunks or writes; 0: nobody */
	int fd;                       /* in the background thread's descriptor table */
	char path[OPTIONS_PATH_SIZE + 64];
	bool kept; /* spool_detach_from_file() */
};

/* Without a file: it counts and takes nothing. What modules use until they are given another. */
extern struct spool_writer spool_writer_without_file;

/* Creates `directory`/<pid>-<n>.spool for the process. 0 or negative errno. */
int spool_open(struct spool_writer *spool, const struct options *options, uint32_t pid);
/* Keeps the ready stacks filled and takes back what was retired; `fd` is the spool file in the
 * calling thread's descriptor table. Returns true when it did anything. Own threads only. */
bool spool_refill_ready_chunks(struct spool_writer *spool, int fd);
/* Writes what was committed since the last time; with `all`, also what changes in place. */
void spool_write_new_records(struct spool_writer *spool, int fd, bool all);
/* The same with `all` when the program has ended, whatever its threads were in the midst of. */
void spool_write_after_program_end(struct spool_writer *spool, int fd);
/* A full chunk gets its last bytes. The refill lock is held. */
bool spool_write_chunk(struct spool_writer *spool, int fd, struct spool_chunk *chunk, bool whole);
/* What was asked from outside (kymo ctl): the request's number; *ret_command stays if none. */
uint32_t spool_read_control_request(const struct spool_writer *spool, uint32_t *ret_command);
/* Opens the same file in the calling thread's descriptor table. Descriptor or negative errno. */
int spool_reopen_file(const struct spool_writer *spool);
/* In a forked child: lets go of the parent's mappings; the struct may be opened again. */
void spool_unmap_old_run(struct spool_writer *spool);

/* The process goes on without the file: its memory takes late writes and keeps nothing. Until
 * spool_unmap_old_run(), or for good: where a thread may be in the midst of writing, nobody can
 * tell when it will be given a processor again. */
void spool_detach_from_file(struct spool_writer *spool, bool kept);

/* Takes a chunk of the class (any other class rather than none); NULL when none is ready. */
struct spool_chunk *spool_chunk_take(struct spool_writer *spool,
				     enum spool_chunk_class chunk_class);
/* A chunk with room for at least SPOOL_PARTIAL_CHUNK_ROOM_LEAST left by a thread that ended; NULL
 * when there is none. */
struct spool_chunk *spool_chunk_take_partial(struct spool_writer *spool);
void spool_chunk_retire(struct spool_writer *spool, struct spool_chunk *chunk);
/* For a writer that ends: partial if worth it, else retired. */
void spool_chunk_pass_on_or_retire(struct spool_writer *spool, struct spool_chunk *chunk);
/* What is in this chunk must stay: a ring does not use it again. */
void spool_chunk_exclude_from_ring(struct spool_chunk *chunk);
/* The same while such chunks take less than a quarter of the limit: the first of them count most.
 */
void spool_chunk_exclude_from_ring_within_limit(const struct spool_writer *spool,
						struct spool_chunk *chunk);
/* What is committed in this chunk goes on to change. */
void spool_chunk_set_changes_in_place(struct spool_chunk *chunk);
/* Chunks run low: the threads that make them are woken. Signal-safe. */
void spool_wake_chunk_makers(const struct spool_writer *spool);
void spool_count_loss(struct spool_writer *spool, enum spool_loss loss);
/* Something is dropped because no chunk could be had: counted by the reason for that. */
void spool_count_missing_chunk_loss(struct spool_writer *spool);

static inline uint8_t *spool_chunk_get_data(const struct spool_chunk *chunk)
{
	return (uint8_t *)(chunk->header + 1);
}

static inline uint32_t spool_chunk_get_capacity(const struct spool_chunk *chunk)
{
	return chunk->size - SPOOL_CHUNK_HEADER_SIZE;
}

#endif
