/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Makes the map of a module that processes of a causal session use (kymo/causal.h): for each
 * stretch of code the targets that it belongs to, through all inlined calls.
 *
 * Functions come from debug information, and where there is none from symbols and unwind tables, so
 * that stripped files work as well. Lines need debug information. Cost: about 1 us a line table row
 * with debug information, 100 ns a symbol without.
 */
#ifndef KYMO_BINARY_CAUSAL_MAP_H
#define KYMO_BINARY_CAUSAL_MAP_H

#include <stddef.h>

#include "binary/causal/module.h"
#include "binary/causal/scope.h"
#include "binary/causal/targets.h"
#include "common/problem.h"

/* The image of the map, malloc'ed. The module's binary is in scope. -ENOENT: nothing of it is;
 * -ENODATA: lines are asked for and there is no debug information; -ENOMEM. */
int causal_target_map_build(struct causal_module *module, const struct causal_scopes *scopes,
			    struct causal_targets *targets, void **ret, size_t *ret_size,
			    struct problem *problem);

#endif
