/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The tracepoints of the LTTng-UST peer: a begin and an end with a name each.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER kymo_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_region.h"

#if !defined(KYMO_BENCH_LTTNG_REGION_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define KYMO_BENCH_LTTNG_REGION_H

#include <lttng/tracepoint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(kymo_bench, begin, LTTNG_UST_TP_ARGS(const char *, name),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_string(name, name)))
LTTNG_UST_TRACEPOINT_EVENT(kymo_bench, end, LTTNG_UST_TP_ARGS(const char *, name),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_string(name, name)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
