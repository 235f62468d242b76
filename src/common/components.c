/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See components.h. Names are the field's (timemory, ROCm Systems Profiler).
 */
#include "common/components.h"

#include <time.h>

#define PHASE_KIND SPOOL_COMPONENT_PHASE
#define LEVEL_KIND SPOOL_COMPONENT_LEVEL
#define COUNT_KIND SPOOL_COMPONENT_COUNT
#define RATIO_KIND SPOOL_COMPONENT_RATIO
#define PACK_QUOTIENT_COMPONENT_IDS(numerator, denominator)                                        \
	(COMPONENT_##numerator << 8 | COMPONENT_##denominator)

/* clang-format off */
const struct component_description component_table[COMPONENT_ID_COUNT] = {
	[COMPONENT_WALL_CLOCK] = {"wall_clock", "ns", "real time", PHASE_KIND, COMPONENT_SOURCE_TICKS, 0},
	[COMPONENT_CPU_CLOCK] = {"cpu_clock", "ns", "CPU time of the process, user and kernel", PHASE_KIND,
		COMPONENT_SOURCE_PROCESS_USAGE, COMPONENT_USAGE_CPU_NS},
	[COMPONENT_USER_CLOCK] = {"user_clock", "ns", "CPU time of the process in its own code", PHASE_KIND,
		COMPONENT_SOURCE_PROCESS_USAGE, COMPONENT_USAGE_USER_NS},
	[COMPONENT_SYSTEM_CLOCK] = {"system_clock", "ns", "CPU time of the process in the kernel", PHASE_KIND,
		COMPONENT_SOURCE_PROCESS_USAGE, COMPONENT_USAGE_SYSTEM_NS},
	[COMPONENT_THREAD_CPU_CLOCK] = {"thread_cpu_clock", "ns", "CPU time of the thread", PHASE_KIND,
		COMPONENT_SOURCE_CLOCK, CLOCK_THREAD_CPUTIME_ID},
	[COMPONENT_PROCESS_CPU_CLOCK] = {"process_cpu_clock", "ns", "CPU time of all threads of the process", PHASE_KIND,
		COMPONENT_SOURCE_CLOCK, CLOCK_PROCESS_CPUTIME_ID},
	[COMPONENT_MONOTONIC_CLOCK] = {"monotonic_clock", "ns", "CLOCK_MONOTONIC", PHASE_KIND,
		COMPONENT_SOURCE_CLOCK, CLOCK_MONOTONIC},
	[COMPONENT_MONOTONIC_RAW_CLOCK] = {"monotonic_raw_clock", "ns", "CLOCK_MONOTONIC_RAW: without corrections", PHASE_KIND,
		COMPONENT_SOURCE_CLOCK, CLOCK_MONOTONIC_RAW},
	[COMPONENT_CPU_UTIL] = {"cpu_util", "%", "cpu_clock in percent of wall_clock", RATIO_KIND,
		COMPONENT_SOURCE_QUOTIENT, PACK_QUOTIENT_COMPONENT_IDS(CPU_CLOCK, WALL_CLOCK)},
	[COMPONENT_THREAD_CPU_UTIL] = {"thread_cpu_util", "%", "thread_cpu_clock in percent of wall_clock", RATIO_KIND,
		COMPONENT_SOURCE_QUOTIENT, PACK_QUOTIENT_COMPONENT_IDS(THREAD_CPU_CLOCK, WALL_CLOCK)},
	[COMPONENT_PROCESS_CPU_UTIL] = {"process_cpu_util", "%", "process_cpu_clock in percent of wall_clock", RATIO_KIND,
		COMPONENT_SOURCE_QUOTIENT, PACK_QUOTIENT_COMPONENT_IDS(PROCESS_CPU_CLOCK, WALL_CLOCK)},
	[COMPONENT_CALL_COUNT] = {"trip_count", "count", "calls", COUNT_KIND, COMPONENT_SOURCE_CALL_COUNT, 0},
	[COMPONENT_PEAK_RSS] = {"peak_rss", "bytes", "growth of the most memory that was resident", PHASE_KIND,
		COMPONENT_SOURCE_PROCESS_USAGE, COMPONENT_USAGE_PEAK_RSS},
	[COMPONENT_CURRENT_PEAK_RSS] = {"current_peak_rss", "bytes", "the most memory that was resident so far", LEVEL_KIND,
		COMPONENT_SOURCE_PROCESS_USAGE, COMPONENT_USAGE_PEAK_RSS},
	[COMPONENT_RSS_AT_CALL_END] = {"page_rss", "bytes", "resident memory at the end of the call", LEVEL_KIND,
		COMPONENT_SOURCE_MEMORY, COMPONENT_MEMORY_RESIDENT},
	[COMPONENT_VIRTUAL_MEMORY] = {"virtual_memory", "bytes", "address space at the end of the call", LEVEL_KIND,
		COMPONENT_SOURCE_MEMORY, COMPONENT_MEMORY_VIRTUAL},
	[COMPONENT_MINOR_FAULTS] = {"num_minor_page_faults", "count", "page faults of the thread without I/O", PHASE_KIND,
		COMPONENT_SOURCE_THREAD_USAGE, COMPONENT_USAGE_MINOR_FAULTS},
	[COMPONENT_MAJOR_FAULTS] = {"num_major_page_faults", "count", "page faults of the thread with I/O", PHASE_KIND,
		COMPONENT_SOURCE_THREAD_USAGE, COMPONENT_USAGE_MAJOR_FAULTS},
	[COMPONENT_VOLUNTARY_SWITCHES] = {"voluntary_context_switch", "count", "times the thread waited", PHASE_KIND,
		COMPONENT_SOURCE_THREAD_USAGE, COMPONENT_USAGE_VOLUNTARY_SWITCHES},
	[COMPONENT_INVOLUNTARY_SWITCHES] = {"priority_context_switch", "count", "times the thread was displaced", PHASE_KIND,
		COMPONENT_SOURCE_THREAD_USAGE, COMPONENT_USAGE_INVOLUNTARY_SWITCHES},
	[COMPONENT_READ_BYTES] = {"read_bytes", "bytes", "read from storage by the thread", PHASE_KIND,
		COMPONENT_SOURCE_IO, COMPONENT_IO_READ_BYTES},
	[COMPONENT_WRITTEN_BYTES] = {"written_bytes", "bytes", "sent to storage by the thread", PHASE_KIND,
		COMPONENT_SOURCE_IO, COMPONENT_IO_WRITTEN_BYTES},
	[COMPONENT_READ_CHARS] = {"read_char", "bytes", "returned to the thread by reading calls", PHASE_KIND,
		COMPONENT_SOURCE_IO, COMPONENT_IO_READ_CHARS},
	[COMPONENT_WRITTEN_CHARS] = {"written_char", "bytes", "handed over by the thread to writing calls", PHASE_KIND,
		COMPONENT_SOURCE_IO, COMPONENT_IO_WRITTEN_CHARS},
};
/* clang-format on */
