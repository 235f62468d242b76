/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sums as outputs show them: of a function in a communicator over its ranks, and over everything.
 */
#ifndef KYMO_OUTPUT_NCCL_ROWS_H
#define KYMO_OUTPUT_NCCL_ROWS_H

#include "analysis/nccl.h"

struct nccl_row {
	uint32_t team, function; /* team: NCCL_NONE over all */
	struct nccl_tally *tally;
};

struct nccl_rows {
	struct nccl_row *rows; /* heaviest first */
	size_t count;
};

/* by_team: a row for each function of each communicator; else for each function. 0 or -ENOMEM. */
int nccl_rows_make(const struct nccl_data *data, bool by_team, struct nccl_rows *ret);
void nccl_rows_deinit(struct nccl_rows *rows);
/* What all processes count of one loss. */
uint64_t nccl_loss_sum(const struct nccl_data *data, enum nccl_loss loss);

#endif
