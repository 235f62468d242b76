/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sums of operations that are over, by communicator, function and size, in the file. Own thread
 * only.
 */
#ifndef KYMO_NCCL_TOTALS_H
#define KYMO_NCCL_TOTALS_H

#include <stdint.h>

#include "kymo/nccl_records.h"

void totals_add_operation(const struct nccl_operation *operation);
/* It is given back: its sums make room for those of others. */
void totals_forget_communicator(uint32_t creation);
/* One after the other, from 0; NULL at the end. */
const struct nccl_total *totals_get_by_number(uint32_t number);
/* What the GPU took for it; 0: not known. */
uint64_t totals_get_operation_gpu_ns(const struct nccl_operation *operation);

#endif
