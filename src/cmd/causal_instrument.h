/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Progress points that are functions, where breakpoints do not do: none are to be had, or there are
 * more points than breakpoints. Then these functions are instrumented, as `kymo instrument` does
 * it; libkymo counts their calls as visits and records nothing else of them.
 */
#ifndef KYMO_CMD_CAUSAL_INSTRUMENT_H
#define KYMO_CMD_CAUSAL_INSTRUMENT_H

#include "binary/causal_places.h"
#include "cmd/resolved.h"

struct causal_instrument;

/* Is that so here, with these points and the settings' way of sampling? */
bool causal_instrument_wanted(const struct causal_places *places, const struct resolved *settings);
/* Serves plans with just these functions; `session` is its directory. */
int causal_instrument_start(const struct causal_places *places, const struct resolved *settings,
			    const char *session, struct causal_instrument **ret,
			    struct problem *problem);
/* What launch->plan_socket is to be. */
const char *causal_instrument_socket(const struct causal_instrument *instrument);
/* NULL is fine. */
void causal_instrument_stop(struct causal_instrument *instrument);

#endif
