/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Piecewise linear clock conversion; see clocks.h. Doubles are exact enough: 2^53 ticks from a
 * snapshot are a month at 3 GHz, and snapshots come every few seconds.
 */
#include "analysis/clocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"

int clock_map_add_point(struct clock_map *map, const struct clock_map_point *point)
{
	if (array_reserve_one_more((void **)&map->points, &map->capacity, map->count,
				   sizeof(*map->points)) < 0)
		return -ENOMEM;
	map->points[map->count++] = *point;
	return 0;
}

static int compare_points_by_ticks(const void *left, const void *right)
{
	const struct clock_map_point *a = left, *b = right;

	return a->ticks < b->ticks ? -1 : a->ticks > b->ticks;
}

/* Keeps points on which both clocks go forward. */
static void drop_contradictory_points(struct clock_map *map)
{
	size_t kept = 1;

	for (size_t i = 1; i < map->count; i++) {
		const struct clock_map_point *last = &map->points[kept - 1];

		if (map->points[i].ticks > last->ticks &&
		    map->points[i].boottime_ns > last->boottime_ns)
			map->points[kept++] = map->points[i];
		else if (map->points[i].ticks != last->ticks)
			map->dropped++;
	}
	map->count = kept;
}

static double compute_ns_per_tick_between(const struct clock_map_point *a,
					  const struct clock_map_point *b)
{
	return (double)(b->boottime_ns - a->boottime_ns) / (double)(b->ticks - a->ticks);
}

void clock_map_sort_and_set_rate(struct clock_map *map, uint64_t tick_hz)
{
	if (map->count > 1) {
		qsort(map->points, map->count, sizeof(*map->points), compare_points_by_ticks);
		drop_contradictory_points(map);
	}
	if (tick_hz > 0)
		map->ns_per_tick = 1e9 / (double)tick_hz;
	else if (map->count > 1)
		map->ns_per_tick =
			compute_ns_per_tick_between(&map->points[0], &map->points[map->count - 1]);
	else
		map->ns_per_tick = 1;
	map->line = (struct clock_line_segment){0};
}

static uint64_t add_signed_clamped(uint64_t base, double difference)
{
	if (difference < 0)
		return -difference >= (double)base ? 0 : base - (uint64_t)-difference;
	if (difference >= 9e18)
		return UINT64_MAX / 2;
	return base + (uint64_t)difference;
}

/* Lines are made no longer than what doubles and int64_t take. */
#define CLOCK_LINE_TICKS_MAX ((uint64_t)1 << 52)

static struct clock_line_segment make_line_between_points(const struct clock_map_point *a,
							  const struct clock_map_point *b)
{
	struct clock_line_segment line = {.ticks = a->ticks,
					  .span = b->ticks - a->ticks,
					  .boottime_ns = a->boottime_ns,
					  .highest_boottime_ns = b->boottime_ns,
					  .rate = compute_ns_per_tick_between(a, b)};

	if (line.span > CLOCK_LINE_TICKS_MAX)
		line.span = CLOCK_LINE_TICKS_MAX;
	if (b->boottime_ns - a->boottime_ns > INT64_MAX / 2)
		line.span = 0;
	return line;
}

/* From the last point on, where nothing could be kept from growing out of bounds otherwise. */
static struct clock_line_segment make_line_after_last_point(const struct clock_map *map,
							    const struct clock_map_point *last)
{
	struct clock_line_segment line = {.ticks = last->ticks,
					  .boottime_ns = last->boottime_ns,
					  .highest_boottime_ns = UINT64_MAX,
					  .rate = map->ns_per_tick};

	if (map->ns_per_tick <= 1000 && last->boottime_ns < UINT64_MAX / 4)
		line.span = CLOCK_LINE_TICKS_MAX;
	return line;
}

static const struct clock_map_point *find_segment_start(const struct clock_map *map, uint64_t ticks)
{
	size_t low = 0, high = map->count - 1;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (map->points[middle].ticks <= ticks)
			low = middle;
		else
			high = middle;
	}
	return &map->points[low];
}

uint64_t clock_map_ticks_to_boottime_slow(struct clock_map *map, uint64_t ticks)
{
	const struct clock_map_point *first = map->points, *last, *from;
	uint64_t time;

	if (map->count == 0)
		return add_signed_clamped(0, (double)ticks * map->ns_per_tick);
	last = &map->points[map->count - 1];
	if (ticks < first->ticks)
		return add_signed_clamped(first->boottime_ns,
					  -(double)(first->ticks - ticks) * map->ns_per_tick);
	if (ticks >= last->ticks) {
		map->line = make_line_after_last_point(map, last);
		return add_signed_clamped(last->boottime_ns,
					  (double)(ticks - last->ticks) * map->ns_per_tick);
	}
	from = find_segment_start(map, ticks);
	map->line = make_line_between_points(&from[0], &from[1]);
	time = from->boottime_ns + (uint64_t)((double)(ticks - from->ticks) * map->line.rate);
	return time < from[1].boottime_ns ? time : from[1].boottime_ns;
}

uint64_t clock_map_ticks_to_duration_ns(const struct clock_map *map, uint64_t ticks)
{
	return add_signed_clamped(0, (double)ticks * map->ns_per_tick);
}

int64_t clock_map_get_realtime_minus_boottime(const struct clock_map *map)
{
	return map->count ? (int64_t)(map->points[0].realtime_ns - map->points[0].boottime_ns) : 0;
}

int64_t clock_map_get_monotonic_minus_boottime(const struct clock_map *map)
{
	return map->count ? (int64_t)(map->points[0].monotonic_ns - map->points[0].boottime_ns) : 0;
}

void clock_map_deinit(struct clock_map *map)
{
	free(map->points);
	memset(map, 0, sizeof(*map));
}
