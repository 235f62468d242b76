/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The table of collectives over ranks, by communicator, function and number; only join.c and
 * waits.c of this room include it.
 */
#ifndef KYMO_ANALYSIS_NCCL_COLLECTIVES_H
#define KYMO_ANALYSIS_NCCL_COLLECTIVES_H

#include "analysis/nccl/join.h"

/* NULL: there is none. */
struct nccl_collective *nccl_find_collective(const struct nccl_joined_collectives *joined,
					     uint32_t communicator, uint32_t function,
					     uint64_t sequence);
/* NULL: out of memory. What it returned before is moved. */
struct nccl_collective *nccl_find_or_add_collective(struct nccl_joined_collectives *joined,
						    uint32_t communicator, uint32_t function,
						    uint64_t sequence);
/* Of what all ranks must agree on, besides the number of bytes. */
uint64_t nccl_hash_operation_arguments(const struct nccl_data *data,
				       const struct nccl_operation_view *view);
/* Puts them in order; indexes change. */
void nccl_sort_collectives(struct nccl_joined_collectives *joined);

#endif
