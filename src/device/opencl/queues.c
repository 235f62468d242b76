/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Command queues: all get profiling, without which there are no times, and the program that asks
 * for its queue's properties does not see that.
 */
#include <stdatomic.h>

#include "device/opencl/opencl.h"
#include "device/pointer_map.h"

#define PROPERTIES_MAX 32

/* Value: number << 16 | device number << 8 | flags */
#define PROFILED       1u
#define PROFILED_BY_US 2u

static struct pointer_map queues;
static _Atomic uint64_t queue_count;

struct opencl_queue opencl_queue_of(cl_command_queue queue)
{
	uint64_t value = pointer_map_get(&queues, queue);
	struct opencl_queue known = {(unsigned)(value >> 8 & 0xff), value >> 16,
				     (value & PROFILED) != 0};
	cl_device_id device = NULL;

	/* Made before us, or by an extension. */
	if (value == 0 && opencl_next.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof(device),
							    &device, NULL) == CL_SUCCESS)
		known.device_number = opencl_device_number(device);
	return known;
}

static void remember(cl_command_queue queue, cl_device_id device, unsigned flags)
{
	uint64_t number;

	if (queue == NULL)
		return;
	number = atomic_fetch_add(&queue_count, 1) + 1;
	pointer_map_set(&queues, queue,
			number << 16 | (uint64_t)opencl_device_number(device) << 8 | flags);
}

static bool has_tools(void)
{
	return device_sink() != NULL;
}

cl_command_queue hooked_clCreateCommandQueue(cl_context context, cl_device_id device,
					     cl_command_queue_properties properties,
					     cl_int *errcode_ret)
{
	bool ours = (properties & CL_QUEUE_PROFILING_ENABLE) == 0 && has_tools();
	cl_command_queue queue = NULL;

	if (ours)
		queue = opencl_next.clCreateCommandQueue(
			context, device, properties | CL_QUEUE_PROFILING_ENABLE, errcode_ret);
	if (queue != NULL) {
		remember(queue, device, PROFILED | PROFILED_BY_US);
		return queue;
	}
	queue = opencl_next.clCreateCommandQueue(context, device, properties, errcode_ret);
	remember(queue, device, (properties & CL_QUEUE_PROFILING_ENABLE) != 0 ? PROFILED : 0);
	return queue;
}

/* The program's list with profiling added; false: it has it, or there is no room, or it is a queue
 * on the device, which has no profiling of its own. */
static bool add_profiling(const cl_queue_properties *given,
			  cl_queue_properties changed[PROPERTIES_MAX], bool *has_profiling)
{
	unsigned count = 0;
	bool found = false;

	for (; given != NULL && given[count] != 0; count += 2) {
		if (count + 5 > PROPERTIES_MAX)
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
	cl_queue_properties changed[PROPERTIES_MAX];
	bool has_profiling = false;
	cl_command_queue queue = NULL;

	if (has_tools() && add_profiling(properties, changed, &has_profiling))
		queue = opencl_next.clCreateCommandQueueWithProperties(context, device, changed,
								       errcode_ret);
	if (queue != NULL) {
		remember(queue, device, PROFILED | PROFILED_BY_US);
		return queue;
	}
	queue = opencl_next.clCreateCommandQueueWithProperties(context, device, properties,
							       errcode_ret);
	remember(queue, device, has_profiling ? PROFILED : 0);
	return queue;
}

cl_int hooked_clGetCommandQueueInfo(cl_command_queue command_queue,
				    cl_command_queue_info param_name, size_t param_value_size,
				    void *param_value, size_t *param_value_size_ret)
{
	cl_int result = opencl_next.clGetCommandQueueInfo(
		command_queue, param_name, param_value_size, param_value, param_value_size_ret);

	if (result == CL_SUCCESS && param_name == CL_QUEUE_PROPERTIES && param_value != NULL &&
	    (pointer_map_get(&queues, command_queue) & PROFILED_BY_US) != 0)
		*(cl_command_queue_properties *)param_value &=
			~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE;
	return result;
}

cl_int hooked_clReleaseCommandQueue(cl_command_queue command_queue)
{
	cl_uint references = 0;

	if (opencl_next.clGetCommandQueueInfo(command_queue, CL_QUEUE_REFERENCE_COUNT,
					      sizeof(references), &references,
					      NULL) == CL_SUCCESS &&
	    references == 1)
		pointer_map_set(&queues, command_queue, 0);
	return opencl_next.clReleaseCommandQueue(command_queue);
}
