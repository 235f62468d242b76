/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See ticks.h.
 */
#include "core/ticks.h"

#include <cpuid.h>

#define MOMENT_TRIES 8u
#define CLOCKS_TRIES 4u
#define MEASURED_NS  50000u

bool kymo_ticks_are_ns;

static bool tsc_is_invariant(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}

struct ticks_clocks ticks_clocks_now(void)
{
	struct ticks_clocks best = {0};
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < CLOCKS_TRIES && least; i++) {
		uint64_t before = ticks_now(), took;
		struct ticks_clocks clocks = {.monotonic_ns = ticks_clock_ns(CLOCK_MONOTONIC),
					      .boottime_ns = ticks_clock_ns(CLOCK_BOOTTIME),
					      .realtime_ns = ticks_clock_ns(CLOCK_REALTIME)};

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
struct moment {
	uint64_t ns, ticks;
};

static struct moment moment_now(void)
{
	struct moment moment = {0};
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < MOMENT_TRIES; i++) {
		uint64_t before = __rdtsc(), ns = ticks_clock_ns(CLOCK_MONOTONIC);
		uint64_t took = __rdtsc() - before;

		if (took >= least)
			continue;
		least = took;
		moment = (struct moment){ns, before + took / 2};
	}
	return moment;
}

/* Good to about 1e-3: readers use the clock snapshots in the spool, this rate only bounds
 * intervals. */
static uint64_t measure_hz(void)
{
	struct moment start = moment_now(), end;

	do
		end = moment_now();
	while (end.ns - start.ns < MEASURED_NS);
	return (uint64_t)((double)(end.ticks - start.ticks) * 1e9 / (double)(end.ns - start.ns));
}

uint64_t ticks_init(void)
{
	unsigned a, b, c, d;

	kymo_ticks_are_ns = !tsc_is_invariant();
	if (kymo_ticks_are_ns)
		return 1000000000u;
	/* CPUID 0x15: TSC = crystal (ECX, Hz) * EBX / EAX (Intel SDM vol. 2, CPUID). */
	if (__get_cpuid_count(0x15, 0, &a, &b, &c, &d) && a && b && c)
		return (uint64_t)c * b / a;
	return measure_hz();
}
