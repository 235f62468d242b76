/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo run` with counters: a session like that of `kymo sample`, but without samples, as often as
 * the file of runs says.
 */
#ifndef KYMO_RUNS_COUNTERS_H
#define KYMO_RUNS_COUNTERS_H

#include "settings/effective.h"

/* `input`: path of a file of runs (counting/input.h), or NULL. Does not return once the program
 * ran, but with several runs and a status. */
int run_program_with_counters(struct effective_settings *settings, const char *input,
			      char **arguments, size_t count);

#endif
