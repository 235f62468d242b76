/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instance ids: the counter in the upper 16 bits, and a position along each dimension below. Tools
 * take them apart by the library's functions alone, so that the widths are the library's to choose:
 * there are devices with more than 64 of something. In this order, ids are in the order of values.
 */
#include "libkymo-sdk/counters/counters.h"
#include "libkymo-sdk/state.h"

#define COUNTER_SHIFT 48

static const struct {
	uint8_t shift, width;
} instance_fields[COUNTING_DIMENSION_COUNT] = {
	[COUNTING_DIMENSION_NONE] = {0, COUNTER_SHIFT},
	[COUNTING_DIMENSION_XCC] = {43, 5},
	[COUNTING_DIMENSION_AID] = {39, 4},
	[COUNTING_DIMENSION_SHADER_ENGINE] = {33, 6},
	[COUNTING_DIMENSION_AGENT] = {27, 6},
	[COUNTING_DIMENSION_SHADER_ARRAY] = {21, 6},
	[COUNTING_DIMENSION_WGP] = {12, 9},
	[COUNTING_DIMENSION_INSTANCE] = {0, 12},
};

#define HAS_ROOM(name, width)                                                                      \
	_Static_assert(COUNTING_SIZE_MAX_##name == 1u << (width), "positions have room")
HAS_ROOM(XCC, 5);
HAS_ROOM(AID, 4);
HAS_ROOM(SHADER_ENGINE, 6);
HAS_ROOM(AGENT, 6);
HAS_ROOM(SHADER_ARRAY, 6);
HAS_ROOM(WGP, 9);
HAS_ROOM(INSTANCE, 12);

static uint64_t instance_of(uint64_t id, const struct shape *shape, const uint32_t *indices)
{
	uint64_t instance = id << COUNTER_SHIFT;

	for (uint32_t i = 0; i < shape->count; i++)
		instance |= (uint64_t)shape_position(&shape->axes[i], indices[i])
			    << instance_fields[shape->axes[i].dimension].shift;
	return instance;
}

uint64_t sdk_counter_instance(uint32_t id, const struct shape *shape, size_t value)
{
	uint32_t indices[SHAPE_AXES_MAX] = {0};

	for (uint32_t i = shape->count; i-- > 0;) {
		indices[i] = (uint32_t)(value % shape->axes[i].size);
		value /= shape->axes[i].size;
	}
	return instance_of(id, shape, indices);
}

void sdk_counter_instances(uint32_t id, const struct shape *shape, uint64_t *ids)
{
	size_t values = shape_values(shape);

	for (size_t i = 0; i < values; i++)
		ids[i] = sdk_counter_instance(id, shape, i);
}

uint32_t sdk_instance_counter(uint64_t instance)
{
	return (uint32_t)(instance >> COUNTER_SHIFT);
}

uint32_t sdk_instance_position(uint64_t instance, uint32_t dimension)
{
	return (uint32_t)(instance >> instance_fields[dimension].shift &
			  (((uint64_t)1 << instance_fields[dimension].width) - 1));
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_record_counter_id(
	rocprofiler_counter_instance_id_t id, rocprofiler_counter_id_t *counter_id)
{
	if (!counter_id)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	counter_id->handle = sdk_instance_counter(id);
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
	*pos = dim == COUNTING_DIMENSION_NONE ? (size_t)(id & (((uint64_t)1 << COUNTER_SHIFT) - 1))
					      : sdk_instance_position(id, (uint32_t)dim);
	return ROCPROFILER_STATUS_SUCCESS;
}
