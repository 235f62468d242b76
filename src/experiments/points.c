/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See points.h.
 */
#include "experiments/points.h"

#include <stdatomic.h>
#include <string.h>

static void copy_shared_point(struct causal_points *points, uint32_t index)
{
	const struct causal_point *shared = &points->shared->points[index];
	struct causal_point_info *point = &points->list[index];

	if (shared->kind > CAUSAL_POINT_END || shared->origin > CAUSAL_ORIGIN_AUTOMATIC)
		return;
	point->kind = (enum causal_point_kind)shared->kind;
	point->origin = (enum causal_origin)shared->origin;
	memcpy(point->name, shared->name, sizeof(point->name));
	point->name[sizeof(point->name) - 1] = '\0';
	point->known = true;
	point->begin_point_index = CAUSAL_NO_POINT;
}

static void pair_begin_and_end_points(struct causal_points *points)
{
	for (uint32_t i = 0; i < points->count; i++) {
		struct causal_point_info *end = &points->list[i];

		if (!end->known || end->kind != CAUSAL_POINT_END)
			continue;
		for (uint32_t j = 0; j < points->count && end->begin_point_index == CAUSAL_NO_POINT;
		     j++) {
			const struct causal_point_info *begin = &points->list[j];

			if (begin->known && begin->kind == CAUSAL_POINT_BEGIN &&
			    !strcmp(begin->name, end->name))
				end->begin_point_index = j;
		}
	}
}

uint32_t causal_points_find_new(struct causal_points *points)
{
	bool grown = false;
	uint32_t known = 0;

	for (uint32_t i = 0; i < CAUSAL_POINTS; i++) {
		if (!points->list[i].known &&
		    atomic_load_explicit(&points->shared->points[i].state, memory_order_acquire) ==
			    CAUSAL_POINT_READY) {
			copy_shared_point(points, i);
			grown = true;
		}
		if (points->list[i].known) {
			points->count = i + 1;
			known++;
		}
	}
	if (grown)
		pair_begin_and_end_points(points);
	return known;
}

static uint64_t get_coz_counted_visits(const struct causal_point *point)
{
	return __atomic_load_n(&point->coz[0], __ATOMIC_RELAXED);
}

bool causal_point_is_given_up(const struct causal_points *points, uint32_t point)
{
	return atomic_load_explicit(&points->shared->points[point].given_up, memory_order_relaxed);
}

bool causal_point_has_visit_times(const struct causal_points *points, uint32_t point)
{
	return !causal_point_is_given_up(points, point) &&
	       atomic_load_explicit(&points->shared->points[point].visits, memory_order_acquire);
}

uint64_t causal_point_get_visit_count(const struct causal_points *points, uint32_t point)
{
	const struct causal_point *shared = &points->shared->points[point];
	uint64_t visits = atomic_load_explicit(&shared->visits, memory_order_acquire);

	return visits && !causal_point_is_given_up(points, point) ? visits
								  : get_coz_counted_visits(shared);
}

bool causal_point_read_time_of_visit(const struct causal_points *points, uint32_t point,
				     uint64_t count, uint64_t *ret)
{
	const struct causal_visit *visit = &points->shared->points[point].ring[count % CAUSAL_RING];
	uint64_t before = atomic_load_explicit(&visit->count, memory_order_acquire);

	*ret = atomic_load_explicit(&visit->time, memory_order_acquire);
	return before == count &&
	       atomic_load_explicit(&visit->count, memory_order_acquire) == count;
}

/* Number and sum of times are two words: a visit between them would count by half, and the sum of
 * absolute times be off by one of these. They hold still for a moment between visits. */
static void read_visits_and_time_sum(const struct causal_point *shared,
				     struct causal_point_reading *ret)
{
	for (unsigned i = 0; i < 64; i++) {
		uint64_t visits = atomic_load_explicit(&shared->visits, memory_order_acquire);
		uint64_t sum = atomic_load_explicit(&shared->time_sum, memory_order_acquire);

		ret->visits = visits;
		ret->sum = sum;
		for (unsigned wait = 0; wait < 16; wait++)
			__builtin_ia32_pause();
		if (visits == atomic_load_explicit(&shared->visits, memory_order_acquire) &&
		    sum == atomic_load_explicit(&shared->time_sum, memory_order_acquire))
			return;
	}
}

void causal_point_read(const struct causal_points *points, uint32_t point, uint64_t now,
		       struct causal_point_reading *ret)
{
	const struct causal_point *shared = &points->shared->points[point];

	memset(ret, 0, sizeof(*ret));
	ret->present = now;
	ret->timed = causal_point_has_visit_times(points, point);
	if (!ret->timed) {
		ret->visits = ret->count = get_coz_counted_visits(shared);
		ret->time = now;
		return;
	}
	read_visits_and_time_sum(shared, ret);
	for (unsigned try = 0; try < 4; try++) {
		uint64_t visits = atomic_load_explicit(&shared->visits, memory_order_acquire);

		/* the last ones may not be written yet */
		for (uint64_t back = 0; back < 8 && back < visits; back++) {
			ret->count = visits - back;
			if (causal_point_read_time_of_visit(points, point, ret->count, &ret->time))
				return;
		}
	}
	/* visits come faster than they can be read: any of them is the last one */
	ret->count = ret->visits;
	ret->time = now;
}
