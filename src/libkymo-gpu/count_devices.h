/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters of whole devices (KYMO_DEVICE_COUNTERS), read every KYMO_COUNTER_INTERVAL ms.
 */
#ifndef KYMO_LIBKYMO_GPU_COUNT_DEVICES_H
#define KYMO_LIBKYMO_GPU_COUNT_DEVICES_H

/* While the tool is initialized: every agent that has one of the counters. */
void count_devices_configure(void);
void count_devices_start(void);
/* One more reading, then no more. */
void count_devices_end(void);
void count_devices_forked(void);

#endif
