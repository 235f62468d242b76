/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Notices from the program's threads: put into a slot by whoever has something to say, written to
 * the process track by the background thread. Also from a vfork child, whose memory is its
 * parent's: no lock, no system call but a wake-up.
 */
#ifndef KYMO_CORE_NOTICES_H
#define KYMO_CORE_NOTICES_H

#include <stdint.h>

#include "core/background.h"
#include "core/spool/process_records.h"

/* The text is `text` followed by `more` (may be NULL), cut at NOTICES_TEXT_SIZE. Dropped when all
 * slots are full. */
#define NOTICES_TEXT_SIZE 512
void notices_post(struct background_state *background, enum spool_notice kind, uint64_t argument,
		  const char *text, const char *more);
/* Background thread. */
void notices_write_posted(struct process_records *track);
/* In a forked child: what stands in the slots is the parent's. */
void notices_discard_posted(void);

#endif
