/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The one list of what can interrupt threads for samples of CPU time, in order of preference:
 * X(identifier, number, text). `number` is SPOOL_CPU_SOURCE_<number> of kymo/spool.h, `identifier`
 * the name in results and sampling_source_<identifier> (core/sampling_source.h), and `text` what
 * the summary says.
 */
#ifndef KYMO_COMMON_SAMPLING_SOURCES_H
#define KYMO_COMMON_SAMPLING_SOURCES_H

/* clang-format off */
#define SAMPLING_SOURCE_LIST(X)                                                              \
	X(perf_sigtrap, PERF_SIGTRAP, "the kernel's task clock (perf event, SIGTRAP)")       \
	X(perf_signal, PERF_SIGNAL, "the kernel's task clock (perf event, signal)")          \
	X(timer, TIMER, "CPU-time timers")
/* Besides, what samples a process from outside of it (src/outside). */
#define SAMPLING_SOURCE_LIST_WITH_OUTSIDE(X)                                                 \
	SAMPLING_SOURCE_LIST(X)                                                              \
	X(outside, OUTSIDE, "the kernel's CPU clock (perf events, read by the kymo command)")
/* clang-format on */

#define SAMPLING_SOURCE_PLUS_ONE(identifier, number, text) +1
/* Numbers of sources are below it; 0 is none. */
#define SAMPLING_SOURCE_NUMBERS_END (1 SAMPLING_SOURCE_LIST_WITH_OUTSIDE(SAMPLING_SOURCE_PLUS_ONE))

#endif
