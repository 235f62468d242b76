/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls of Python functions as regions (docs/internals/python-calls.md).
 */
#ifndef KYMO_PYTHON_CALLS_H
#define KYMO_PYTHON_CALLS_H

#include "core/runtime.h"

/* Looks for an interpreter among the loaded objects, and has it call back when it starts. At the
 * start of the process, where that is wanted. */
void python_calls_start(struct runtime *runtime);
/* Background thread: counts further interpreters whose calls are not recorded. */
void python_calls_run_round(void);
/* Objects were opened: the interpreter may be one of them. */
void python_calls_look_at_objects(void);

#endif
