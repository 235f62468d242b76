/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The second pass over the records, when all collectives are put together: which rank was the last
 * to enter each of them, who waited for it and whom it had waited for itself (blame.h), and whose
 * calls differ. Only join.c of this room includes it.
 */
#ifndef KYMO_ANALYSIS_NCCL_WAITS_H
#define KYMO_ANALYSIS_NCCL_WAITS_H

#include "analysis/nccl/join.h"

/* 0 or negative errno. */
int nccl_sum_waits_of_all_ranks(struct nccl_data *data, struct nccl_joined_collectives *joined,
				struct problem *problem);

#endif
