/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The part of the scan that knows region records: names, components, and where spans and profiles
 * lie. Events are counted, and their last time and the regions they name are noted; regions that
 * were never defined are then known before anything refers to them.
 */
#ifndef KYMO_ANALYSIS_SCAN_REGIONS_H
#define KYMO_ANALYSIS_SCAN_REGIONS_H

#include "analysis/session_private.h"

struct scan_regions {
	struct session *session;
	struct process_regions *regions;
	uint32_t process;
	uint32_t chunk;         /* being scanned */
	const uint8_t *records; /* its first record */
	bool in_span, skipped;  /* skipped: a filter leaves this thread out */
	uint64_t events;
	uint64_t ticks; /* of the last event of the span */
	uint64_t last;  /* the latest of all */
	uint64_t *used; /* ids that events name, as bits */
	size_t used_words;
};

void scan_regions_init(struct scan_regions *scan, struct session *session, uint32_t process);
void scan_regions_deinit(struct scan_regions *scan);
void scan_regions_begin_chunk(struct scan_regions *scan, uint32_t chunk, const uint8_t *records);
void scan_regions_end_chunk(struct scan_regions *scan, const uint8_t *end);
/* After the last chunk. */
int scan_regions_finish(struct scan_regions *scan);

/* All return 0, -EBADMSG for what cannot be decoded, or -ENOMEM. `thread` may be MODEL_NONE: left
 * out. `record` is the record's first byte. */
int scan_region(struct scan_regions *scan, struct spool_payload *payload);
int scan_components(struct scan_regions *scan, struct spool_payload *payload);
int scan_rank(struct scan_regions *scan, struct spool_payload *payload);
int scan_profile_part(struct scan_regions *scan, const struct spool_payload *payload,
		      const struct spool_profile_part *part, uint32_t thread);
/* After internal id and tid were read from the payload. */
int scan_region_span(struct scan_regions *scan, struct spool_payload *payload,
		     const uint8_t *record, uint32_t thread);

static inline bool scan_is_region_event(uint8_t kind)
{
	return kind >= SPOOL_RECORD_REGION_BEGIN && kind <= SPOOL_RECORD_REGION_WHOLE;
}

/* The events that stand at the cursor one after the other, which are nearly all of a chunk. 0 or
 * -ENOMEM. */
int scan_region_events(struct scan_regions *scan, struct spool_cursor *cursor);

#endif
