/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sums as outputs show them: of a function in a communicator over its ranks, and over everything.
 */
#ifndef KYMO_OUTPUT_NCCL_ROWS_H
#define KYMO_OUTPUT_NCCL_ROWS_H

#include "analysis/nccl/nccl.h"

struct nccl_function_sum_row {
	uint32_t communicator, function; /* communicator: NCCL_INDEX_NONE over all */
	struct nccl_operation_tally *tally;
};

struct nccl_function_sum_rows {
	struct nccl_function_sum_row *rows; /* heaviest first */
	size_t count;
};

/* by_communicator: a row for each function of each communicator; else for each function. 0 or
 * -ENOMEM. */
int nccl_function_sum_rows_build(const struct nccl_data *data, bool by_communicator,
				 struct nccl_function_sum_rows *ret);
void nccl_function_sum_rows_deinit(struct nccl_function_sum_rows *rows);
/* What all processes count of one loss. */
uint64_t nccl_sum_one_loss_of_all_processes(const struct nccl_data *data, enum nccl_loss loss);

#endif
