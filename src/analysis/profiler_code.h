/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The profiler's own code in stacks of the program. Its frames are left out: their time belongs to
 * the function that called, as the wrapper of a call is none of the program's functions.
 */
#ifndef KYMO_ANALYSIS_PROFILER_CODE_H
#define KYMO_ANALYSIS_PROFILER_CODE_H

#include "analysis/session.h"

/* Is it one of the libraries that kymo loads into programs? */
bool module_is_profiler_library(const struct model_module *module);
/* Is it the source file of kymo's Python module, where it was installed? NULL: no. */
bool source_file_is_profiler_module(const char *file);

#endif
