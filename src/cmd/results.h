/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From a finished run to its result files and the summary.
 */
#ifndef KYMO_CMD_RESULTS_H
#define KYMO_CMD_RESULTS_H

#include "analysis/session.h"
#include "cmd/resolved.h"
#include "output/output.h"

/* Options for opening a session as the settings say. */
struct session_options results_session_options(const struct resolved *settings);
struct output_options results_output_options(const struct resolved *settings);

/* Reads `session_directory` and writes every selected output into `result_directory`; what cannot
 * be written is reported and skipped. Prints the summary on standard error, where it is asked for.
 * 0 when all was written. */
int results_write(const struct resolved *settings, const char *session_directory,
		  const char *result_directory, const char *prefix, bool summary,
		  struct problem *problem);

#endif
