/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See shape.h.
 */
#include "counters/shape.h"

#include <stdio.h>
#include <string.h>

#include "counters/expression.h"

size_t shape_get_value_count(const struct value_shape *shape)
{
	size_t values = 1;
	bool too_many = false;

	for (uint32_t i = 0; i < shape->count; i++) {
		if (shape->axes[i].size == 0)
			return 0;
		if (!too_many)
			values *= shape->axes[i].size;
		too_many |= values > SHAPE_VALUES_MAX;
	}
	return too_many ? SIZE_MAX : values;
}

const struct shape_axis *shape_find_axis_by_dimension(const struct value_shape *shape,
						      uint32_t dimension)
{
	for (uint32_t i = 0; i < shape->count; i++) {
		if (shape->axes[i].dimension == dimension)
			return &shape->axes[i];
	}
	return NULL;
}

uint32_t shape_axis_get_position(const struct shape_axis *axis, uint32_t index)
{
	return axis->positions != NULL ? axis->positions[index] : index;
}

static bool axes_have_same_positions(const struct shape_axis *left, const struct shape_axis *right)
{
	if (left->size != right->size)
		return false;
	for (uint32_t i = 0; i < left->size && (left->positions || right->positions); i++) {
		if (shape_axis_get_position(left, i) != shape_axis_get_position(right, i))
			return false;
	}
	return true;
}

bool shape_broadcast_pair(const struct value_shape *left, const struct value_shape *right,
			  struct value_shape *joined)
{
	struct value_shape made = {.count = 0};
	bool left_has_more = false, right_has_more = false;

	for (uint32_t dimension = 1; dimension < COUNTING_DIMENSION_COUNT; dimension++) {
		const struct shape_axis *one = shape_find_axis_by_dimension(left, dimension);
		const struct shape_axis *other = shape_find_axis_by_dimension(right, dimension);
		uint32_t one_size = one != NULL ? one->size : 1;
		uint32_t other_size = other != NULL ? other->size : 1;

		if (one == NULL && other == NULL)
			continue;
		left_has_more |= one_size != 1 && other_size == 1;
		right_has_more |= one_size == 1 && other_size != 1;
		if (one_size != 1 && other_size != 1 && !axes_have_same_positions(one, other))
			return false;
		made.axes[made.count++] =
			one == NULL || (other != NULL && one_size == 1) ? *other : *one;
	}
	*joined = made;
	return !left_has_more || !right_has_more;
}

void shape_fill_index_map(const struct value_shape *shape, const struct value_shape *within,
			  uint32_t *map)
{
	uint32_t strides[SHAPE_AXES_MAX] = {0}, indices[SHAPE_AXES_MAX] = {0}, stride = 1;
	size_t values = shape_get_value_count(shape);

	for (uint32_t i = within->count; i-- > 0;) {
		for (uint32_t j = 0; j < shape->count; j++) {
			if (shape->axes[j].dimension == within->axes[i].dimension &&
			    within->axes[i].size != 1)
				strides[j] = stride;
		}
		stride *= within->axes[i].size;
	}
	for (size_t value = 0; value < values; value++) {
		uint32_t at = 0;

		for (uint32_t j = 0; j < shape->count; j++)
			at += indices[j] * strides[j];
		map[value] = at;
		for (uint32_t j = shape->count; j-- > 0;) {
			if (++indices[j] < shape->axes[j].size)
				break;
			indices[j] = 0;
		}
	}
}

void shape_copy_without_dimensions(const struct value_shape *shape, uint32_t dimensions,
				   struct value_shape *rest)
{
	struct value_shape made = {.count = 0};

	for (uint32_t i = 0; i < shape->count; i++) {
		if (!(dimensions >> shape->axes[i].dimension & 1))
			made.axes[made.count++] = shape->axes[i];
	}
	*rest = made;
}

void shape_format_text(const struct value_shape *shape, char *text, size_t size)
{
	size_t length = 0;

	snprintf(text, size, "one value");
	for (uint32_t i = 0; i < shape->count && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, "%s%s[%u]",
					   i != 0 ? " " : "",
					   expression_get_dimension_name(shape->axes[i].dimension) +
						   strlen("DIMENSION_"),
					   shape->axes[i].size);
}

void shape_fill_selection_table(const struct value_shape *shape, const struct value_shape *from,
				uint32_t *const *kept, uint32_t *table)
{
	uint32_t indices[SHAPE_AXES_MAX] = {0};
	size_t values = shape_get_value_count(shape);

	for (size_t value = 0; value < values; value++) {
		uint32_t at = 0;

		for (uint32_t i = 0; i < shape->count; i++)
			at = at * from->axes[i].size + (kept[i] ? kept[i][indices[i]] : indices[i]);
		table[value] = at;
		for (uint32_t i = shape->count; i-- > 0;) {
			if (++indices[i] < shape->axes[i].size)
				break;
			indices[i] = 0;
		}
	}
}
