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
/* Where no summary is shown: calls `report` with a text for each kind of data that was to be
 * recorded and was lost. */
void output_report_losses(const struct session *session,
			  void (*report)(void *context, const char *text), void *context);

#endif
