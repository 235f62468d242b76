/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The lines of interpreted code (Python's) by what they cost. A line's own weight is that of the
 * samples in which it is the innermost interpreted one: its own instructions and the native code
 * that they call.
 */
#ifndef KYMO_OUTPUT_INTERPRETED_LINES_H
#define KYMO_OUTPUT_INTERPRETED_LINES_H

#include "analysis/views.h"

struct interpreted_line {
	uint32_t frame;          /* a function at a line */
	uint64_t own, inclusive; /* inclusive: once a stack */
	uint64_t own_samples, inclusive_samples;
};

/* The heaviest first, by own weight; *ret is malloc'ed. 0 or -ENOMEM. */
int interpreted_lines_build(const struct session *session, enum view_measure_kind measure,
			    struct interpreted_line **ret, size_t *ret_count);

#endif
