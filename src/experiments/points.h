/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Progress points of the profiled processes, as kymo reads them in the shared file.
 *
 * The file belongs to the program as much as to kymo: names are copied once and ended, numbers are
 * believed only within bounds. Points that a program counts by itself (coz.h) carry no times: their
 * visits are dated by whoever polls, with the virtual time of a thread that has no unapplied delay.
 */
#ifndef KYMO_EXPERIMENTS_POINTS_H
#define KYMO_EXPERIMENTS_POINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "kymo/causal.h"

#define CAUSAL_NO_POINT UINT32_MAX

struct causal_point_info {
	bool known, given_up;
	enum causal_point_kind kind;
	enum causal_origin origin;
	uint32_t begin_point_index; /* of an end point: its begin point; CAUSAL_NO_POINT: none */
	char name[CAUSAL_NAME_SIZE];
};

struct causal_points {
	struct causal_control *shared;
	uint32_t count; /* known ones are below */
	struct causal_point_info list[CAUSAL_POINTS];
};

/* A point at a moment. */
struct causal_point_reading {
	bool timed;            /* the visits carry times */
	uint64_t visits;       /* all */
	uint64_t count, time;  /* a late visit, usually the last one, and its virtual time */
	uint64_t sum, present; /* of times of all visits, modulo 2^64; the virtual time now */
};

/* Looks for points that are new; returns how many there are. */
uint32_t causal_points_find_new(struct causal_points *points);
/* Visits so far, whoever counts them. */
uint64_t causal_point_get_visit_count(const struct causal_points *points, uint32_t point);
/* It is visited too often: breakpoints count no more visits of it. */
bool causal_point_is_given_up(const struct causal_points *points, uint32_t point);
/* Whether visits carry times; false as well while there are none. */
bool causal_point_has_visit_times(const struct causal_points *points, uint32_t point);
/* `now` is the virtual time. */
void causal_point_read(const struct causal_points *points, uint32_t point, uint64_t now,
		       struct causal_point_reading *ret);
/* The virtual time of the count-th visit, where it is still known. */
bool causal_point_read_time_of_visit(const struct causal_points *points, uint32_t point,
				     uint64_t count, uint64_t *ret);

#endif
