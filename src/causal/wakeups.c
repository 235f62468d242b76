/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Who wakes whom, and when: by the processes of a session (marks in the shared file), and by the
 * threads of this one.
 */
#include "causal/state.h"

#define WAKEUP_SLOT_COUNT                                                                          \
	256u /* power of two; things at the same place are taken for each other                    \
	      */

static struct {
	_Atomic uint64_t wakeup_ticks, global_delay_ticks;
} last_wakeup_by_slot[WAKEUP_SLOT_COUNT];

static struct causal_control *load_causal_control(void)
{
	return atomic_load_explicit(&kymo_causal, memory_order_relaxed);
}

void causal_publish_wakeup_to_session(uint64_t hash)
{
	struct causal_control *control = load_causal_control();

	if (control && process_is_where_runtime_started())
		causal_store_relaxed(&control->marks[hash % CAUSAL_MARKS], ticks_now());
}

bool causal_wakeup_was_published_since(uint64_t hash, uint64_t ticks)
{
	struct causal_control *control = load_causal_control();

	return control && causal_load_relaxed(&control->marks[hash % CAUSAL_MARKS]) >= ticks;
}

/* ---- what is given from thread to thread ---- */

static uint64_t get_wakeup_slot_index(const volatile void *what)
{
	return ((uint64_t)(uintptr_t)what * 0x9e3779b97f4a7c15ull >> 32) % WAKEUP_SLOT_COUNT;
}

void causal_record_wakeup_in_process(const volatile void *what)
{
	struct causal_control *control = load_causal_control();
	uint64_t place = get_wakeup_slot_index(what), now = ticks_now();

	if (!control || !process_is_where_runtime_started())
		return;
	causal_store_relaxed(&last_wakeup_by_slot[place].global_delay_ticks,
			     causal_compute_global_delay(control, now));
	/* release: who sees the time sees the delay, or a later one */
	atomic_store_explicit(&last_wakeup_by_slot[place].wakeup_ticks, now, memory_order_release);
}

uint64_t causal_get_global_delay_at_wakeup(const volatile void *what, uint64_t since)
{
	uint64_t place = get_wakeup_slot_index(what);

	if (atomic_load_explicit(&last_wakeup_by_slot[place].wakeup_ticks, memory_order_acquire) <
	    since)
		return UINT64_MAX;
	return causal_load_relaxed(&last_wakeup_by_slot[place].global_delay_ticks);
}
