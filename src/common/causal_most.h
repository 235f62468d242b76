/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * G at a moment: as far as the furthest thread that earns at that time (struct causal_runner), or
 * what the control file has, where that is more.
 */
#ifndef KYMO_COMMON_CAUSAL_MOST_H
#define KYMO_COMMON_CAUSAL_MOST_H

#include <stdatomic.h>
#include <stdint.h>

#include "kymo/causal.h"

#define CAUSAL_RATE_ONE (1ull << 32)

/* 0: the thread waits, or its state is just being written. */
static inline uint64_t causal_runner_delay(const struct causal_runner *runner, uint64_t now)
{
	uint64_t sequence = atomic_load_explicit(&runner->sequence, memory_order_acquire);
	uint64_t rate = atomic_load_explicit(&runner->rate, memory_order_acquire);
	uint64_t delay = atomic_load_explicit(&runner->delay, memory_order_acquire);
	uint64_t ticks = atomic_load_explicit(&runner->ticks, memory_order_acquire);
	uint64_t until = atomic_load_explicit(&runner->until, memory_order_acquire);

	if (!rate || sequence & 1 || rate > CAUSAL_RATE_ONE ||
	    atomic_load_explicit(&runner->sequence, memory_order_relaxed) != sequence)
		return 0;
	now = now < until ? now : until;
	return now > ticks ? delay + (uint64_t)((unsigned __int128)(now - ticks) * rate >> 32) : 0;
}

static inline uint64_t causal_most(const struct causal_control *control, uint64_t now)
{
	uint64_t most = atomic_load_explicit(&control->delay, memory_order_relaxed);
	uint64_t used = atomic_load_explicit(&control->runners_used, memory_order_relaxed);

	for (; used; used &= used - 1) {
		uint64_t delay = causal_runner_delay(&control->runners[__builtin_ctzll(used)], now);

		most = delay > most ? delay : most;
	}
	return most;
}

#endif
