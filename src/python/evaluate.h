/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls up to Python 3.11: a replacement of the interpreter's evaluation of frames.
 */
#ifndef KYMO_PYTHON_EVALUATE_H
#define KYMO_PYTHON_EVALUATE_H

#include <stdbool.h>

/* In the current interpreter, whose lock the thread holds. */
bool python_evaluate_install(bool records_builtins);

#endif
