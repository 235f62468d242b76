/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instance ids: the counter in the upper 16 bits, and a position along each dimension below. Tools
 * take them apart by the library's functions alone, so that the widths are the library's to choose:
 * there are devices with more than 64 of something. In this order, ids are in the order of values.
 */
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/counters/counters.h"

#define COUNTER_ID_SHIFT 48

static const struct {
	uint8_t shift, width_bits;
} instance_id_bit_field_table[COUNTING_DIMENSION_COUNT] = {
	[COUNTING_DIMENSION_NONE] = {0, COUNTER_ID_SHIFT},
	[COUNTING_DIMENSION_XCC] = {43, 5},
	[COUNTING_DIMENSION_AID] = {39, 4},
	[COUNTING_DIMENSION_SHADER_ENGINE] = {33, 6},
	[COUNTING_DIMENSION_AGENT] = {27, 6},
	[COUNTING_DIMENSION_SHADER_ARRAY] = {21, 6},
	[COUNTING_DIMENSION_WGP] = {12, 9},
	[COUNTING_DIMENSION_INSTANCE] = {0, 12},
};

#define ASSERT_INSTANCE_ID_FIELD_HAS_ROOM(name, width)                                             \
	_Static_assert(COUNTING_##name##_EXTENT_MAX == 1u << (width), "positions have room")
ASSERT_INSTANCE_ID_FIELD_HAS_ROOM(XCC, 5);
ASSERT_INSTANCE_ID_FIELD_HAS_ROOM(AID, 4);
ASSERT_INSTANCE_ID_FIELD_HAS_ROOM(SHADER_ENGINE, 6);
ASSERT_INSTANCE_ID_FIELD_HAS_ROOM(AGENT, 6);
ASSERT_INSTANCE_ID_FIELD_HAS_ROOM(SHADER_ARRAY, 6);
ASSERT_INSTANCE_ID_FIELD_HAS_ROOM(WGP, 9);
ASSERT_INSTANCE_ID_FIELD_HAS_ROOM(INSTANCE, 12);

static uint64_t build_instance_id(uint64_t id, const struct value_shape *shape,
				  const uint32_t *indices)
{
	uint64_t instance = id << COUNTER_ID_SHIFT;

	for (uint32_t i = 0; i < shape->count; i++)
		instance |= (uint64_t)shape_axis_get_position(&shape->axes[i], indices[i])
			    << instance_id_bit_field_table[shape->axes[i].dimension].shift;
	return instance;
}

uint64_t sdk_counter_build_instance_id(uint32_t id, const struct value_shape *shape, size_t value)
{
	uint32_t indices[SHAPE_AXES_MAX] = {0};

	for (uint32_t i = shape->count; i-- > 0;) {
		indices[i] = (uint32_t)(value % shape->axes[i].size);
		value /= shape->axes[i].size;
	}
	return build_instance_id(id, shape, indices);
}

void sdk_counter_fill_instance_ids(uint32_t id, const struct value_shape *shape, uint64_t *ids)
{
	size_t values = shape_get_value_count(shape);

	for (size_t i = 0; i < values; i++)
		ids[i] = sdk_counter_build_instance_id(id, shape, i);
}

uint32_t sdk_instance_id_to_counter_id(uint64_t instance)
{
	return (uint32_t)(instance >> COUNTER_ID_SHIFT);
}

uint32_t sdk_instance_id_to_position(uint64_t instance, uint32_t dimension)
{
	return (uint32_t)(instance >> instance_id_bit_field_table[dimension].shift &
			  (((uint64_t)1 << instance_id_bit_field_table[dimension].width_bits) - 1));
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_record_counter_id(
	rocprofiler_counter_instance_id_t id, rocprofiler_counter_id_t *counter_id)
{
	if (!counter_id)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	counter_id->handle = sdk_instance_id_to_counter_id(id);
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_record_dimension_position(
	rocprofiler_counter_instance_id_t id, rocprofiler_counter_dimension_id_t dim, size_t *pos)
{
	if (!pos)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*pos = 0;
	if (dim >= COUNTING_DIMENSION_COUNT)
		return ROCPROFILER_STATUS_ERROR_DIM_NOT_FOUND;
	/* NONE stands for all positions as they are. */
	*pos = dim == COUNTING_DIMENSION_NONE
		       ? (size_t)(id & (((uint64_t)1 << COUNTER_ID_SHIFT) - 1))
		       : sdk_instance_id_to_position(id, (uint32_t)dim);
	return ROCPROFILER_STATUS_SUCCESS;
}
