/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The time stamp of a callback: ticks as spool files have them. Where they are not the TSC, the
 * clock is read by libc, which needs no system call for it.
 */
#ifndef KYMO_NCCL_CLOCK_H
#define KYMO_NCCL_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "core/base/ticks.h"

static inline uint64_t nccl_clock_read_ns(clockid_t clock)
{
	struct timespec time = {0, 0};

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline uint64_t nccl_clock_read_ticks(void)
{
	if (__builtin_expect(kymo_ticks_are_ns, 0))
		return nccl_clock_read_ns(CLOCK_MONOTONIC);
	return __rdtsc();
}

#endif
