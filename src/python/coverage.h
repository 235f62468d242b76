/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which functions and lines of Python run at all. Code objects are described in the spool as
 * samples do it, the first time that they or what contains them are called; after that a record
 * says what of them ran, once each.
 *
 * All functions: by a thread that holds the interpreter's lock.
 */
#ifndef KYMO_PYTHON_COVERAGE_H
#define KYMO_PYTHON_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

/* Notes that a code object was called. True: that needs not be noted again, also because its
 * functions are left out by expressions. */
bool python_coverage_note_call(uint64_t code);
/* The same of a line of it. */
bool python_coverage_note_line(uint64_t code, uint32_t line);

#endif
