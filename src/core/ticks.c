/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See ticks.h.
 */
#include "core/ticks.h"

#include <cpuid.h>

bool kymo_ticks_are_ns;

static bool tsc_is_invariant(void)
{
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}

/* Good to about 1e-3: readers use the clock snapshots in the spool, this rate only bounds
 * intervals. */
static uint64_t measure_hz(void)
{
	uint64_t start_ns = ticks_clock_ns(CLOCK_MONOTONIC), start = __rdtsc(), ns, ticks;

	do {
		ns = ticks_clock_ns(CLOCK_MONOTONIC) - start_ns;
		ticks = __rdtsc() - start;
	} while (ns < 50000);
	return (uint64_t)((double)ticks * 1e9 / (double)ns);
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
