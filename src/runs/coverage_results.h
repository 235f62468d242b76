/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The results of several runs, whose coverage a report joins.
 */
#ifndef KYMO_RUNS_COVERAGE_RESULTS_H
#define KYMO_RUNS_COVERAGE_RESULTS_H

#include "analysis/session.h"
#include "output/output.h"
#include "settings/options.h"

/* Opens all result directories named. Whatever is in *ret, open or not, goes to
 * coverage_close_joined_sessions(). */
struct coverage_joined_sessions {
	struct session **sessions;
	size_t count;
};
int coverage_open_joined_sessions(char *const *directories, size_t count,
				  const struct session_options *options,
				  struct coverage_joined_sessions *ret, struct problem *problem);
void coverage_close_joined_sessions(struct coverage_joined_sessions *others);

#endif
