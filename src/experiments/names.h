/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Whether the progress points that are named on the command line are anywhere, before anything is
 * run.
 */
#ifndef KYMO_EXPERIMENTS_NAMES_H
#define KYMO_EXPERIMENTS_NAMES_H

#include "binary/causal/places.h"

/* Looks in the program and in the libraries that it loads. -EINVAL: one is nowhere, with the
 * nearest name; in a program that opens libraries by itself that is a warning. */
int causal_check_named_points_exist(const struct causal_places *places, const char *program,
				    const char *debug_path, struct problem *problem);

#endif
