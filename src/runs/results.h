/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From a finished run to its result files and the summary.
 */
#ifndef KYMO_RUNS_RESULTS_H
#define KYMO_RUNS_RESULTS_H

#include "analysis/session.h"
#include "output/output.h"
#include "settings/effective.h"

/* Options for opening a session as the settings say. */
struct session_options
results_settings_to_session_options(const struct effective_settings *settings);
struct output_options results_settings_to_output_options(const struct effective_settings *settings);

/* Reads `session_directory` and writes every selected output into `result_directory`; what cannot
 * be written is reported and skipped. Prints the summary on standard error, where it is asked for.
 * 0 when all was written. */
int results_write_all_outputs(const struct effective_settings *settings,
			      const char *session_directory, const char *result_directory,
			      const char *prefix, bool summary, struct problem *problem);

#endif
