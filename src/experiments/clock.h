/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The time stamps of profiled processes, read by kymo: the TSC where it is invariant (CPUID
 * 0x80000007 EDX bit 8; Intel SDM vol. 3, 18.17.1), else nanoseconds, as core/base/ticks.h has
 * them.
 */
#ifndef KYMO_EXPERIMENTS_CLOCK_H
#define KYMO_EXPERIMENTS_CLOCK_H

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>
#include <x86intrin.h>

#include "common/monotonic.h"

struct causal_clock {
	uint64_t start_ns, start_ticks; /* the same moment */
	double ns_per_tick;
	bool ticks_are_ns;
};

static inline uint64_t causal_clock_read_ticks(const struct causal_clock *clock)
{
	return clock->ticks_are_ns ? monotonic_ns() : __rdtsc();
}

/* The rate as it was since the start; better the longer that is ago. */
static inline void causal_clock_measure_rate(struct causal_clock *clock)
{
	uint64_t ns = monotonic_ns() - clock->start_ns;
	uint64_t ticks = causal_clock_read_ticks(clock) - clock->start_ticks;

	if (!clock->ticks_are_ns && ticks)
		clock->ns_per_tick = (double)ns / (double)ticks;
}

/* Takes some milliseconds, of which it uses none: the rate is then good to 1e-4. */
static inline void causal_clock_init(struct causal_clock *clock)
{
	static const struct timespec some_time = {.tv_nsec = 3000000};
	unsigned a, b, c, d = 0;

	clock->ticks_are_ns = !__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8);
	clock->ns_per_tick = 1;
	clock->start_ns = monotonic_ns();
	clock->start_ticks = causal_clock_read_ticks(clock);
	if (clock->ticks_are_ns)
		return;
	nanosleep(&some_time, NULL);
	causal_clock_measure_rate(clock);
}

/* Durations; negative ones too. */
static inline int64_t causal_clock_ticks_to_ns(const struct causal_clock *clock, int64_t ticks)
{
	return (int64_t)((double)ticks * clock->ns_per_tick);
}

static inline uint64_t causal_clock_ns_to_ticks(const struct causal_clock *clock, uint64_t ns)
{
	return (uint64_t)((double)ns / clock->ns_per_tick);
}

#endif
