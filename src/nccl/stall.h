/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tells on standard error which operations make no progress (NCCL_STALL=S), and what they wait for.
 * Own thread only.
 */
#ifndef KYMO_NCCL_STALL_H
#define KYMO_NCCL_STALL_H

#include <stdint.h>

void stall_check_communicators(uint64_t now);

#endif
