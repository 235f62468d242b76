/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The files that a run with counters leaves.
 */
#ifndef KYMO_COUNTING_RESULTS_H
#define KYMO_COUNTING_RESULTS_H

#include "output/output.h"

/* Those that have something in them. 0 or negative errno. */
int counters_results_write(struct session *session, const char *directory, const char *prefix,
			   struct problem *problem);

#endif
