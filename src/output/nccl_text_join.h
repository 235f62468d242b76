/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The summary's part about ranks together. */
#ifndef KYMO_OUTPUT_NCCL_TEXT_JOIN_H
#define KYMO_OUTPUT_NCCL_TEXT_JOIN_H

#include <stdio.h>

#include "analysis/nccl_join.h"

/* `top`: rows a table; 0: all. 0 or -ENOMEM. */
int nccl_write_joined(const struct nccl_data *data, const struct nccl_joined *joined, unsigned top,
		      FILE *stream);

#endif
