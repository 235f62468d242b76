/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which sample sources a measure adds up. The same for weights and for counts.
 */
#ifndef KYMO_OUTPUT_MEASURE_H
#define KYMO_OUTPUT_MEASURE_H

#include "analysis/views.h"

static inline uint64_t measure_sum(enum view_measure measure,
				   const uint64_t by_source[SPOOL_SOURCE_COUNT])
{
	switch (measure) {
	case MEASURE_CPU:
		return by_source[SPOOL_SOURCE_CPU];
	case MEASURE_WALL:
		return by_source[SPOOL_SOURCE_CPU] + by_source[SPOOL_SOURCE_WALL] +
		       by_source[SPOOL_SOURCE_RUNNABLE];
	case MEASURE_OVERFLOW:
		return by_source[SPOOL_SOURCE_OVERFLOW];
	}
	return 0;
}

#endif
