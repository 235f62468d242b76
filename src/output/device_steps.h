/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names for steps of the work on devices and for what slow steps have more of.
 */
#ifndef KYMO_OUTPUT_DEVICE_STEPS_H
#define KYMO_OUTPUT_DEVICE_STEPS_H

#include "analysis/gpu/gpu.h"

/* Of the range, or of the kernel as in its source; cut at `size`. */
void device_step_format_name(char *buffer, size_t size, const struct gpu_step_series *series);
/* "kernel gemm", "[copy host to device]", "idle before launches from load (train.py:12)". The
 * session is symbolized. */
void device_step_format_difference(char *buffer, size_t size, const struct session *session,
				   const struct gpu_data *data,
				   const struct gpu_step_series *series,
				   const struct gpu_step_difference *difference);

#endif
