/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The two directions between tools and backends (device/device.h): what backends see goes to
 * emit.h, what tools want goes to backends.
 */
#ifndef KYMO_LIBKYMO_SDK_DEVICE_SINK_H
#define KYMO_LIBKYMO_SDK_DEVICE_SINK_H

#include <stdint.h>

void sdk_device_start(void);
void sdk_device_forked(void);
/* Everything finished is handed over, and what still runs is waited for. */
void sdk_device_drain(uint64_t timeout_ns);
void sdk_device_finish(void);

#endif
