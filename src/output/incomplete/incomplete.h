/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a result lacks, in words: files that could not be read, and data that were to be recorded
 * and are not there. Whatever shows numbers of a result says it beside them.
 */
#ifndef KYMO_OUTPUT_INCOMPLETE_H
#define KYMO_OUTPUT_INCOMPLETE_H

#include "analysis/session.h"

/* Behind a number of samples (session_get_missing_sample_count). */
#define INCOMPLETE_MISSING_SAMPLES_TEXT                                                            \
	"samples are lost: the recording was cut short (a full disk, an incomplete copy)"

struct incomplete_text {
	char text[512];
};

/* What was lost, behind the number of it; `loss` is an enum spool_loss. */
const char *incomplete_get_loss_text(int loss);
/* Calls `visit` with a text for each problem of reading and each kind of loss. `is_growing`:
 * records that are being written are no loss. */
void incomplete_visit(const struct session *session, bool is_growing,
		      void (*visit)(void *context, const char *text), void *context);
/* The same without the problems of reading (session.problems). */
void incomplete_visit_recording_losses(const struct session *session, bool is_growing,
				       void (*visit)(void *context, const char *text),
				       void *context);
/* Samples, region events and calls of the process that were to be recorded and are not there. */
uint64_t incomplete_count_lost_records(const struct session *session, uint32_t process);
/* The first of these texts; empty: nothing is known to be missing. */
struct incomplete_text incomplete_get_first(const struct session *session, bool is_growing);

#endif
