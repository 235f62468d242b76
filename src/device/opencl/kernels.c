/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Commands that run kernels.
 */
#include "device/opencl/opencl.h"

cl_int hooked_clEnqueueNDRangeKernel(cl_command_queue command_queue, cl_kernel kernel,
				     cl_uint work_dim, const size_t *global_work_offset,
				     const size_t *global_work_size, const size_t *local_work_size,
				     cl_uint num_events_in_wait_list,
				     const cl_event *event_wait_list, cl_event *event)
{
	struct opencl_tracked_command command;
	cl_event *slot = event != NULL ? event : &command.own;
	cl_int result;

	if (!opencl_announce_kernel_if_wanted(&command, command_queue, kernel, work_dim,
					      global_work_size, local_work_size))
		return opencl_next_functions.clEnqueueNDRangeKernel(
			command_queue, kernel, work_dim, global_work_offset, global_work_size,
			local_work_size, num_events_in_wait_list, event_wait_list, event);
	opencl_begin_kernel_counting_if_asked(&command, command_queue, num_events_in_wait_list,
					      event_wait_list);
	result = opencl_next_functions.clEnqueueNDRangeKernel(
		command_queue, kernel, work_dim, global_work_offset, global_work_size,
		local_work_size, num_events_in_wait_list, event_wait_list, slot);
	opencl_track_enqueued_command(&command, command_queue, result, slot);
	opencl_wait_for_counted_kernel(&command, command_queue);
	return result;
}

cl_int hooked_clEnqueueTask(cl_command_queue command_queue, cl_kernel kernel,
			    cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
			    cl_event *event)
{
	static const size_t one[1] = {1};
	struct opencl_tracked_command command;
	cl_event *slot = event != NULL ? event : &command.own;
	cl_int result;

	if (!opencl_announce_kernel_if_wanted(&command, command_queue, kernel, 1, one, one))
		return opencl_next_functions.clEnqueueTask(
			command_queue, kernel, num_events_in_wait_list, event_wait_list, event);
	opencl_begin_kernel_counting_if_asked(&command, command_queue, num_events_in_wait_list,
					      event_wait_list);
	result = opencl_next_functions.clEnqueueTask(command_queue, kernel, num_events_in_wait_list,
						     event_wait_list, slot);
	opencl_track_enqueued_command(&command, command_queue, result, slot);
	opencl_wait_for_counted_kernel(&command, command_queue);
	return result;
}
