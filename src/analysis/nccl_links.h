/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * How fast the links between ranks are; only nccl_join.c and nccl_links.c of this room include it.
 */
#ifndef KYMO_ANALYSIS_NCCL_LINKS_H
#define KYMO_ANALYSIS_NCCL_LINKS_H

#include "analysis/nccl_join.h"

/* 0 or negative errno. */
int nccl_links_find(struct nccl_data *data, struct nccl_joined *joined, struct problem *problem);

#endif
