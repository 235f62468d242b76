/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Who wakes whom, and when: by the processes of a session (marks in the shared file), and by the
 * threads of this one.
 */
#include "causal/state.h"

#define GIFTS 256u /* power of two; things at the same place are taken for each other */

static struct {
	_Atomic uint64_t ticks, delay;
} gifts[GIFTS];

static struct causal_control *control_now(void)
{
	return atomic_load_explicit(&kymo_causal, memory_order_relaxed);
}

void causal_mark(uint64_t hash)
{
	struct causal_control *control = control_now();

	if (control && *kymo_runtime.same_process)
		causal_set(&control->marks[hash % CAUSAL_MARKS], ticks_now());
}

bool causal_marked_since(uint64_t hash, uint64_t ticks)
{
	struct causal_control *control = control_now();

	return control && causal_get(&control->marks[hash % CAUSAL_MARKS]) >= ticks;
}

/* ---- what is given from thread to thread ---- */

static uint64_t place_of(const volatile void *what)
{
	return ((uint64_t)(uintptr_t)what * 0x9e3779b97f4a7c15ull >> 32) % GIFTS;
}

void causal_give(const volatile void *what)
{
	struct causal_control *control = control_now();
	uint64_t place = place_of(what), now = ticks_now();

	if (!control || !*kymo_runtime.same_process)
		return;
	causal_set(&gifts[place].delay, causal_most(control, now));
	/* release: who sees the time sees the delay, or a later one */
	atomic_store_explicit(&gifts[place].ticks, now, memory_order_release);
}

uint64_t causal_given(const volatile void *what, uint64_t since)
{
	uint64_t place = place_of(what);

	if (atomic_load_explicit(&gifts[place].ticks, memory_order_acquire) < since)
		return UINT64_MAX;
	return causal_get(&gifts[place].delay);
}
