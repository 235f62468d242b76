/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Progress points, and visits of them. A point is found by its name, and never goes away.
 */
#include <string.h>

#include "causal/state.h"
#include "common/syscalls.h"

#define POINT_CLAIM_WAIT_YIELDS_MAX 1000

static bool point_has_name_and_kind(const struct causal_point *point, const char *name,
				    uint32_t kind)
{
	return point->kind == kind && !strncmp(point->name, name, CAUSAL_NAME_SIZE - 1);
}

/* Somebody is writing its name: a moment, unless that process was killed in it. */
static uint32_t wait_until_point_is_not_claimed(const struct causal_point *point)
{
	uint32_t state;

	for (int i = 0; i < POINT_CLAIM_WAIT_YIELDS_MAX; i++) {
		state = atomic_load_explicit(&point->state, memory_order_acquire);
		if (state != CAUSAL_POINT_CLAIMED)
			break;
		sys_call0(SYS_sched_yield);
	}
	return state;
}

static void fill_and_publish_progress_point(struct causal_point *point, const char *name,
					    enum causal_point_kind kind, enum causal_origin origin)
{
	size_t length = 0;

	for (; length < CAUSAL_NAME_SIZE - 1 && name[length]; length++)
		point->name[length] = name[length];
	point->name[length] = 0;
	point->kind = kind;
	point->origin = origin;
	atomic_store_explicit(&point->state, CAUSAL_POINT_READY, memory_order_release);
}

uint32_t causal_find_or_add_point(const char *name, enum causal_point_kind kind,
				  enum causal_origin origin)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_acquire);

	for (uint32_t i = 0; control && i < CAUSAL_POINTS; i++) {
		struct causal_point *point = &control->points[i];
		uint32_t state = wait_until_point_is_not_claimed(point), empty = CAUSAL_POINT_FREE;

		if (state == CAUSAL_POINT_FREE) {
			if (atomic_compare_exchange_strong(&point->state, &empty,
							   CAUSAL_POINT_CLAIMED)) {
				fill_and_publish_progress_point(point, name, kind, origin);
				return i;
			}
			state = wait_until_point_is_not_claimed(point);
		}
		if (state == CAUSAL_POINT_READY && point_has_name_and_kind(point, name, kind))
			return i;
	}
	if (control)
		atomic_fetch_add_explicit(&control->points_lost, 1, memory_order_relaxed);
	return UINT32_MAX;
}

/* Ticks less what the thread absorbed in this epoch; both as of one moment, also where the handler
 * comes between. A thread that kymo does not know absorbs what everybody does. */
static uint64_t compute_thread_virtual_time(struct causal_control *control,
					    struct causal_thread *state)
{
	uint64_t now, absorbed, delay;

	if (!state) {
		now = ticks_now();
		absorbed = causal_compute_global_delay(control, now) -
			   causal_load_relaxed(&control->start_delay);
		return atomic_load_explicit(&control->experiment, memory_order_relaxed) &
				       CAUSAL_ACTIVE
			       ? now - absorbed
			       : now;
	}
	if (causal_try_enter_state(state)) {
		causal_sync_with_experiment(control, state);
		causal_leave_state(state);
	}
	do {
		delay = causal_load_relaxed(&state->local_delay) +
			causal_load_relaxed(&state->excess_delay);
		atomic_signal_fence(memory_order_seq_cst);
		now = ticks_now();
		absorbed = delay + (uint64_t)causal_compute_thread_delay_growth(state, now);
		atomic_signal_fence(memory_order_seq_cst);
	} while (delay != causal_load_relaxed(&state->local_delay) +
				  causal_load_relaxed(&state->excess_delay));
	return causal_load_relaxed(&state->word) & CAUSAL_ACTIVE
		       ? now - (absorbed - causal_load_relaxed(&state->start))
		       : now;
}

/* Nobody reads a time that does not belong to the count. */
static void store_visit_in_ring(struct causal_point *point, uint64_t count, uint64_t time)
{
	struct causal_visit *visit = &point->ring[count % CAUSAL_RING];

	if (causal_load_relaxed(&visit->count) > count)
		return; /* this thread was away for a whole turn of the ring */
	causal_store_relaxed(&visit->count, 0);
	/* release: whoever sees the time sees that the count is not the one before */
	atomic_store_explicit(&visit->time, time, memory_order_release);
	atomic_store_explicit(&visit->count, count, memory_order_release);
}

void causal_record_visit(uint32_t index)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_relaxed);
	struct causal_point *point;
	uint64_t time;

	if (!control || !process_is_where_runtime_started())
		return;
	if (index >= CAUSAL_POINTS) {
		causal_add_to_counter(&control->visits_lost, 1);
		return;
	}
	point = &control->points[index];
	time = compute_thread_virtual_time(control, causal_find_or_make_current_state());
	atomic_fetch_add_explicit(&point->time_sum, time, memory_order_relaxed);
	store_visit_in_ring(point,
			    atomic_fetch_add_explicit(&point->visits, 1, memory_order_relaxed) + 1,
			    time);
}

/* ---- by name ---- */

/* Name's address, and the point's number and 1 below: one word, so that it is right or is not. What
 * stands at that address may have changed since. */
#define POINT_NAME_CACHE_ENTRIES       256u
#define POINT_NAME_CACHE_ADDRESS_SHIFT 16
static _Atomic uint64_t point_name_cache[POINT_NAME_CACHE_ENTRIES];

static _Atomic uint64_t *find_point_name_cache_entry(const char *name)
{
	return &point_name_cache[((uintptr_t)name * 0x9e3779b97f4a7c15ull) >> 56];
}

void causal_record_visit_by_name(const char *name, enum causal_point_kind kind,
				 enum causal_origin origin)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_relaxed);
	uint64_t address = (uint64_t)(uintptr_t)name << POINT_NAME_CACHE_ADDRESS_SHIFT, entry;
	uint32_t point;

	if (!control || !name)
		return;
	entry = causal_load_relaxed(find_point_name_cache_entry(name));
	point = (uint32_t)(entry & UINT16_MAX) - 1;
	if (entry >> POINT_NAME_CACHE_ADDRESS_SHIFT != address >> POINT_NAME_CACHE_ADDRESS_SHIFT ||
	    point >= CAUSAL_POINTS ||
	    !point_has_name_and_kind(&control->points[point], name, kind)) {
		point = causal_find_or_add_point(name, kind, origin);
		if (point < CAUSAL_POINTS)
			causal_store_relaxed(find_point_name_cache_entry(name),
					     address | (point + 1));
	}
	causal_record_visit(point);
}
