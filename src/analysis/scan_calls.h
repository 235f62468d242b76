/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The part of the scan that knows records of instrumented functions. All return 0, -EBADMSG for
 * what cannot be decoded, or -ENOMEM.
 */
#ifndef KYMO_ANALYSIS_SCAN_CALLS_H
#define KYMO_ANALYSIS_SCAN_CALLS_H

#include "analysis/session_private.h"

struct scan_calls {
	struct session *session;
	struct process_calls *calls;
	uint32_t process;
	uint64_t last; /* ticks of the latest word */
};

void scan_calls_init(struct scan_calls *scan, struct session *session, uint32_t process);

int scan_instrumented(struct scan_calls *scan, struct spool_payload *payload);
/* A CALLS record, of which `head` was read; `records` is the chunk's first one. `thread` may be
 * MODEL_NONE: left out. */
int scan_call_words(struct scan_calls *scan, const struct spool_payload *payload,
		    const struct spool_calls *head, uint32_t thread, uint32_t chunk,
		    const uint8_t *records);
int scan_call_counts(struct scan_calls *scan, struct spool_payload *payload);
int scan_call_demoted(struct scan_calls *scan, struct spool_payload *payload);

/* After the last chunk, when clocks are known. 0 or -ENOMEM. */
int scan_calls_finish(struct scan_calls *scan);

#endif
