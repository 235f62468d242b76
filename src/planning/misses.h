/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What was asked for by name and had no effect, of which nothing else tells.
 */
#ifndef KYMO_PLANNING_MISSES_H
#define KYMO_PLANNING_MISSES_H

#include "planning/lists.h"

/* Warns of functions on lists (INSTRUMENT_LISTS) that no module has, and of SELECTED_REGIONS that
 * are functions. Of a single file (`whole` false), only where it has none of the list. */
void instrument_warn_of_unmatched_names(const struct function_list_output_args *lists,
					const struct effective_settings *settings, bool whole);

#endif
