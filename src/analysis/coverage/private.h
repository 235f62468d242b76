/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * coverage.c gathers the units of all sessions; source.c says where in the source they
 * are.
 */
#ifndef KYMO_ANALYSIS_COVERAGE_PRIVATE_H
#define KYMO_ANALYSIS_COVERAGE_PRIVATE_H

#include "analysis/coverage/coverage.h"
#include "binary/string_pool.h"

/* Names, files and lines of a module's units. 0 or a negative errno. */
int coverage_find_module_names_and_lines(struct coverage *coverage, struct coverage_module *module,
					 const struct session_options *options,
					 struct problem *problem);
/* Functions and lines of Python: as modules of their own. 0 or -ENOMEM. */
int coverage_gather_python(struct coverage *coverage, const struct session *session);
void coverage_merge_python_lines(struct coverage_module *module);

#endif
