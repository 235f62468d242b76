/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Programs and libraries that were instrumented in their files (kymo instrument -o): this library
 * is what they need, and all that they need.
 */
#ifndef KYMO_LIBKYMO_DL_REWRITTEN_H
#define KYMO_LIBKYMO_DL_REWRITTEN_H

#include <stdbool.h>

/* Is anything of the kind loaded? */
bool rewritten_any_loaded(void);

#endif
