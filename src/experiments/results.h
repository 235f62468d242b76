/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From experiments to result files and the summary.
 */
#ifndef KYMO_EXPERIMENTS_RESULTS_H
#define KYMO_EXPERIMENTS_RESULTS_H

#include "analysis/causal/causal.h"
#include "experiments/control.h"
#include "experiments/options.h"
#include "launch/launch.h"

/* Before a session: experiments that are in its directory already are put aside, for
 * causal_results_write() to add the new ones to them; or forgotten, where that is asked for. */
int causal_results_set_earlier_aside(const struct launch *launch, struct problem *problem);

/* Writes RESULT/causal/, removes what only the processes needed, and says what was found. What
 * goes wrong is said as well. */
void causal_results_write(const struct causal_data *data, const struct causal_options *options,
			  const struct causal_program_activity *seen, const struct launch *launch,
			  const char *prefix);

/* Whether the directory has experiments in it. */
bool causal_results_exist_in(const char *directory);
/* Prints the report of an earlier session. */
int causal_results_print_report(const char *directory, FILE *stream, struct problem *problem);

#endif
