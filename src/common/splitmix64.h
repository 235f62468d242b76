/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * SplitMix64 (Steele, Lea and Flood, 2014): a generator of random numbers whose state is one word,
 * and the mixing function at its end, a hash of one word. No library, no lock: for handlers as
 * well.
 */
#ifndef KYMO_COMMON_SPLITMIX64_H
#define KYMO_COMMON_SPLITMIX64_H

#include <stdint.h>

#define SPLITMIX64_STEP UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t splitmix64_mix(uint64_t value)
{
	value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
	return value ^ value >> 31;
}

/* The next number; any state is a good one to begin with. */
static inline uint64_t splitmix64_next(uint64_t *state)
{
	*state += SPLITMIX64_STEP;
	return splitmix64_mix(*state);
}

#endif
