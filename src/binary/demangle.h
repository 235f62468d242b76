/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Readable names for C++ and Rust symbols.
 */
#ifndef KYMO_BINARY_DEMANGLE_H
#define KYMO_BINARY_DEMANGLE_H

#include <stddef.h>

/* Longest name that is shown; longer ones end in "…". */
#define DEMANGLED_NAME_BYTES_MAX 10240u

/* The readable form of a mangled name, malloc'ed, or NULL where the name is not mangled, damaged,
 * absurdly long, or memory is out: then show the name itself. About 1 us; call it once a function.
 * Thread-safe. */
char *demangle(const char *name);

#endif
