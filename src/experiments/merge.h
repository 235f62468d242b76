/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Experiments of one session added to those of earlier ones in the same result directory.
 */
#ifndef KYMO_EXPERIMENTS_MERGE_H
#define KYMO_EXPERIMENTS_MERGE_H

#include "common/problem.h"

/* Appends what is in `latest` to `earlier`, both as in analysis/causal/causal.h, and puts the
 * result in the place of `latest`. The same target or point has one number in it, runs are counted
 * on. What cannot be read is left out. On failure both stay as they are. */
int causal_merge_journals(const char *earlier, const char *latest, struct problem *problem);

#endif
