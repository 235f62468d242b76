/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From experiments to result files and the summary.
 */
#ifndef KYMO_CMD_CAUSAL_RESULTS_H
#define KYMO_CMD_CAUSAL_RESULTS_H

#include "analysis/causal.h"
#include "cmd/causal_control.h"
#include "cmd/causal_options.h"
#include "cmd/launch.h"

/* Before a session: experiments that are in its directory already are put aside, for
 * causal_results_write() to add the new ones to them; or forgotten, where that is asked for. */
int causal_results_prepare(const struct launch *launch, struct problem *problem);

/* Writes RESULT/causal/, removes what only the processes needed, and says what was found. What
 * goes wrong is said as well. */
void causal_results_write(const struct causal_data *data, const struct causal_options *options,
			  const struct causal_control_seen *seen, const struct launch *launch,
			  const char *prefix);

/* Whether the directory has experiments in it. */
bool causal_results_are_in(const char *directory);
/* Prints the report of an earlier session. */
int causal_results_report(const char *directory, FILE *stream, struct problem *problem);

#endif
