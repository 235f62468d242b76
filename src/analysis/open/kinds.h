/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The kinds of data that sessions have, in the order in which they are opened.
 */
#ifndef KYMO_ANALYSIS_OPEN_KINDS_H
#define KYMO_ANALYSIS_OPEN_KINDS_H

#include "analysis/session_kind.h"

#define SESSION_DATA_KIND_COUNT 8

extern const struct session_data_kind_operations
	*const session_data_kind_table[SESSION_DATA_KIND_COUNT + 1]; /* ends with NULL
								      */

#endif
