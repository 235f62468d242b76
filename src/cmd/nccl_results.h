/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL in the command: its files among the results.
 */
#ifndef KYMO_CMD_NCCL_RESULTS_H
#define KYMO_CMD_NCCL_RESULTS_H

#include "analysis/session.h"
#include "output/output.h"

/* Whether a format is about NCCL. */
bool nccl_results_is_format(const struct output_format *format);
/* <directory>/<prefix>nccl/…, where the session has NCCL records. 0 or negative errno. */
int nccl_results_write(struct session *session, const char *directory, const char *prefix,
		       struct problem *problem);

#endif
