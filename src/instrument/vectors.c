/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See vectors.h.
 */
#include "instrument/vectors.h"

#include <cpuid.h>
#include <stdbool.h>

#include "instrument/shadow.h"

#define CPUID_OSXSAVE (1u << 27)
#define CPUID_XSAVE   0xd
/* AMX tiles: eight KiB that no code of ours or of libc's touches. Intel SDM volume 1, 13.1. */
#define STATE_TILES (3ull << 17)

static uint64_t states; /* to save; 0: fxsave(1) is all there is */

static uint64_t enabled_states(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

void vectors_init(void)
{
	uint32_t a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & CPUID_OSXSAVE))
		return;
	states = enabled_states() & ~STATE_TILES;
	/* The standard format has fixed places, so its size is that of the highest state. */
	if (!__get_cpuid_count(CPUID_XSAVE, 0, &a, &b, &c, &d) || b > SHADOW_VECTORS)
		states &= 7;
}

uint64_t vectors_keep(void *area, uint64_t (*function)(void *), void *argument)
{
	uint32_t low = (uint32_t)states, high = (uint32_t)(states >> 32);
	uint64_t result;

	if (states)
		__asm__ volatile("xsave64 (%0)" : : "r"(area), "a"(low), "d"(high) : "memory");
	else
		__asm__ volatile("fxsave64 (%0)" : : "r"(area) : "memory");
	result = function(argument);
	if (states)
		__asm__ volatile("xrstor64 (%0)" : : "r"(area), "a"(low), "d"(high) : "memory");
	else
		__asm__ volatile("fxrstor64 (%0)" : : "r"(area) : "memory");
	return result;
}
