/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Programs that are annotated for Coz (coz.h): they look for functions of its library by name,
 * which libkymo-dl has, and count their progress points themselves, in counters that these hand
 * out.
 *
 * A counter is in the session's file (causal_point.coz), so that all processes count in one. Its
 * increments come without a virtual time: the controller looks at the counter and dates what it
 * sees (experiments/window.c). A watchpoint of the processor would tell the moment, but while a
 * thread has one, rep stos and rep movs lose their fast path on it: memset() and the kernel's
 * clearing of pages take thirty times as long.
 */
#ifndef KYMO_CAUSAL_COZ_H
#define KYMO_CAUSAL_COZ_H

#include <stdbool.h>
#include <stdint.h>

/* NULL: the process takes no part, or there is no room. `kind`: enum causal_point_kind. */
uint64_t *causal_coz_find_or_add_counter(uint32_t kind, const char *name);
/* Around a call of the program's own that may wait. `woken`: it did, until another thread ended it.
 */
void causal_coz_before_blocking(void);
void causal_coz_after_blocking(bool woken);

#endif
