/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Spans of time in nanoseconds, the unit of all times that are not said to be in another.
 */
#ifndef KYMO_COMMON_TIME_UNITS_H
#define KYMO_COMMON_TIME_UNITS_H

#include <stdint.h>
#include <sys/time.h>

#define MICROSECOND_NS UINT64_C(1000)
#define MILLISECOND_NS UINT64_C(1000000)
#define SECOND_NS      UINT64_C(1000000000)

static inline uint64_t timeval_to_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * SECOND_NS + (uint64_t)time->tv_usec * MICROSECOND_NS;
}

#endif
