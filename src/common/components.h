/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The components that COMPONENTS can name: what a profile can measure in every region. The table is
 * the one source for the process (src/regions), the command's check and `kymo avail components`.
 * A name that is not here may be a perf event (perf_events.h).
 */
#ifndef KYMO_COMMON_COMPONENTS_H
#define KYMO_COMMON_COMPONENTS_H

#include <stdint.h>

#include "kymo/spool.h"

#define COMPONENTS_PER_PROFILE_MAX            16 /* in one profile */
#define PERF_EVENT_COMPONENTS_PER_PROFILE_MAX 8  /* of them perf events */

/* Where a value is read; components of one source share one reading of it. */
enum component_source {
	COMPONENT_SOURCE_TICKS,         /* the time stamp that the event has anyway */
	COMPONENT_SOURCE_CLOCK,         /* clock_gettime(field) */
	COMPONENT_SOURCE_THREAD_USAGE,  /* getrusage(RUSAGE_THREAD) */
	COMPONENT_SOURCE_PROCESS_USAGE, /* getrusage(RUSAGE_SELF) */
	COMPONENT_SOURCE_MEMORY,        /* /proc/self/statm */
	COMPONENT_SOURCE_IO,            /* /proc/thread-self/io */
	COMPONENT_SOURCE_CALL_COUNT,    /* nothing: the count of calls */
	COMPONENT_SOURCE_QUOTIENT, /* of the sums of two others, in percent; field: numerator << 8 |
			       denominator, as component_id */
	COMPONENT_SOURCE_PERF_EVENT /* perf event; field: its index among COMPONENT_EVENTS */
};

enum component_id {
	COMPONENT_WALL_CLOCK,
	COMPONENT_CPU_CLOCK,
	COMPONENT_USER_CLOCK,
	COMPONENT_SYSTEM_CLOCK,
	COMPONENT_THREAD_CPU_CLOCK,
	COMPONENT_PROCESS_CPU_CLOCK,
	COMPONENT_MONOTONIC_CLOCK,
	COMPONENT_MONOTONIC_RAW_CLOCK,
	COMPONENT_CPU_UTIL,
	COMPONENT_THREAD_CPU_UTIL,
	COMPONENT_PROCESS_CPU_UTIL,
	COMPONENT_CALL_COUNT,
	COMPONENT_PEAK_RSS,
	COMPONENT_CURRENT_PEAK_RSS,
	COMPONENT_RSS_AT_CALL_END,
	COMPONENT_VIRTUAL_MEMORY,
	COMPONENT_MINOR_FAULTS,
	COMPONENT_MAJOR_FAULTS,
	COMPONENT_VOLUNTARY_SWITCHES,
	COMPONENT_INVOLUNTARY_SWITCHES,
	COMPONENT_READ_BYTES,
	COMPONENT_WRITTEN_BYTES,
	COMPONENT_READ_CHARS,
	COMPONENT_WRITTEN_CHARS,
	COMPONENT_ID_COUNT
};

/* Fields of the sources that have several values. */
enum component_usage_field_kind {
	COMPONENT_USAGE_CPU_NS,
	COMPONENT_USAGE_USER_NS,
	COMPONENT_USAGE_SYSTEM_NS,
	COMPONENT_USAGE_PEAK_RSS,
	COMPONENT_USAGE_MINOR_FAULTS,
	COMPONENT_USAGE_MAJOR_FAULTS,
	COMPONENT_USAGE_VOLUNTARY_SWITCHES,
	COMPONENT_USAGE_INVOLUNTARY_SWITCHES
};
enum component_memory_field_kind { COMPONENT_MEMORY_VIRTUAL, COMPONENT_MEMORY_RESIDENT };
enum component_io_field_kind {
	COMPONENT_IO_READ_CHARS,
	COMPONENT_IO_WRITTEN_CHARS,
	COMPONENT_IO_READ_BYTES,
	COMPONENT_IO_WRITTEN_BYTES
};

struct component_description {
	const char *name, *unit, *help;
	enum spool_component_kind kind;
	enum component_source source;
	uint32_t field;
};

extern const struct component_description component_table[COMPONENT_ID_COUNT];

#endif
