/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See coz.h.
 */
#include "causal/coz.h"

#include "causal/causal.h"
#include "causal/points_named.h"

/* Bits of the points that this process counts in. */
static _Atomic uint64_t counted[CAUSAL_POINTS / 64];
static _Atomic uint32_t changed;

static __thread struct causal_wait blocked;

uint64_t *causal_coz_counter(uint32_t kind, const char *name)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_acquire);
	uint32_t point;

	if (!control || !name || kind > CAUSAL_POINT_END)
		return NULL;
	point = causal_point(name, (enum causal_point_kind)kind, CAUSAL_ORIGIN_COZ);
	if (point >= CAUSAL_POINTS)
		return NULL;
	atomic_fetch_or(&counted[point / 64], 1ull << point % 64);
	atomic_store(&changed, 1);
	background_wake(&kymo_runtime.background);
	return &control->points[point].coz[0];
}

void causal_coz_before_block(void)
{
	if (causal_on())
		causal_before_wait(&blocked);
}

void causal_coz_after_block(bool woken)
{
	if (causal_on())
		causal_after_wait(&blocked, woken ? CAUSAL_WAKER_SESSION : CAUSAL_WAKER_OUTSIDE);
}

bool causal_coz_changed(void)
{
	return atomic_exchange(&changed, 0);
}

void causal_coz_watch(struct runtime *runtime)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_acquire);

	for (uint32_t point = 0; control && point < CAUSAL_POINTS; point++) {
		if (atomic_load(&counted[point / 64]) >> point % 64 & 1)
			points_named_at(runtime, POINTS_NAMED_COUNTER,
					(uint64_t)(uintptr_t)&control->points[point].coz[0], point);
	}
}

void causal_coz_forked(void)
{
	atomic_store(&changed, 1);
}
