/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What profile.json says of devices. Nothing where there are none.
 */
#ifndef KYMO_OUTPUT_JSON_GPU_H
#define KYMO_OUTPUT_JSON_GPU_H

#include "analysis/session.h"
#include "output/json_writer.h"

/* "devices": kernels by name and device, copies by direction, what is missing. */
/* 0 or -ENOMEM. */
int json_put_gpu_sums(struct json_writer *json, const struct session *session);

#endif
