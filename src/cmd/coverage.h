/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The results of several runs, whose coverage a report joins.
 */
#ifndef KYMO_CMD_COVERAGE_H
#define KYMO_CMD_COVERAGE_H

#include "analysis/session.h"
#include "cmd/options.h"
#include "output/output.h"

/* Opens all result directories named. Whatever is in *ret, open or not, goes to
 * coverage_close_others(). */
struct coverage_others {
	struct session **sessions;
	size_t count;
};
int coverage_open_others(char *const *directories, size_t count,
			 const struct session_options *options, struct coverage_others *ret,
			 struct problem *problem);
void coverage_close_others(struct coverage_others *others);

#endif
