/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The two directions between tools and backends (device/device.h): what backends see goes to
 * emit.h, what tools want goes to backends.
 */
#ifndef KYMO_LIBKYMO_SDK_RUNTIMES_DEVICE_SINK_H
#define KYMO_LIBKYMO_SDK_RUNTIMES_DEVICE_SINK_H

#include <stdint.h>

void sdk_backends_connect(void);
void sdk_backends_reset_after_fork(void);
/* Everything finished is handed over, and what still runs is waited for. */
void sdk_backends_drain(uint64_t timeout_ns);
void sdk_backends_finish(void);

#endif
