/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The table of outputs (common/output_formats.h has the list).
 */
#ifndef KYMO_OUTPUT_FORMATS_FORMATS_H
#define KYMO_OUTPUT_FORMATS_FORMATS_H

#include "output/output.h"

extern const struct output_format *const output_formats[];
extern const size_t output_format_count;

/* By name; NULL: there is none. */
const struct output_format *output_find_format(const char *name);

#endif
