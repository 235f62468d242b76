/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See vectors.h.
 */
#include "instrument/vectors.h"

#include <cpuid.h>
#include <stdbool.h>

#include "instrument/shadow.h"

#define CPUID_OSXSAVE    (1u << 27)
#define CPUID_LEAF_XSAVE 0xd
/* AMX tiles: eight KiB that no code of ours or of libc's touches. Intel SDM volume 1, 13.1. */
#define XSTATE_TILES_MASK (3ull << 17)

static uint64_t saved_xstate_mask; /* to save; 0: fxsave(1) is all there is */

static uint64_t read_enabled_xstates(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

void vectors_detect_saved_states(void)
{
	uint32_t a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & CPUID_OSXSAVE))
		return;
	saved_xstate_mask = read_enabled_xstates() & ~XSTATE_TILES_MASK;
	/* The standard format has fixed places, so its size is that of the highest state. */
	if (!__get_cpuid_count(CPUID_LEAF_XSAVE, 0, &a, &b, &c, &d) ||
	    b > SHADOW_THREAD_VECTOR_AREA_BYTES)
		saved_xstate_mask &= 7;
}

uint64_t vectors_call_preserving_registers(void *area, uint64_t (*function)(void *), void *argument)
{
	uint32_t low = (uint32_t)saved_xstate_mask, high = (uint32_t)(saved_xstate_mask >> 32);
	uint64_t result;

	if (saved_xstate_mask)
		__asm__ volatile("xsave64 (%0)" : : "r"(area), "a"(low), "d"(high) : "memory");
	else
		__asm__ volatile("fxsave64 (%0)" : : "r"(area) : "memory");
	result = function(argument);
	if (saved_xstate_mask)
		__asm__ volatile("xrstor64 (%0)" : : "r"(area), "a"(low), "d"(high) : "memory");
	else
		__asm__ volatile("fxrstor64 (%0)" : : "r"(area) : "memory");
	return result;
}
