/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A view of the process the test runs in, for tests and benches of the unwinder: every executable
 * mapping of /proc/self/maps with its table. Later dlopens are seen by another own_view_create().
 */
#ifndef KYMO_TESTS_OWN_VIEW_H
#define KYMO_TESTS_OWN_VIEW_H

#include "core/unwind/unwind.h"

/* Ends the program with a message when anything is wrong. Never freed. */
struct unwind_all_modules_view *own_view_create(void);
/* The mapping that holds an address. */
struct unwind_stack_bounds own_bounds(const void *address);

#endif
