/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * LTTng-UST on the loop of bench/regions: a begin and an end tracepoint with a name.
 *
 * usage: lttng_loop PAIRS THREADS
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_region.h"

#include "loop.h"

void loop_pairs(unsigned long count)
{
	for (unsigned long i = 0; i < count; i++) {
		lttng_ust_tracepoint(kymo_bench, begin, "iteration");
		lttng_ust_tracepoint(kymo_bench, end, "iteration");
	}
}
