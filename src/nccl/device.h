/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which GPU a communicator is made for. NCCL makes the device current before init, the only
 * callback that may call CUDA.
 */
#ifndef KYMO_NCCL_DEVICE_H
#define KYMO_NCCL_DEVICE_H

#include "kymo/nccl_records.h"

/* Sets `device` and `device_address`, where a CUDA driver is loaded and has a current device. */
void device_write_current_to_record(struct nccl_communicator_record *record);

#endif
