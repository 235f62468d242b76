/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the rooms above the core do at the turns of the runtime's life, one after the other:
 * regions, causal profiling, instrumented functions.
 */
#ifndef KYMO_LIBKYMO_HOOKS_H
#define KYMO_LIBKYMO_HOOKS_H

#include "core/runtime.h"

extern const struct runtime_hooks libkymo_hook_table;

#endif
