/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The spool file of one process that is sampled from outside: the format of kymo/spool.h, written
 * by one thread of the kymo command. A chunk is filled in memory and written when it is full and at
 * every outside_spool_flush(), so that what was recorded survives the program's end, and kymo's but
 * for the last moments.
 */
#ifndef KYMO_OUTSIDE_SPOOL_FILE_H
#define KYMO_OUTSIDE_SPOOL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kymo/spool.h"

struct outside_chunk {
	struct outside_chunk *next; /* of the open ones */
	uint64_t offset;
	uint32_t size, used; /* with the header */
	uint32_t written;
	uint8_t bytes[]; /* the header first */
};

struct outside_spool {
	int file; /* -1: none, or it cannot be written any more */
	struct spool_file_header header;
	struct outside_chunk *open_chunks, *records; /* records: of the process, no samples */
	uint64_t last_sequence;
	uint8_t *at; /* in the record that is being made */
	uint8_t scratch[16384];
};

/* Makes DIRECTORY/PID-N.spool, with the first N that is free; the header's pid is set. 0 or
 * negative errno. */
int outside_spool_create(struct outside_spool *spool, const char *directory);
void outside_spool_flush(struct outside_spool *spool);
void outside_spool_close(struct outside_spool *spool, enum spool_state state, uint64_t end_ns);

/* A chunk with room for at least `room` bytes of records; NULL: out of memory or of disk. */
struct outside_chunk *outside_chunk_open(struct outside_spool *spool, uint32_t room);
/* Writes it and frees it. */
void outside_chunk_close(struct outside_spool *spool, struct outside_chunk *chunk);
static inline uint32_t outside_chunk_room(const struct outside_chunk *chunk)
{
	return chunk ? chunk->size - chunk->used : 0;
}

/* Records of the process. Texts longer than 4,000 bytes are cut. */
void outside_record_begin(struct outside_spool *spool);
void outside_record_unsigned(struct outside_spool *spool, uint64_t value);
void outside_record_fixed64(struct outside_spool *spool, uint64_t value);
void outside_record_bytes(struct outside_spool *spool, const void *bytes, size_t size);
void outside_record_text(struct outside_spool *spool, const char *text);
void outside_record_end(struct outside_spool *spool, enum spool_record kind);

#endif
