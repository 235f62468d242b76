/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What was asked for by name and had no effect, of which nothing else tells.
 */
#ifndef KYMO_CMD_INSTRUMENT_MISSES_H
#define KYMO_CMD_INSTRUMENT_MISSES_H

#include "cmd/instrument_lists.h"

/* Warns of functions on lists (INSTRUMENT_LISTS) that no module has, and of SELECTED_REGIONS that
 * are functions. Of a single file (`whole` false), only where it has none of the list. */
void instrument_misses_warn(const struct instrument_lists *lists, const struct resolved *settings,
			    bool whole);

#endif
