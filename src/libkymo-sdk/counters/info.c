/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is known of a counter. Its dimensions are arrays of pointers into one array each: tools of
 * upstream's time take *info.dimensions for the beginning of an array. One that has no dimension
 * shows INSTANCE of size 1.
 */
#include <stdlib.h>

#include "libkymo-sdk/agents.h"
#include "libkymo-sdk/counters/counters.h"
#include "libkymo-sdk/state.h"

struct sdk_counter_dimensions {
	uint32_t count;
	size_t values;
	rocprofiler_counter_record_dimension_info_t dimensions[SHAPE_AXES_MAX];
	const rocprofiler_counter_record_dimension_info_t *pointers[SHAPE_AXES_MAX];
	rocprofiler_counter_record_dimension_instance_info_t *instances;
	const rocprofiler_counter_record_dimension_instance_info_t **instance_pointers;
	rocprofiler_counter_dimension_info_t *positions; /* of all instances */
	const rocprofiler_counter_dimension_info_t **position_pointers;
};

/* The largest position and one more: what tools take for the size. */
static size_t axis_size(const struct shape_axis *axis)
{
	return axis->size ? (size_t)shape_position(axis, axis->size - 1) + 1 : 0;
}

static void dimensions_set(struct sdk_counter_dimensions *made, const struct shape *shape)
{
	made->count = shape->count ? shape->count : 1;
	made->values = shape_values(shape);
	made->dimensions[0] = (rocprofiler_counter_record_dimension_info_t){
		.name = expression_dimension_name(COUNTING_DIMENSION_INSTANCE),
		.instance_size = 1,
		.id = COUNTING_DIMENSION_INSTANCE};
	for (uint32_t i = 0; i < made->count; i++) {
		if (shape->count)
			made->dimensions[i] = (rocprofiler_counter_record_dimension_info_t){
				.name = expression_dimension_name(shape->axes[i].dimension),
				.instance_size = axis_size(&shape->axes[i]),
				.id = shape->axes[i].dimension};
		made->pointers[i] = &made->dimensions[i];
	}
}

static void instance_set(struct sdk_counter_dimensions *made, const struct sdk_counter *counter,
			 size_t value)
{
	rocprofiler_counter_record_dimension_instance_info_t *instance = &made->instances[value];
	size_t first = value * made->count;

	*instance = (rocprofiler_counter_record_dimension_instance_info_t){
		.size = sizeof(*instance),
		.instance_id = sdk_counter_instance(counter->id, &counter->counter->shape, value),
		.counter_id = counter->id,
		.dimensions_count = made->count,
		.dimensions = &made->position_pointers[first]};
	for (uint32_t i = 0; i < made->count; i++) {
		made->positions[first + i] = (rocprofiler_counter_dimension_info_t){
			.size = sizeof(rocprofiler_counter_dimension_info_t),
			.dimension_name = made->dimensions[i].name,
			.index = sdk_instance_position(instance->instance_id,
						       (uint32_t)made->dimensions[i].id)};
		made->position_pointers[first + i] = &made->positions[first + i];
	}
	made->instance_pointers[value] = instance;
}

static void dimensions_free(struct sdk_counter_dimensions *made)
{
	free(made->instances);
	free((void *)made->instance_pointers);
	free(made->positions);
	free((void *)made->position_pointers);
	free(made);
}

/* With the lock held. NULL: no memory. */
static const struct sdk_counter_dimensions *dimensions_of(struct sdk_counter *counter)
{
	struct sdk_counter_dimensions *made = counter->dimensions;
	size_t positions;

	if (made)
		return made;
	made = calloc(1, sizeof(*made));
	if (!made)
		return NULL;
	dimensions_set(made, &counter->counter->shape);
	positions = made->values * made->count;
	made->instances = calloc(made->values + 1, sizeof(made->instances[0]));
	made->instance_pointers = calloc(made->values + 1, sizeof(void *));
	made->positions = calloc(positions + 1, sizeof(made->positions[0]));
	made->position_pointers = calloc(positions + 1, sizeof(void *));
	if (!made->instances || !made->instance_pointers || !made->positions ||
	    !made->position_pointers) {
		dimensions_free(made);
		return NULL;
	}
	for (size_t i = 0; i < made->values; i++)
		instance_set(made, counter, i);
	counter->dimensions = made;
	return made;
}

static void info_0(const struct sdk_counter *found, rocprofiler_counter_info_v0_t *info)
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

static rocprofiler_status_t info_1(struct sdk_counter *found, rocprofiler_counter_info_v1_t *info)
{
	const struct counter *counter = found->counter;
	const struct sdk_counter_dimensions *dimensions;

	sdk_counters_lock();
	dimensions = dimensions_of(found);
	sdk_counters_unlock();
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
				      dimensions->pointers,
		.dimensions_instances_count = dimensions->values,
		.dimensions_instances = dimensions->instance_pointers,
	};
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t
rocprofiler_query_counter_info(rocprofiler_counter_id_t counter_id,
			       rocprofiler_counter_info_version_id_t version, void *info)
{
	struct sdk_counter *found = sdk_counter_find(counter_id.handle);

	if (!info)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (version != ROCPROFILER_COUNTER_INFO_VERSION_0 &&
	    version != ROCPROFILER_COUNTER_INFO_VERSION_1)
		return ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_ABI;
	if (!found)
		return ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND;
	if (version == ROCPROFILER_COUNTER_INFO_VERSION_1)
		return info_1(found, info);
	info_0(found, info);
	return ROCPROFILER_STATUS_SUCCESS;
}

_Static_assert(KYMO_COUNTING_OF_KERNELS == COUNTING_BY_DISPATCH &&
		       KYMO_COUNTING_OF_DEVICES == COUNTING_BY_DEVICE,
	       "the backends' numbers");

SDK_EXPORT rocprofiler_status_t kymo_counter_ways(rocprofiler_counter_id_t counter_id,
						  uint32_t *ways)
{
	const struct sdk_counter *found = sdk_counter_find(counter_id.handle);
	const struct program *program = found ? found->counter->program : NULL;

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
	struct sdk_counter *found = sdk_counter_find(id.handle);
	const struct sdk_counter_dimensions *dimensions;

	if (!info_cb)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!found)
		return ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND;
	sdk_counters_lock();
	dimensions = dimensions_of(found);
	sdk_counters_unlock();
	if (!dimensions)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	return info_cb(id, dimensions->dimensions, dimensions->count, user_data);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_counter_instance_count(
	rocprofiler_agent_id_t agent_id, rocprofiler_counter_id_t counter_id,
	size_t *instance_count)
{
	const struct sdk_counter *found = sdk_counter_find(counter_id.handle);

	if (!instance_count)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	(void)agent_id; /* the counter's id says of which agent it is */
	*instance_count = 0;
	if (!found)
		return ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND;
	*instance_count = shape_values(&found->counter->shape);
	return ROCPROFILER_STATUS_SUCCESS;
}
