/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One file of the NCCL plugin to records; the only code that knows its framing
 * (kymo/nccl_records.h).
 *
 * Life: nccl_file_open() checks the header, reads the names and the headers of the chunks.
 * Records are then read chunk by chunk with pread, into a buffer of the file's: a file that
 * shrinks under its reader is less data, never a SIGBUS, and the process may still be writing.
 * nccl_file_close_temporarily() gives descriptor and buffer back between passes, since there are as
 * many files as ranks.
 *
 * Nothing in a record is trusted but its size. What cannot be a record is counted in torn_records.
 */
#ifndef KYMO_ANALYSIS_NCCL_READER_H
#define KYMO_ANALYSIS_NCCL_READER_H

#include <stddef.h>
#include <stdint.h>

#include "common/problem.h"
#include "kymo/nccl_records.h"

struct nccl_chunk_location {
	uint64_t offset, sequence;
	uint32_t kind, generation, communicator;
};

struct nccl_file {
	int descriptor; /* -1 while paused */
	char *path;
	uint64_t size; /* of what is there */
	struct nccl_file_header header;
	char (*names)[NCCL_NAME_SIZE];      /* NCCL_NAMES of them, each terminated */
	struct nccl_chunk_location *chunks; /* those in use, in order of sequence */
	size_t chunk_count, chunk_capacity;
	uint64_t missing_bytes; /* the header tells of more than there is */
	uint64_t torn_chunk_count, torn_record_count;
	uint8_t *buffer; /* one chunk */
};

/* 0 or a negative errno: -ENODATA not such a file, -EPROTO another version. */
int nccl_file_open(const char *path, struct nccl_file *ret, struct problem *problem);
void nccl_file_close(struct nccl_file *file);
void nccl_file_close_temporarily(struct nccl_file *file);
int nccl_file_reopen(struct nccl_file *file, struct problem *problem);

/* Calls `each` with every record of the chunk that was written; it lies in the file's buffer until
 * the call returns. `each` returns 0 to go on. 0, what `each` returned, or a negative errno. */
int nccl_chunk_visit_records(struct nccl_file *file, const struct nccl_chunk_location *chunk,
			     int (*each)(const void *record, void *context), void *context);
/* All chunks of a kind, in the order of their sequence. */
int nccl_file_visit_records_of_kind(struct nccl_file *file, enum nccl_chunk_kind kind,
				    int (*each)(const void *record, void *context), void *context);

/* "" for 0. */
const char *nccl_file_get_interned_name(const struct nccl_file *file, uint8_t name);

#endif
