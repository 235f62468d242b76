/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Shapes: the dimensions that the values of a counter have, in ascending order, and which positions
 * along each. Values stand in row-major order, the first dimension being the slowest. No axis at
 * all is one value; an axis of size 0 is none.
 */
#ifndef KYMO_COUNTERS_SHAPE_H
#define KYMO_COUNTERS_SHAPE_H

#include "counters/memory.h"
#include "device/counting.h"

#define SHAPE_AXES_MAX   (COUNTING_DIMENSION_COUNT - 1)
#define SHAPE_VALUES_MAX ((size_t)1 << 24)

struct shape_axis {
	uint32_t dimension, size;
	const uint32_t *positions; /* ascending; NULL: 0, 1, 2, ... */
};

struct value_shape {
	uint32_t count;
	struct shape_axis axes[SHAPE_AXES_MAX];
};

/* Numbers of values; SIZE_MAX: more than SHAPE_VALUES_MAX. */
size_t shape_get_value_count(const struct value_shape *shape);
const struct shape_axis *shape_find_axis_by_dimension(const struct value_shape *shape,
						      uint32_t dimension);
uint32_t shape_axis_get_position(const struct shape_axis *axis, uint32_t index);
/* What both give together: the same axes, or those of one with some of them being of size 1 or not
 * there in the other. false: they do not fit. */
bool shape_broadcast_pair(const struct value_shape *left, const struct value_shape *right,
			  struct value_shape *joined);
/* For each value of `shape`, which value of `within` it is, whose axes are some of shape's or have
 * size 1. */
void shape_fill_index_map(const struct value_shape *shape, const struct value_shape *within,
			  uint32_t *map);
/* Without some dimensions (bits). */
void shape_copy_without_dimensions(const struct value_shape *shape, uint32_t dimensions,
				   struct value_shape *rest);
/* "XCC[2] WGP[4]" */
void shape_format_text(const struct value_shape *shape, char *text, size_t size);

/* table: of each value of `shape`, which value of `from` it is. kept: by axis of `from`, the
 * indices along it that `shape` has; NULL: all. */
void shape_fill_selection_table(const struct value_shape *shape, const struct value_shape *from,
				uint32_t *const *kept, uint32_t *table);

#endif
