/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Command queues: all get profiling, without which there are no times, and the program that asks
 * for its queue's properties does not see that.
 */
#include <stdatomic.h>

#include "device/opencl/opencl.h"
#include "device/pointer_map.h"

#define QUEUE_PROPERTY_LIST_MAX 32

/* Value: number << 16 | device number << 8 | flags */
#define QUEUE_PROFILED_FLAG         1u
#define QUEUE_PROFILED_BY_KYMO_FLAG 2u

static struct pointer_map known_queues;
static _Atomic uint64_t queue_count;

struct opencl_queue opencl_find_queue(cl_command_queue queue)
{
	uint64_t value = pointer_map_get(&known_queues, queue);
	struct opencl_queue known = {(unsigned)(value >> 8 & 0xff), value >> 16,
				     (value & QUEUE_PROFILED_FLAG) != 0};
	cl_device_id device = NULL;

	/* Made before us, or by an extension. */
	if (value == 0 &&
	    opencl_next_functions.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device),
							&device, NULL) == CL_SUCCESS)
		known.device_number = opencl_device_find_or_add(device);
	return known;
}

static void add_known_queue(cl_command_queue queue, cl_device_id device, unsigned flags)
{
	uint64_t number;

	if (queue == NULL)
		return;
	number = atomic_fetch_add(&queue_count, 1) + 1;
	pointer_map_set(&known_queues, queue,
			number << 16 | (uint64_t)opencl_device_find_or_add(device) << 8 | flags);
}

static bool device_sink_is_set(void)
{
	return device_get_sink() != NULL;
}

cl_command_queue hooked_clCreateCommandQueue(cl_context context, cl_device_id device,
					     cl_command_queue_properties properties,
					     cl_int *errcode_ret)
{
	bool ours = (properties & CL_QUEUE_PROFILING_ENABLE) == 0 && device_sink_is_set();
	cl_command_queue queue = NULL;

	if (ours)
		queue = opencl_next_functions.clCreateCommandQueue(
			context, device, properties | CL_QUEUE_PROFILING_ENABLE, errcode_ret);
	if (queue != NULL) {
		add_known_queue(queue, device, QUEUE_PROFILED_FLAG | QUEUE_PROFILED_BY_KYMO_FLAG);
		return queue;
	}
	queue = opencl_next_functions.clCreateCommandQueue(context, device, properties,
							   errcode_ret);
	add_known_queue(queue, device,
			(properties & CL_QUEUE_PROFILING_ENABLE) != 0 ? QUEUE_PROFILED_FLAG : 0);
	return queue;
}

/* The program's list with profiling added; false: it has it, or there is no room, or it is a queue
 * on the device, which has no profiling of its own. */
static bool copy_properties_adding_profiling(const cl_queue_properties *given,
					     cl_queue_properties changed[QUEUE_PROPERTY_LIST_MAX],
					     bool *has_profiling)
{
	unsigned count = 0;
	bool found = false;

	for (; given != NULL && given[count] != 0; count += 2) {
		if (count + 5 > QUEUE_PROPERTY_LIST_MAX)
			return false;
		changed[count] = given[count];
		changed[count + 1] = given[count + 1];
		if (given[count] != CL_QUEUE_PROPERTIES)
			continue;
		found = true;
		*has_profiling = (given[count + 1] & CL_QUEUE_PROFILING_ENABLE) != 0;
		if (*has_profiling || (given[count + 1] & CL_QUEUE_ON_DEVICE) != 0)
			return false;
		changed[count + 1] |= CL_QUEUE_PROFILING_ENABLE;
	}
	if (!found) {
		changed[count++] = CL_QUEUE_PROPERTIES;
		changed[count++] = CL_QUEUE_PROFILING_ENABLE;
	}
	changed[count] = 0;
	return true;
}

cl_command_queue hooked_clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
							   const cl_queue_properties *properties,
							   cl_int *errcode_ret)
{
	cl_queue_properties changed[QUEUE_PROPERTY_LIST_MAX];
	bool has_profiling = false;
	cl_command_queue queue = NULL;

	if (device_sink_is_set() &&
	    copy_properties_adding_profiling(properties, changed, &has_profiling))
		queue = opencl_next_functions.clCreateCommandQueueWithProperties(
			context, device, changed, errcode_ret);
	if (queue != NULL) {
		add_known_queue(queue, device, QUEUE_PROFILED_FLAG | QUEUE_PROFILED_BY_KYMO_FLAG);
		return queue;
	}
	queue = opencl_next_functions.clCreateCommandQueueWithProperties(context, device,
									 properties, errcode_ret);
	add_known_queue(queue, device, has_profiling ? QUEUE_PROFILED_FLAG : 0);
	return queue;
}

cl_int hooked_clGetCommandQueueInfo(cl_command_queue command_queue,
				    cl_command_queue_info param_name, size_t param_value_size,
				    void *param_value, size_t *param_value_size_ret)
{
	cl_int result = opencl_next_functions.clGetCommandQueueInfo(
		command_queue, param_name, param_value_size, param_value, param_value_size_ret);

	if (result == CL_SUCCESS && param_name == CL_QUEUE_PROPERTIES && param_value != NULL &&
	    (pointer_map_get(&known_queues, command_queue) & QUEUE_PROFILED_BY_KYMO_FLAG) != 0)
		*(cl_command_queue_properties *)param_value &=
			~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
	return result;
}

cl_int hooked_clReleaseCommandQueue(cl_command_queue command_queue)
{
	cl_uint references = 0;

	if (opencl_next_functions.clGetCommandQueueInfo(command_queue, CL_QUEUE_REFERENCE_COUNT,
							sizeof(references), &references,
							NULL) == CL_SUCCESS &&
	    references == 1)
		pointer_map_set(&known_queues, command_queue, 0);
	return opencl_next_functions.clReleaseCommandQueue(command_queue);
}
