/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is known of a counter. Its dimensions are arrays of pointers into one array each: tools of
 * upstream's time take *info.dimensions for the beginning of an array. One that has no dimension
 * shows INSTANCE of size 1.
 */
#include <stdlib.h>

#include "libkymo-sdk/agents.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/counters/counters.h"

struct sdk_counter_dimensions {
	uint32_t count;
	size_t instance_count;
	rocprofiler_counter_record_dimension_info_t dimensions[SHAPE_AXES_MAX];
	const rocprofiler_counter_record_dimension_info_t *dimension_pointers[SHAPE_AXES_MAX];
	rocprofiler_counter_record_dimension_instance_info_t *instances;
	const rocprofiler_counter_record_dimension_instance_info_t **instance_pointers;
	rocprofiler_counter_dimension_info_t *instance_positions; /* of all instances */
	const rocprofiler_counter_dimension_info_t **instance_position_pointers;
};

/* The largest position and one more: what tools take for the size. */
static size_t get_axis_position_end(const struct shape_axis *axis)
{
	return axis->size ? (size_t)shape_axis_get_position(axis, axis->size - 1) + 1 : 0;
}

static void fill_counter_dimensions(struct sdk_counter_dimensions *made,
				    const struct value_shape *shape)
{
	made->count = shape->count ? shape->count : 1;
	made->instance_count = shape_get_value_count(shape);
	made->dimensions[0] = (rocprofiler_counter_record_dimension_info_t){
		.name = expression_get_dimension_name(COUNTING_DIMENSION_INSTANCE),
		.instance_size = 1,
		.id = COUNTING_DIMENSION_INSTANCE};
	for (uint32_t i = 0; i < made->count; i++) {
		if (shape->count)
			made->dimensions[i] = (rocprofiler_counter_record_dimension_info_t){
				.name = expression_get_dimension_name(shape->axes[i].dimension),
				.instance_size = get_axis_position_end(&shape->axes[i]),
				.id = shape->axes[i].dimension};
		made->dimension_pointers[i] = &made->dimensions[i];
	}
}

static void fill_one_instance_info(struct sdk_counter_dimensions *made,
				   const struct sdk_counter *counter, size_t value)
{
	rocprofiler_counter_record_dimension_instance_info_t *instance = &made->instances[value];
	size_t first = value * made->count;

	*instance = (rocprofiler_counter_record_dimension_instance_info_t){
		.size = sizeof(*instance),
		.instance_id =
			sdk_counter_build_instance_id(counter->id, &counter->counter->shape, value),
		.counter_id = counter->id,
		.dimensions_count = made->count,
		.dimensions = &made->instance_position_pointers[first]};
	for (uint32_t i = 0; i < made->count; i++) {
		made->instance_positions[first + i] = (rocprofiler_counter_dimension_info_t){
			.size = sizeof(rocprofiler_counter_dimension_info_t),
			.dimension_name = made->dimensions[i].name,
			.index = sdk_instance_id_to_position(instance->instance_id,
							     (uint32_t)made->dimensions[i].id)};
		made->instance_position_pointers[first + i] = &made->instance_positions[first + i];
	}
	made->instance_pointers[value] = instance;
}

static void free_counter_dimensions(struct sdk_counter_dimensions *made)
{
	free(made->instances);
	free((void *)made->instance_pointers);
	free(made->instance_positions);
	free((void *)made->instance_position_pointers);
	free(made);
}

/* With the lock held. NULL: no memory. */
static const struct sdk_counter_dimensions *find_or_create_dimensions(struct sdk_counter *counter)
{
	struct sdk_counter_dimensions *made = counter->dimensions;
	size_t positions;

	if (made)
		return made;
	made = calloc(1, sizeof(*made));
	if (!made)
		return NULL;
	fill_counter_dimensions(made, &counter->counter->shape);
	positions = made->instance_count * made->count;
	made->instances = calloc(made->instance_count + 1, sizeof(made->instances[0]));
	made->instance_pointers = calloc(made->instance_count + 1, sizeof(void *));
	made->instance_positions = calloc(positions + 1, sizeof(made->instance_positions[0]));
	made->instance_position_pointers = calloc(positions + 1, sizeof(void *));
	if (!made->instances || !made->instance_pointers || !made->instance_positions ||
	    !made->instance_position_pointers) {
		free_counter_dimensions(made);
		return NULL;
	}
	for (size_t i = 0; i < made->instance_count; i++)
		fill_one_instance_info(made, counter, i);
	counter->dimensions = made;
	return made;
}

static void fill_counter_info_v0(const struct sdk_counter *found,
				 rocprofiler_counter_info_v0_t *info)
{
	const struct counter *counter = found->counter;

	*info = (rocprofiler_counter_info_v0_t){
		.id = {found->id},
		.name = counter->name,
		.description = counter->description,
		.block = counter->block,
		.expression = counter->expression_text,
		.is_constant = counter->kind == COUNTER_PROPERTY,
		.is_derived = counter->kind == COUNTER_DERIVED,
	};
}

static rocprofiler_status_t fill_counter_info_v1(struct sdk_counter *found,
						 rocprofiler_counter_info_v1_t *info)
{
	const struct counter *counter = found->counter;
	const struct sdk_counter_dimensions *dimensions;

	sdk_counters_acquire_lock();
	dimensions = find_or_create_dimensions(found);
	sdk_counters_release_lock();
	if (!dimensions)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	*info = (rocprofiler_counter_info_v1_t){
		.size = sizeof(*info),
		.id = {found->id},
		.name = counter->name,
		.description = counter->description,
		.block = counter->block,
		.expression = counter->expression_text,
		.is_constant = counter->kind == COUNTER_PROPERTY,
		.is_derived = counter->kind == COUNTER_DERIVED,
		.dimensions_count = dimensions->count,
		.dimensions = (const rocprofiler_counter_record_dimension_info_t **)(uintptr_t)
				      dimensions->dimension_pointers,
		.dimensions_instances_count = dimensions->instance_count,
		.dimensions_instances = dimensions->instance_pointers,
	};
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t
rocprofiler_query_counter_info(rocprofiler_counter_id_t counter_id,
			       rocprofiler_counter_info_version_id_t version, void *info)
{
	struct sdk_counter *found = sdk_counter_find_by_id(counter_id.handle);

	if (!info)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (version != ROCPROFILER_COUNTER_INFO_VERSION_0 &&
	    version != ROCPROFILER_COUNTER_INFO_VERSION_1)
		return ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_ABI;
	if (!found)
		return ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND;
	if (version == ROCPROFILER_COUNTER_INFO_VERSION_1)
		return fill_counter_info_v1(found, info);
	fill_counter_info_v0(found, info);
	return ROCPROFILER_STATUS_SUCCESS;
}

_Static_assert(KYMO_COUNTING_OF_KERNELS == COUNTING_BY_DISPATCH &&
		       KYMO_COUNTING_OF_DEVICES == COUNTING_BY_DEVICE,
	       "the backends' numbers");

SDK_EXPORT rocprofiler_status_t kymo_counter_ways(rocprofiler_counter_id_t counter_id,
						  uint32_t *ways)
{
	const struct sdk_counter *found = sdk_counter_find_by_id(counter_id.handle);
	const struct counter_program *program = found ? found->counter->program : NULL;

	if (!ways)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!found)
		return ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND;
	*ways = found->counter->kind == COUNTER_DERIVED
			? KYMO_COUNTING_OF_KERNELS | KYMO_COUNTING_OF_DEVICES
			: found->counter->ways;
	for (uint32_t i = 0; program && i < program->inputs_count; i++)
		*ways &= program->inputs[i].counter->ways;
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_iterate_counter_dimensions(
	rocprofiler_counter_id_t id, rocprofiler_available_dimensions_cb_t info_cb, void *user_data)
{
	struct sdk_counter *found = sdk_counter_find_by_id(id.handle);
	const struct sdk_counter_dimensions *dimensions;

	if (!info_cb)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!found)
		return ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND;
	sdk_counters_acquire_lock();
	dimensions = find_or_create_dimensions(found);
	sdk_counters_release_lock();
	if (!dimensions)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	return info_cb(id, dimensions->dimensions, dimensions->count, user_data);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_counter_instance_count(
	rocprofiler_agent_id_t agent_id, rocprofiler_counter_id_t counter_id,
	size_t *instance_count)
{
	const struct sdk_counter *found = sdk_counter_find_by_id(counter_id.handle);

	if (!instance_count)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	(void)agent_id; /* the counter's id says of which agent it is */
	*instance_count = 0;
	if (!found)
		return ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND;
	*instance_count = shape_get_value_count(&found->counter->shape);
	return ROCPROFILER_STATUS_SUCCESS;
}
