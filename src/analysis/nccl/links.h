/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * How fast the links between ranks are; only join.c, links.c and pairs.c of this room include
 * it.
 */
#ifndef KYMO_ANALYSIS_NCCL_LINKS_H
#define KYMO_ANALYSIS_NCCL_LINKS_H

#include "analysis/nccl/join.h"
#include "analysis/nccl/pairs.h"

/* 0 or negative errno. */
int nccl_sum_transfers_by_link(struct nccl_data *data, struct nccl_joined_collectives *joined,
			       struct problem *problem);

/* 0 or -ENOMEM. */
int nccl_find_or_add_link(struct nccl_joined_collectives *joined, uint32_t member, int32_t peer,
			  bool sends, bool network, uint32_t *ret);
/* What is not known of the time when an operation began, on host 0's clock; UINT64_MAX unknown. */
uint64_t nccl_get_begin_error(const struct nccl_data *data, const struct nccl_operation_view *view);

#endif
