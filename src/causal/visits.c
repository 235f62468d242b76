/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Progress points, and visits of them. A point is found by its name, and never goes away.
 */
#include <string.h>

#include "causal/state.h"
#include "common/syscalls.h"

#define CLAIM_TURNS 1000

static bool is_named(const struct causal_point *point, const char *name, uint32_t kind)
{
	return point->kind == kind && !strncmp(point->name, name, CAUSAL_NAME_SIZE - 1);
}

/* Somebody is writing its name: a moment, unless that process was killed in it. */
static uint32_t state_of(const struct causal_point *point)
{
	uint32_t state;

	for (int i = 0; i < CLAIM_TURNS; i++) {
		state = atomic_load_explicit(&point->state, memory_order_acquire);
		if (state != CAUSAL_POINT_CLAIMED)
			break;
		sys_call0(SYS_sched_yield);
	}
	return state;
}

static void fill(struct causal_point *point, const char *name, enum causal_point_kind kind,
		 enum causal_origin origin)
{
	size_t length = 0;

	for (; length < CAUSAL_NAME_SIZE - 1 && name[length]; length++)
		point->name[length] = name[length];
	point->name[length] = 0;
	point->kind = kind;
	point->origin = origin;
	atomic_store_explicit(&point->state, CAUSAL_POINT_READY, memory_order_release);
}

uint32_t causal_point(const char *name, enum causal_point_kind kind, enum causal_origin origin)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_acquire);

	for (uint32_t i = 0; control && i < CAUSAL_POINTS; i++) {
		struct causal_point *point = &control->points[i];
		uint32_t state = state_of(point), empty = CAUSAL_POINT_FREE;

		if (state == CAUSAL_POINT_FREE) {
			if (atomic_compare_exchange_strong(&point->state, &empty,
							   CAUSAL_POINT_CLAIMED)) {
				fill(point, name, kind, origin);
				return i;
			}
			state = state_of(point);
		}
		if (state == CAUSAL_POINT_READY && is_named(point, name, kind))
			return i;
	}
	if (control)
		atomic_fetch_add_explicit(&control->points_lost, 1, memory_order_relaxed);
	return UINT32_MAX;
}

/* Ticks less what the thread absorbed in this epoch; both as of one moment, also where the handler
 * comes between. A thread that kymo does not know absorbs what everybody does. */
static uint64_t virtual_time(struct causal_control *control, struct causal_thread *state)
{
	uint64_t now, absorbed, delay;

	if (!state) {
		now = ticks_now();
		absorbed = causal_most(control, now) - causal_get(&control->start_delay);
		return atomic_load_explicit(&control->experiment, memory_order_relaxed) &
				       CAUSAL_ACTIVE
			       ? now - absorbed
			       : now;
	}
	if (causal_enter(state)) {
		causal_turn(control, state);
		causal_leave(state);
	}
	do {
		delay = causal_get(&state->delay) + causal_get(&state->bank);
		atomic_signal_fence(memory_order_seq_cst);
		now = ticks_now();
		absorbed = delay + (uint64_t)causal_grown(state, now);
		atomic_signal_fence(memory_order_seq_cst);
	} while (delay != causal_get(&state->delay) + causal_get(&state->bank));
	return causal_get(&state->word) & CAUSAL_ACTIVE
		       ? now - (absorbed - causal_get(&state->start))
		       : now;
}

/* Nobody reads a time that does not belong to the count. */
static void remember(struct causal_point *point, uint64_t count, uint64_t time)
{
	struct causal_visit *visit = &point->ring[count % CAUSAL_RING];

	if (causal_get(&visit->count) > count)
		return; /* this thread was away for a whole turn of the ring */
	causal_set(&visit->count, 0);
	/* release: whoever sees the time sees that the count is not the one before */
	atomic_store_explicit(&visit->time, time, memory_order_release);
	atomic_store_explicit(&visit->count, count, memory_order_release);
}

void causal_visit(uint32_t index)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_relaxed);
	struct causal_point *point;
	uint64_t time;

	if (!control || !*kymo_runtime.same_process)
		return;
	if (index >= CAUSAL_POINTS) {
		causal_count(&control->visits_lost, 1);
		return;
	}
	point = &control->points[index];
	time = virtual_time(control, causal_self());
	atomic_fetch_add_explicit(&point->time_sum, time, memory_order_relaxed);
	remember(point, atomic_fetch_add_explicit(&point->visits, 1, memory_order_relaxed) + 1,
		 time);
}

/* ---- by name ---- */

/* Name's address, and the point's number and 1 below: one word, so that it is right or is not. What
 * stands at that address may have changed since. */
#define FOUND_ENTRIES 256u
#define FOUND_SHIFT   16
static _Atomic uint64_t found[FOUND_ENTRIES];

static _Atomic uint64_t *found_at(const char *name)
{
	return &found[((uintptr_t)name * 0x9e3779b97f4a7c15ull) >> 56];
}

void causal_visit_named(const char *name, enum causal_point_kind kind, enum causal_origin origin)
{
	struct causal_control *control = atomic_load_explicit(&kymo_causal, memory_order_relaxed);
	uint64_t address = (uint64_t)(uintptr_t)name << FOUND_SHIFT, entry;
	uint32_t point;

	if (!control || !name)
		return;
	entry = causal_get(found_at(name));
	point = (uint32_t)(entry & UINT16_MAX) - 1;
	if (entry >> FOUND_SHIFT != address >> FOUND_SHIFT || point >= CAUSAL_POINTS ||
	    !is_named(&control->points[point], name, kind)) {
		point = causal_point(name, kind, origin);
		if (point < CAUSAL_POINTS)
			causal_set(found_at(name), address | (point + 1));
	}
	causal_visit(point);
}
