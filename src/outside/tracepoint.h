/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The tracepoint by which the kernel says which thread wakes which (sched:sched_waking).
 */
#ifndef KYMO_OUTSIDE_TRACEPOINT_H
#define KYMO_OUTSIDE_TRACEPOINT_H

#include <stdint.h>

struct outside_tracepoint {
	uint64_t id;         /* 0: not found */
	uint32_t pid_offset; /* of the woken thread's number in the raw data */
	const char *why_not; /* static text, where it was not found */
};

struct outside_tracepoint outside_tracepoint_find_waking(void);

#endif
