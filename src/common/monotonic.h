/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Time that no administrator sets, for deadlines and spans, by libc's clock_gettime(). libkymo has
 * ticks of its own (core/base/ticks.h).
 */
#ifndef KYMO_COMMON_MONOTONIC_H
#define KYMO_COMMON_MONOTONIC_H

#include <stdint.h>
#include <time.h>

#include "common/time_units.h"

static inline uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static inline uint64_t monotonic_ns(void)
{
	return clock_read_ns(CLOCK_MONOTONIC);
}

#endif
