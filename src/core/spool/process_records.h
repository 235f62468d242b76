/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The process track: records about the process as a whole (clocks, modules, threads, metrics,
 * notices), written by the background thread alone into chunks of its own.
 *
 * process_record_begin() starts a record in a scratch buffer, track_* append fields,
 * process_record_end_and_commit() commits it. A record that no chunk can be had for is counted as
 * lost.
 */
#ifndef KYMO_CORE_SPOOL_PROCESS_RECORDS_H
#define KYMO_CORE_SPOOL_PROCESS_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "core/spool/writer.h"

#define PROCESS_RECORD_SIZE_MAX (SPOOL_CHUNK_LARGE_SIZE - 256)

struct process_records {
	struct spool_writer *spool;
	struct spool_chunk *chunk;
	uint32_t used;
	enum spool_record kind;
	uint8_t *at;
	uint8_t *scratch; /* PROCESS_RECORD_SIZE_MAX bytes */
};

int process_records_init(struct process_records *track, struct spool_writer *spool);
void process_record_begin(struct process_records *track, enum spool_record kind);
void process_record_append_unsigned(struct process_records *track, uint64_t value);
void process_record_append_fixed64(struct process_records *track, uint64_t value);
void process_record_append_bytes(struct process_records *track, const void *bytes, size_t size);
void process_record_append_string(struct process_records *track, const char *string);
void process_record_end_and_commit(struct process_records *track);

/* Whole records that several places write. */
void process_record_write_clock(struct process_records *track);
/* A collection window opened or closed. */
void process_record_write_window(struct process_records *track, uint64_t ticks, bool open);
void process_record_write_notice(struct process_records *track, enum spool_notice kind,
				 uint64_t argument, const char *text);

#endif
