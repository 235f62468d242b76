/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Programs that are annotated for Coz (coz.h): they look for functions of its library by name,
 * which libkymo-dl has, and count their progress points themselves, in counters that these hand
 * out.
 *
 * A counter is in the session's file (causal_point.coz), so that all processes count in one. Its
 * increments come without a virtual time; as far as the processor's watchpoints go, they are
 * watched and count as visits as well.
 */
#ifndef KYMO_CAUSAL_COZ_H
#define KYMO_CAUSAL_COZ_H

#include <stdbool.h>
#include <stdint.h>

#include "core/runtime.h"

/* NULL: the process takes no part, or there is no room. `kind`: enum causal_point_kind. */
uint64_t *causal_coz_counter(uint32_t kind, const char *name);
/* Around a call of the program's own that may wait. `woken`: it did, until another thread ended it.
 */
void causal_coz_before_block(void);
void causal_coz_after_block(bool woken);

/* Background thread: are there new counters since the last call? */
bool causal_coz_changed(void);
/* Tells points_named.h about all of them. */
void causal_coz_watch(struct runtime *runtime);
void causal_coz_forked(void);

#endif
