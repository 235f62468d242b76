/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo run` with counters: a session like that of `kymo sample`, but without samples, as often as
 * the file of runs says.
 */
#ifndef KYMO_CMD_RUN_COUNTERS_H
#define KYMO_CMD_RUN_COUNTERS_H

#include "cmd/resolved.h"

/* `input`: path of a file of runs (counter_input.h), or NULL. Does not return once the program ran,
 * but with several runs and a status. */
int run_counters(struct resolved *settings, const char *input, char **arguments, size_t count);

#endif
