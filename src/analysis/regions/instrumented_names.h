/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of instrumented functions by their file, where their address does not tell.
 */
#ifndef KYMO_ANALYSIS_REGIONS_INSTRUMENTED_NAMES_H
#define KYMO_ANALYSIS_REGIONS_INSTRUMENTED_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/plan_table.h"
#include "analysis/regions/calls.h"
#include "analysis/session.h"

struct calls_of_process;

/* Does the address lead to the file that was instrumented there, and never to another one? */
bool instrumented_module_is_sole_at_address(const struct session *session,
					    const struct model_instrumented_module *module,
					    uint64_t address);
/* Gives the regions of the module's functions their names, or those of their places where the file
 * has none. 0 or -ENOMEM. */
int instrumented_set_region_names(struct session *session,
				  const struct model_instrumented_module *module,
				  const struct calls_of_process *calls,
				  const struct plan_functions *plan);

#endif
