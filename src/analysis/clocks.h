/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From the ticks of one process (TSC or CLOCK_MONOTONIC) to ns of CLOCK_BOOTTIME, the one time of a
 * session. Snapshots of both clocks are joined by straight lines; outside them the tick rate
 * counts.
 */
#ifndef KYMO_ANALYSIS_CLOCKS_H
#define KYMO_ANALYSIS_CLOCKS_H

#include <stddef.h>
#include <stdint.h>

struct clock_map_point {
	uint64_t ticks, boottime_ns, monotonic_ns, realtime_ns;
};

/* A stretch of ticks in which time is a straight line. */
struct clock_line_segment {
	uint64_t ticks, span; /* first one, and how many */
	uint64_t boottime_ns, highest_boottime_ns;
	double rate; /* ns a tick */
};

struct clock_map {
	struct clock_map_point *points;
	size_t count, capacity;
	double ns_per_tick;             /* outside the points */
	struct clock_line_segment line; /* the last one used: samples come in order */
	uint64_t dropped;               /* snapshots that contradict the others */
};

int clock_map_add_point(struct clock_map *map, const struct clock_map_point *point);
/* After the last point and before the first question. tick_hz 0: unknown. */
void clock_map_sort_and_set_rate(struct clock_map *map, uint64_t tick_hz);
/* For ticks outside the last line. */
uint64_t clock_map_ticks_to_boottime_slow(struct clock_map *map, uint64_t ticks);

static inline uint64_t clock_map_ticks_to_boottime(struct clock_map *map, uint64_t ticks)
{
	const struct clock_line_segment *line = &map->line;
	uint64_t time;

	if (ticks - line->ticks >= line->span)
		return clock_map_ticks_to_boottime_slow(map, ticks);
	/* The compiler has one instruction for signed numbers, and a branch for unsigned ones. */
	time = line->boottime_ns +
	       (uint64_t)(int64_t)((double)(int64_t)(ticks - line->ticks) * line->rate);
	return time < line->highest_boottime_ns ? time : line->highest_boottime_ns;
}

/* A number of ticks, wherever they lie, in ns. */
uint64_t clock_map_ticks_to_duration_ns(const struct clock_map *map, uint64_t ticks);
/* The other clocks at the first snapshot; they differ from CLOCK_BOOTTIME by constants as long as
 * nobody sets the clock or suspends. */
int64_t clock_map_get_realtime_minus_boottime(const struct clock_map *map);
int64_t clock_map_get_monotonic_minus_boottime(const struct clock_map *map);
void clock_map_deinit(struct clock_map *map);

#endif
