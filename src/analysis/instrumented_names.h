/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of instrumented functions by their file, where their address does not tell.
 */
#ifndef KYMO_ANALYSIS_INSTRUMENTED_NAMES_H
#define KYMO_ANALYSIS_INSTRUMENTED_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/calls.h"
#include "analysis/plan_table.h"
#include "analysis/session.h"

struct process_calls;

/* Does the address lead to the file that was instrumented there, and never to another one? */
bool instrumented_is_mapped(const struct session *session, const struct model_instrumented *module,
			    uint64_t address);
/* Gives the regions of the module's functions their names, or those of their places where the file
 * has none. 0 or -ENOMEM. */
int instrumented_name(struct session *session, const struct model_instrumented *module,
		      const struct process_calls *calls, const struct plan_functions *plan);

#endif
