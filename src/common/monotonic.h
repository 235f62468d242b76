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

static inline uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

#endif
