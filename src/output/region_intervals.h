/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls of regions from begin to end, and marks, one by one.
 */
#ifndef KYMO_OUTPUT_REGION_INTERVALS_H
#define KYMO_OUTPUT_REGION_INTERVALS_H

#include "analysis/session.h"

struct region_interval {
	uint32_t thread, region; /* of the session, of its regions */
	uint64_t begin_ns, end_ns;
	bool is_mark; /* a moment */
};

/* In order of their ends, thread by thread; nothing where the session has no regions. `each`
 * returns 0 to go on; anything else ends the walk and is returned. */
int region_intervals_visit(struct session *session,
			   int (*each)(const struct region_interval *, void *), void *context,
			   struct problem *problem);

#endif
