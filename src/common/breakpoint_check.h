/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Whether hardware breakpoints do anything. In some virtual machines the kernel takes them, and
 * they never fire: their hypervisor does not hand the debug registers on.
 */
#ifndef KYMO_COMMON_BREAKPOINT_CHECK_H
#define KYMO_COMMON_BREAKPOINT_CHECK_H

#include <stdbool.h>

/* Tries one on a function of kymo's in the calling thread, once a process: four system calls. True
 * as well where none can be had: why not is told when the program's are opened. Not for threads of
 * the program. */
bool breakpoints_fire(void);

#endif
