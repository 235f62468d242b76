/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Progress points that are functions, where breakpoints do not do: none are to be had, or there are
 * more points than breakpoints. Then these functions are instrumented, as `kymo instrument` does
 * it; libkymo counts their calls as visits and records nothing else of them.
 */
#ifndef KYMO_EXPERIMENTS_INSTRUMENT_H
#define KYMO_EXPERIMENTS_INSTRUMENT_H

#include "binary/causal/places.h"
#include "settings/effective.h"

struct causal_instrumentation;

/* Is that so here, with these points and the settings' way of sampling? */
bool causal_instrumentation_is_needed(const struct causal_places *places,
				      const struct effective_settings *settings);
/* Serves plans with just these functions; `session` is its directory. */
int causal_instrumentation_start(const struct causal_places *places,
				 const struct effective_settings *settings, const char *session,
				 struct causal_instrumentation **ret, struct problem *problem);
/* What launch->plan_socket_path is to be. */
const char *causal_instrumentation_get_socket_path(const struct causal_instrumentation *instrument);
/* NULL is fine. */
void causal_instrumentation_stop(struct causal_instrumentation *instrument);

#endif
