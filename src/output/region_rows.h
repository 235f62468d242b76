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

#include "analysis/regions/regions.h"

struct region_table_layout_options {
	bool flat, threads_apart, collapse_processes;
};

struct region_row {
	uint32_t parent; /* MODEL_ENTRY_INDEX_NONE at the top */
	uint32_t process;
	uint32_t thread; /* MODEL_ENTRY_INDEX_NONE: of several */
	uint32_t region; /* a representative one; MODEL_ENTRY_INDEX_NONE: the row is a process or
			    thread */
	uint32_t depth;
	uint64_t count, open;
	bool has_calls_in_subtree; /* it or something below it was called */
};

struct region_value {
	struct model_component_statistics calls; /* of all calls */
	double inclusive;                        /* sum, recursion counted once */
	double self;                             /* without regions inside it; never negative */
};

struct region_rows {
	const struct session *session;
	struct region_row *rows;
	struct region_value *values; /* by row, then component */
	uint32_t *order; /* rows in reading order, after region_rows_set_reading_order() */
	uint32_t count, shown, component_count;
	size_t capacity;
};

/* 0 or -ENOMEM. Deinit is needed after either. */
int region_rows_build(struct region_rows *rows, const struct session *session,
		      const struct region_table_layout_options *layout);
void region_rows_deinit(struct region_rows *rows);
/* Fills order[0 .. shown): depth first, the heaviest in this component first; a flat list by what
 * regions took themselves. 0 or -ENOMEM. */
int region_rows_set_reading_order(struct region_rows *rows, uint32_t component, bool by_self);

static inline const struct region_value *region_rows_get_value(const struct region_rows *rows,
							       uint32_t row, uint32_t component)
{
	return &rows->values[(size_t)row * rows->component_count + component];
}

/* The value of one node of the model. */
struct region_value region_node_get_value(const struct model_regions *regions, uint32_t node,
					  uint32_t component);
double statistics_get_mean(const struct model_component_statistics *statistics, uint64_t count);
/* The standard deviation of a sample: the divisor is count - 1. */
double statistics_get_standard_deviation(const struct model_component_statistics *statistics,
					 uint64_t count);
/* The component that is real time, or MODEL_ENTRY_INDEX_NONE. */
uint32_t regions_find_wall_clock_component(const struct session *session);

#endif
