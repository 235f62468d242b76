/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where the kernel's code begins, by which a reader knows whether it is the same boot.
 */
#ifndef KYMO_OUTSIDE_KERNEL_H
#define KYMO_OUTSIDE_KERNEL_H

#include <stdint.h>

/* The address of _stext; 0: it is hidden from this user. */
uint64_t outside_kernel_find_start(void);

#endif
