/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The summary's part about ranks together. */
#ifndef KYMO_OUTPUT_NCCL_TEXT_JOIN_H
#define KYMO_OUTPUT_NCCL_TEXT_JOIN_H

#include <stdio.h>

#include "analysis/nccl/join.h"

/* `top`: rows a table; 0: all. 0 or -ENOMEM. */
int nccl_write_rank_comparison(const struct nccl_data *data,
			       const struct nccl_joined_collectives *joined, unsigned top,
			       FILE *stream);

/* text_passed.c; the same. */
int nccl_write_passed_waits(const struct nccl_data *data,
			    const struct nccl_joined_collectives *joined, unsigned top,
			    FILE *stream);

#endif
