/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which kernels are counted, whoever asks for them: KYMO_KERNEL_INCLUDE and KYMO_KERNEL_EXCLUDE
 * are POSIX extended regular expressions, found anywhere in the name, KYMO_KERNEL_RANGE the numbers
 * of launches of a kernel, from 1 ("3", "2-5", "1,8-12", "4-"). Kernels of communication libraries
 * wait for those of other devices and are left out, unless they are included by name.
 */
#ifndef KYMO_DEVICE_KERNEL_FILTER_H
#define KYMO_DEVICE_KERNEL_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

/* NULL: it is to be counted; else why it is not, for the user. */
const char *kernel_filter_get_exclusion_reason(const char *name, uint64_t launch);
/* The environment is read again (tests). */
void kernel_filter_read_environment(void);

#endif
