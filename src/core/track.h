/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The process track: records about the process as a whole (clocks, modules, threads, metrics,
 * notices), written by the background thread alone into chunks of its own.
 *
 * track_begin() starts a record in a scratch buffer, track_* append fields, track_end() commits it.
 * A record that no chunk can be had for is counted as lost.
 */
#ifndef KYMO_CORE_TRACK_H
#define KYMO_CORE_TRACK_H

#include <stddef.h>
#include <stdint.h>

#include "core/spool_writer.h"

#define TRACK_RECORD_MAX (SPOOL_CHUNK_LARGE - 256)

struct track {
	struct spool_writer *spool;
	struct spool_chunk *chunk;
	uint32_t used;
	enum spool_record kind;
	uint8_t *at;
	uint8_t *scratch; /* TRACK_RECORD_MAX bytes */
};

int track_init(struct track *track, struct spool_writer *spool);
void track_begin(struct track *track, enum spool_record kind);
void track_unsigned(struct track *track, uint64_t value);
void track_fixed(struct track *track, uint64_t value);
void track_bytes(struct track *track, const void *bytes, size_t size);
void track_string(struct track *track, const char *string);
void track_end(struct track *track);

/* Whole records that several places write. */
void track_clock(struct track *track);
void track_notice(struct track *track, enum spool_notice kind, uint64_t argument, const char *text);

#endif
