/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The time of all records, CLOCK_BOOTTIME in ns, read for the price of the TSC where the kernel
 * itself keeps time by it. The rate is measured anew against the real clock while it is in use, and
 * errors (some ten ns) are worked off by it, so that time never goes backwards.
 */
#ifndef KYMO_LIBKYMO_SDK_CLOCK_H
#define KYMO_LIBKYMO_SDK_CLOCK_H

#include <stdint.h>

void sdk_clock_start(void);
void sdk_clock_forked(void);

#endif
