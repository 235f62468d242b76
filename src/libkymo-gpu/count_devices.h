/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters of whole devices (KYMO_DEVICE_COUNTERS), read every KYMO_COUNTER_INTERVAL ms.
 */
#ifndef KYMO_LIBKYMO_GPU_COUNT_DEVICES_H
#define KYMO_LIBKYMO_GPU_COUNT_DEVICES_H

/* While the tool is initialized: every agent that has one of the counters. */
void device_counting_configure_if_env_asks(void);
void device_counting_start(void);
/* One more reading, then no more. */
void device_counting_stop(void);
void device_counting_reset_after_fork(void);

#endif
