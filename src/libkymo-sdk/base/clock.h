/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The time of all records, CLOCK_BOOTTIME in ns, read for the price of the TSC where the kernel
 * itself keeps time by it. The rate is measured again against the real clock while it is in use,
 * and errors (some ten ns) are worked off by it, so that time never goes backwards.
 */
#ifndef KYMO_LIBKYMO_SDK_BASE_CLOCK_H
#define KYMO_LIBKYMO_SDK_BASE_CLOCK_H

#include <stdint.h>

/* ns of CLOCK_BOOTTIME. Any thread, any time; in a signal handler too. */
uint64_t sdk_clock_read_now_ns(void);
void sdk_clock_init(void);
void sdk_clock_reset_after_fork(void);

#endif
