/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Time stamps: the TSC where it is invariant (CPUID 0x80000007 EDX bit 8; Intel SDM vol.
 * 3, 18.17.1) and the kernel trusts it, else CLOCK_MONOTONIC. Converted to clock time out of
 * process, from snapshots. Signal-safe.
 *
 * A program may forbid its threads to read the TSC (prctl(2), PR_SET_TSC), or to execute CPUID
 * (arch_prctl(2), ARCH_SET_CPUID), so as to see each such instruction as a SIGSEGV. From there on
 * the clock tells what the TSC would.
 */
#ifndef KYMO_CORE_BASE_TICKS_H
#define KYMO_CORE_BASE_TICKS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <x86intrin.h>

#include "common/syscalls.h"

extern bool kymo_ticks_are_ns;
/* The TSC is not read: ticks are nanoseconds, or calculated from the clock. */
extern bool kymo_ticks_are_by_clock;

static inline uint64_t read_posix_clock_ns(int clock)
{
	struct timespec time = {0, 0};

	sys_call2(SYS_clock_gettime, clock, (long)&time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* CPU time of any thread of this process; 0 when it is gone. Clock id: ~tid << 3, per-thread bit 4,
 * scheduler clock 2 (kernel, include/linux/posix-timers.h). */
static inline uint64_t read_cpu_ns_of_tid(uint32_t tid)
{
	return read_posix_clock_ns((int)(~tid << 3 | 4 | 2));
}

uint64_t ticks_read_by_clock(void);

static inline uint64_t ticks_now(void)
{
	/* acquire: pairs with ticks_leave_tsc() */
	if (__builtin_expect(__atomic_load_n(&kymo_ticks_are_by_clock, __ATOMIC_ACQUIRE), 0))
		return ticks_read_by_clock();
	return __rdtsc();
}

/* A thread is about to lose its right to read the TSC: ticks go on as they were, for the whole
 * process. To within about 1e-3 of the time since. */
void ticks_leave_tsc(void);

/* Chooses the clock; returns its rate in Hz (measured over 50 us where CPUID does not tell, to
 * about 1e-3, also where other threads take the processor meanwhile). */
uint64_t ticks_init_and_get_hz(void);

/* All clocks at one moment, to within what reading them takes: a microsecond. */
struct clocks_snapshot {
	uint64_t ticks, monotonic_ns, boottime_ns, realtime_ns;
};
struct clocks_snapshot read_clocks_snapshot(void);

#endif
