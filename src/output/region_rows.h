/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regions as tables show them: the trees of threads added up as far as they are to be, by category
 * and name, under a row for each process and thread that stay apart. Or flat: a row a name, in
 * which a call within a call of the same region is counted, but its time is not counted twice.
 *
 * A row's parent stands before it. Rows without any call are not there.
 */
#ifndef KYMO_OUTPUT_REGION_ROWS_H
#define KYMO_OUTPUT_REGION_ROWS_H

#include "analysis/regions.h"

struct region_layout {
	bool flat, threads_apart, collapse_processes;
};

struct region_row {
	uint32_t parent; /* MODEL_NONE at the top */
	uint32_t process;
	uint32_t thread; /* MODEL_NONE: of several */
	uint32_t region; /* a representative one; MODEL_NONE: the row is a process or thread */
	uint32_t depth;
	uint64_t count, open;
	bool alive; /* it or something below it was called */
};

struct region_value {
	struct model_statistics calls; /* of all calls */
	double inclusive;              /* sum, recursion counted once */
	double self;                   /* without regions inside it; never negative */
};

struct region_rows {
	const struct session *session;
	struct region_row *rows;
	struct region_value *values; /* by row, then component */
	uint32_t *order;             /* rows in reading order, after region_rows_sort() */
	uint32_t count, shown, component_count;
	size_t capacity;
};

/* 0 or -ENOMEM. Deinit is needed after either. */
int region_rows_init(struct region_rows *rows, const struct session *session,
		     const struct region_layout *layout);
void region_rows_deinit(struct region_rows *rows);
/* Fills order[0 .. shown): depth first, the heaviest in this component first; a flat list by what
 * regions took themselves. 0 or -ENOMEM. */
int region_rows_sort(struct region_rows *rows, uint32_t component, bool by_self);

static inline const struct region_value *region_rows_value(const struct region_rows *rows,
							   uint32_t row, uint32_t component)
{
	return &rows->values[(size_t)row * rows->component_count + component];
}

/* Of one node of the model. */
struct region_value region_node_value(const struct model_regions *regions, uint32_t node,
				      uint32_t component);
double region_mean(const struct model_statistics *statistics, uint64_t count);
/* Of a sample: the divisor is count - 1. */
double region_deviation(const struct model_statistics *statistics, uint64_t count);
/* The component that is real time, or MODEL_NONE. */
uint32_t region_wall_clock(const struct session *session);

#endif
