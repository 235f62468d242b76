/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See coz.h.
 */
#include "causal/coz.h"

#include "causal/causal.h"

static __thread struct causal_wait_state coz_blocking_wait_state;

uint64_t *causal_coz_find_or_add_counter(uint32_t kind, const char *name)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_acquire);
	uint32_t point;

	if (!control || !name || kind > CAUSAL_POINT_END)
		return NULL;
	point = causal_find_or_add_point(name, (enum causal_point_kind)kind, CAUSAL_ORIGIN_COZ);
	return point < CAUSAL_POINTS ? &control->points[point].coz[0] : NULL;
}

void causal_coz_before_blocking(void)
{
	if (causal_is_active())
		causal_apply_delay_and_begin_wait(&coz_blocking_wait_state);
}

void causal_coz_after_blocking(bool woken)
{
	if (causal_is_active())
		causal_end_wait_and_apply_delay(&coz_blocking_wait_state,
						woken ? CAUSAL_WAKER_SESSION
						      : CAUSAL_WAKER_OUTSIDE);
}
