/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * global_delay at a moment: as far as the furthest thread that gains local delay at that time
 * (struct causal_runner), or what the control file has, where that is more.
 */
#ifndef KYMO_COMMON_CAUSAL_GLOBAL_DELAY_H
#define KYMO_COMMON_CAUSAL_GLOBAL_DELAY_H

#include <stdatomic.h>
#include <stdint.h>

#include "kymo/causal.h"

#define CAUSAL_RATE_FIXED_POINT_ONE (1ull << 32)

/* What local_delay grows by from one moment to a later one; what `begin`, `step`, `rates` and
 * `jumps` are is written above struct causal_runner. */
static inline int64_t causal_compute_local_delay_growth(const _Atomic uint64_t *rates,
							const _Atomic int64_t *jumps,
							uint64_t begin, uint64_t step,
							uint64_t from, uint64_t to)
{
	int64_t grown = 0;

	for (uint32_t i = 0; i < CAUSAL_STEPS && from < to; i++) {
		uint64_t rate = atomic_load_explicit(&rates[i], memory_order_acquire);
		uint64_t edge = i + 1 < CAUSAL_STEPS ? begin + (step << i) : to;

		if (edge <= from)
			continue;
		edge = edge < to ? edge : to;
		rate = rate < CAUSAL_RATE_FIXED_POINT_ONE ? rate : CAUSAL_RATE_FIXED_POINT_ONE;
		grown += (int64_t)((unsigned __int128)(edge - from) * rate >> 32);
		from = edge;
		if (i + 1 < CAUSAL_STEPS && edge == begin + (step << i))
			grown += atomic_load_explicit(&jumps[i + 1], memory_order_acquire);
	}
	return grown;
}

/* 0: the thread waits, or its state is just being written. */
static inline uint64_t causal_compute_runner_local_delay(const struct causal_runner *runner,
							 uint64_t now)
{
	uint64_t sequence = atomic_load_explicit(&runner->sequence, memory_order_acquire);
	uint64_t begin = atomic_load_explicit(&runner->begin, memory_order_acquire);
	uint64_t step = atomic_load_explicit(&runner->step, memory_order_acquire);
	uint64_t delay = atomic_load_explicit(&runner->delay, memory_order_acquire);
	uint64_t ticks = atomic_load_explicit(&runner->ticks, memory_order_acquire);
	uint64_t until = atomic_load_explicit(&runner->until, memory_order_acquire);
	int64_t grown;

	if (!begin || sequence & 1)
		return 0;
	now = now < until ? now : until;
	grown = causal_compute_local_delay_growth(runner->rates, runner->jumps, begin, step, ticks,
						  now);
	if (atomic_load_explicit(&runner->sequence, memory_order_relaxed) != sequence)
		return 0;
	return delay + (uint64_t)grown;
}

static inline uint64_t causal_compute_global_delay(const struct causal_control *control,
						   uint64_t now)
{
	uint64_t most = atomic_load_explicit(&control->global_delay, memory_order_relaxed);
	uint64_t used = atomic_load_explicit(&control->runners_used, memory_order_relaxed);

	for (; used; used &= used - 1) {
		uint64_t delay = causal_compute_runner_local_delay(
			&control->runners[__builtin_ctzll(used)], now);

		most = delay > most ? delay : most;
	}
	return most;
}

#endif
