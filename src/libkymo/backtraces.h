/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Unwinding where libkymo was not preloaded (a rewritten program brought it): nothing finds its
 * functions by name, so slots are rewritten.
 */
#ifndef KYMO_LIBKYMO_BACKTRACES_H
#define KYMO_LIBKYMO_BACKTRACES_H

void backtraces_redirect(void);

#endif
