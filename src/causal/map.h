/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The maps of this process's modules: asked for, kept, and looked up. What is looked up is declared
 * in causal.h.
 */
#ifndef KYMO_CAUSAL_MAP_H
#define KYMO_CAUSAL_MAP_H

#include "core/runtime.h"

/* causal_join_session_if_requested(): maps are asked for from now on. `directory` is copied. */
void causal_map_start_requests(struct runtime *runtime, const char *directory);

#endif
