/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which functions are recorded: the user's expressions on names and files.
 */
#ifndef KYMO_PYTHON_EXPRESSIONS_H
#define KYMO_PYTHON_EXPRESSIONS_H

#include "core/base/options.h"

/* Compiles them, once; for a thread that holds the interpreter's lock. */
void python_expressions_compile(const struct python_call_options *options);
bool python_expressions_select(const char *name, const char *file);

#endif
