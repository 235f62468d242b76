/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See ticks.h.
 */
#include "core/base/ticks.h"

#include <cpuid.h>

#define TICK_NS_PAIR_READ_TRIES    8u
#define CLOCKS_SNAPSHOT_READ_TRIES 4u
#define TICK_RATE_MEASURE_NS       50000u

bool kymo_ticks_are_ns;

static bool tsc_is_invariant(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}

struct clocks_snapshot read_clocks_snapshot(void)
{
	struct clocks_snapshot best = {0};
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < CLOCKS_SNAPSHOT_READ_TRIES && least; i++) {
		uint64_t before = ticks_now(), took;
		struct clocks_snapshot clocks = {
			.monotonic_ns = read_posix_clock_ns(CLOCK_MONOTONIC),
			.boottime_ns = read_posix_clock_ns(CLOCK_BOOTTIME),
			.realtime_ns = read_posix_clock_ns(CLOCK_REALTIME)};

		took = ticks_now() - before;
		clocks.ticks = before + took / 2;
		if (took < least)
			best = clocks;
		least = took < least ? took : least;
	}
	return best;
}

/* The same moment by both clocks. Who loses the processor between two readings reads them again: on
 * a busy machine that is milliseconds. */
struct tick_ns_pair {
	uint64_t ns, ticks;
};

static struct tick_ns_pair read_tick_ns_pair(void)
{
	struct tick_ns_pair moment = {0};
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < TICK_NS_PAIR_READ_TRIES; i++) {
		uint64_t before = __rdtsc(), ns = read_posix_clock_ns(CLOCK_MONOTONIC);
		uint64_t took = __rdtsc() - before;

		if (took >= least)
			continue;
		least = took;
		moment = (struct tick_ns_pair){ns, before + took / 2};
	}
	return moment;
}

/* Good to about 1e-3: readers use the clock snapshots in the spool, this rate only bounds
 * intervals. */
static uint64_t measure_tick_hz(void)
{
	struct tick_ns_pair start = read_tick_ns_pair(), end;

	do
		end = read_tick_ns_pair();
	while (end.ns - start.ns < TICK_RATE_MEASURE_NS);
	return (uint64_t)((double)(end.ticks - start.ticks) * 1e9 / (double)(end.ns - start.ns));
}

uint64_t ticks_init_and_get_hz(void)
{
	unsigned a, b, c, d;

	kymo_ticks_are_ns = !tsc_is_invariant();
	if (kymo_ticks_are_ns)
		return 1000000000u;
	/* CPUID 0x15: TSC = crystal (ECX, Hz) * EBX / EAX (Intel SDM vol. 2, CPUID). */
	if (__get_cpuid_count(0x15, 0, &a, &b, &c, &d) && a && b && c)
		return (uint64_t)c * b / a;
	return measure_tick_hz();
}
