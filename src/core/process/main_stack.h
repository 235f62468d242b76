/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The stack of a process's first thread, which the kernel makes and lets grow.
 */
#ifndef KYMO_CORE_PROCESS_MAIN_STACK_H
#define KYMO_CORE_PROCESS_MAIN_STACK_H

#include <stdint.h>

struct main_stack {
	uint64_t low, high; /* of what is its own, down to its limit; 0, 0: not known */
	uint64_t floor;     /* as far as it may grow; 0: the limit says nothing */
};

/* Reads /proc/self/maps; by one thread at a time, not in handlers. */
struct main_stack main_stack_find(void);
/* By what the kernel gave the program at its start: costs next to nothing. */
struct main_stack main_stack_find_without_proc(void);

#endif
