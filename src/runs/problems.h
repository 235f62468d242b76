/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What of a result could not be read, or was lost.
 */
#ifndef KYMO_RUNS_PROBLEMS_H
#define KYMO_RUNS_PROBLEMS_H

#include "analysis/session.h"

/* Warnings, for outputs that do not say it themselves. */
void results_print_problems(const struct session *session);

#endif
