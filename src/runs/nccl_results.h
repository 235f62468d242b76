/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL in the command: its files among the results.
 */
#ifndef KYMO_RUNS_NCCL_RESULTS_H
#define KYMO_RUNS_NCCL_RESULTS_H

#include "analysis/session.h"
#include "output/output.h"

/* Whether a format is about NCCL. */
bool nccl_results_is_nccl_format(const struct output_format *format);
/* <directory>/<prefix>nccl/…, where the session has NCCL records. The file of single operations is
 * left out where there are more than `operations_max`, with a word unless that is 0. 0 or negative
 * errno. */
int nccl_results_write(struct session *session, const char *directory, const char *prefix,
		       uint64_t operations_max, struct problem *problem);

/* Some process still writes records. Of those elsewhere nobody knows whether they run, but when
 * their files say something last. */
bool nccl_results_are_live(const struct session *session);

#endif
