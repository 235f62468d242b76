/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is left alone unless it is asked for: libraries and functions by name.
 */
#ifndef KYMO_BINARY_SELECTION_DEFAULTS_H
#define KYMO_BINARY_SELECTION_DEFAULTS_H

#include <stdbool.h>

/* "libc" of "/lib/x86_64-linux-gnu/libc.so.6" and of "libc-2.31.so". Into `ret`. */
void selection_copy_library_base_name(const char *path, char ret[64]);

/* kymo itself, and what runs before it or inside it: the C library, the loader, the unwinder,
 * run-time parts of sanitizers. `family` as above. */
bool selection_family_is_needed_by_kymo(const char *family);
/* Libraries whose functions are small parts of the language: mathematics, C++ run time, name
 * services. */
bool selection_family_is_system_library(const char *family);
/* Start-up code and the inner parts of the C++ library, by mangled name. */
bool selection_is_runtime_routine(const char *mangled);

#endif
