/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The summary of a session for a terminal.
 */
#ifndef KYMO_OUTPUT_SUMMARY_SUMMARY_H
#define KYMO_OUTPUT_SUMMARY_SUMMARY_H

#include "output/output.h"

/* The summary at exit (and of `kymo report` without a format): ten heaviest functions and paths,
 * threads, host metrics, unresolved share by module with what to install, losses, kymo's own
 * overhead. */
int output_write_summary(struct session *session, const struct output_options *options,
			 FILE *stream, bool colour, struct problem *problem);
/* The same for a page, part by part. ROWS are lines as they stand on a terminal. */
enum summary_text_kind {
	SUMMARY_TEXT_HEADING,
	SUMMARY_TEXT_LINE,
	SUMMARY_TEXT_WARNING,
	SUMMARY_TEXT_ROWS
};

struct summary_receiver {
	void (*receive_text)(void *context, enum summary_text_kind kind, const char *text);
	/* A row of a table; the first of a table are its headings. */
	void (*receive_row)(void *context, const char *const *cells, size_t count,
			    const char *name);
	/* A row of the heaviest functions, which are no rows of a table here. */
	void (*receive_function)(void *context, const char *name, uint64_t self, uint64_t total);
	void *context;
};

int output_pass_summary(struct session *session, const struct output_options *options,
			const struct summary_receiver *receiver, struct problem *problem);
/* Where no summary is shown: calls `report` with a text for each kind of data that was to be
 * recorded and was lost. */
void output_report_losses(const struct session *session,
			  void (*report)(void *context, const char *text), void *context);

#endif
