/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See ticks.h.
 */
#include "core/base/ticks.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <sys/prctl.h>

#define TICK_NS_PAIR_READ_TRIES    8u
#define CLOCKS_SNAPSHOT_READ_TRIES 4u
#define TICK_RATE_MEASURE_NS       50000u

#define LONG_RATE_MEASURE_NS 1000000u

/* The same moment by both clocks. Who loses the processor between two readings reads them again: on
 * a busy machine that is milliseconds. */
struct tick_ns_pair {
	uint64_t ns, ticks;
};

bool kymo_ticks_are_ns, kymo_ticks_are_by_clock;
static struct tick_ns_pair first_tick_ns_pair, last_tick_ns_pair_of_tsc;
static double tick_hz_by_clock;

static bool tsc_is_forbidden(void)
{
	int state = PR_TSC_ENABLE;

	return !sys_call2(SYS_prctl, PR_GET_TSC, (long)&state) && state == PR_TSC_SIGSEGV;
}

static bool cpuid_is_forbidden(void)
{
	return sys_call2(SYS_arch_prctl, ARCH_GET_CPUID, 0) == 0;
}

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

static double get_hz_between(struct tick_ns_pair start, struct tick_ns_pair end)
{
	return (double)(end.ticks - start.ticks) * 1e9 / (double)(end.ns - start.ns);
}

/* Good to about 1e-3: readers use the clock snapshots in the spool, this rate only bounds
 * intervals. */
static uint64_t measure_tick_hz(void)
{
	struct tick_ns_pair end;

	do
		end = read_tick_ns_pair();
	while (end.ns - first_tick_ns_pair.ns < TICK_RATE_MEASURE_NS);
	return (uint64_t)get_hz_between(first_tick_ns_pair, end);
}

uint64_t ticks_init_and_get_hz(void)
{
	unsigned a, b, c, d;
	uint64_t hz;

	kymo_ticks_are_ns = tsc_is_forbidden() || cpuid_is_forbidden() || !tsc_is_invariant();
	kymo_ticks_are_by_clock = kymo_ticks_are_ns;
	if (kymo_ticks_are_ns)
		return 1000000000u;
	first_tick_ns_pair = read_tick_ns_pair();
	/* CPUID 0x15: TSC = crystal (ECX, Hz) * EBX / EAX (Intel SDM vol. 2, CPUID). */
	if (__get_cpuid_count(0x15, 0, &a, &b, &c, &d) && a && b && c)
		hz = (uint64_t)c * b / a;
	else
		hz = measure_tick_hz();
	tick_hz_by_clock = (double)hz;
	return hz;
}

void ticks_leave_tsc(void)
{
	/* Before the start, ticks_init_and_get_hz() asks. */
	if (kymo_ticks_are_by_clock || !first_tick_ns_pair.ns)
		return;
	last_tick_ns_pair_of_tsc = read_tick_ns_pair();
	if (last_tick_ns_pair_of_tsc.ns - first_tick_ns_pair.ns >= LONG_RATE_MEASURE_NS)
		tick_hz_by_clock = get_hz_between(first_tick_ns_pair, last_tick_ns_pair_of_tsc);
	/* release: pairs with ticks_now() */
	__atomic_store_n(&kymo_ticks_are_by_clock, true, __ATOMIC_RELEASE);
}

uint64_t ticks_read_by_clock(void)
{
	uint64_t now = read_posix_clock_ns(CLOCK_MONOTONIC);

	if (kymo_ticks_are_ns)
		return now;
	return last_tick_ns_pair_of_tsc.ticks +
	       (uint64_t)((double)(now - last_tick_ns_pair_of_tsc.ns) * tick_hz_by_clock * 1e-9);
}
