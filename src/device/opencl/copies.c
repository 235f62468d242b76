/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Commands that move bytes between host and device or within it. Mapping for reading moves them to
 * the host where the device has memory of its own; unmapping what was mapped for writing moves them
 * back.
 */
#include "device/opencl/opencl.h"
#include "device/pointer_map.h"

#define CL_MAP_READ 1u

/* A command that copies: `enqueue` is the call with `slot` as its event. */
#define ENQUEUE_TRACKED_COPY_AND_RETURN(told, enqueue)                                             \
	struct opencl_tracked_command command;                                                     \
	cl_event *slot = event;                                                                    \
	bool wanted = opencl_announce_copy_if_wanted(&command, command_queue, &(told));            \
	cl_int result;                                                                             \
	if (wanted && event == NULL)                                                               \
		slot = &command.own;                                                               \
	result = enqueue;                                                                          \
	if (wanted)                                                                                \
		opencl_track_enqueued_command(&command, command_queue, result, slot);              \
	return result

static uint64_t compute_region_volume(const size_t *region)
{
	return region == NULL ? 0 : (uint64_t)region[0] * region[1] * region[2];
}

static uint64_t compute_image_region_bytes(cl_mem image, const size_t *region)
{
	size_t element = 0;

	opencl_next_functions.clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof(element),
					     &element, NULL);
	return compute_region_volume(region) * element;
}

cl_int hooked_clEnqueueReadBuffer(cl_command_queue command_queue, cl_mem buffer,
				  cl_bool blocking_read, size_t offset, size_t cb, void *ptr,
				  cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
				  cl_event *event)
{
	struct device_copy told = {.direction = DEVICE_COPY_DEVICE_TO_HOST,
				   .bytes = cb,
				   .from_address = (uintptr_t)buffer,
				   .to_address = (uintptr_t)ptr};

	ENQUEUE_TRACKED_COPY_AND_RETURN(told, opencl_next_functions.clEnqueueReadBuffer(
						      command_queue, buffer, blocking_read, offset,
						      cb, ptr, num_events_in_wait_list,
						      event_wait_list, slot));
}

cl_int hooked_clEnqueueWriteBuffer(cl_command_queue command_queue, cl_mem buffer,
				   cl_bool blocking_write, size_t offset, size_t cb,
				   const void *ptr, cl_uint num_events_in_wait_list,
				   const cl_event *event_wait_list, cl_event *event)
{
	struct device_copy told = {.direction = DEVICE_COPY_HOST_TO_DEVICE,
				   .bytes = cb,
				   .from_address = (uintptr_t)ptr,
				   .to_address = (uintptr_t)buffer};

	ENQUEUE_TRACKED_COPY_AND_RETURN(told, opencl_next_functions.clEnqueueWriteBuffer(
						      command_queue, buffer, blocking_write, offset,
						      cb, ptr, num_events_in_wait_list,
						      event_wait_list, slot));
}

cl_int hooked_clEnqueueCopyBuffer(cl_command_queue command_queue, cl_mem src_buffer,
				  cl_mem dst_buffer, size_t src_offset, size_t dst_offset,
				  size_t cb, cl_uint num_events_in_wait_list,
				  const cl_event *event_wait_list, cl_event *event)
{
	struct device_copy told = {.direction = DEVICE_COPY_DEVICE_TO_DEVICE,
				   .bytes = cb,
				   .from_address = (uintptr_t)src_buffer,
				   .to_address = (uintptr_t)dst_buffer};

	ENQUEUE_TRACKED_COPY_AND_RETURN(
		told, opencl_next_functions.clEnqueueCopyBuffer(
			      command_queue, src_buffer, dst_buffer, src_offset, dst_offset, cb,
			      num_events_in_wait_list, event_wait_list, slot));
}

cl_int hooked_clEnqueueReadBufferRect(cl_command_queue command_queue, cl_mem buffer,
				      cl_bool blocking_read, const size_t *buffer_origin,
				      const size_t *host_origin, const size_t *region,
				      size_t buffer_row_pitch, size_t buffer_slice_pitch,
				      size_t host_row_pitch, size_t host_slice_pitch, void *ptr,
				      cl_uint num_events_in_wait_list,
				      const cl_event *event_wait_list, cl_event *event)
{
	struct device_copy told = {.direction = DEVICE_COPY_DEVICE_TO_HOST,
				   .bytes = compute_region_volume(region),
				   .from_address = (uintptr_t)buffer,
				   .to_address = (uintptr_t)ptr};

	ENQUEUE_TRACKED_COPY_AND_RETURN(
		told,
		opencl_next_functions.clEnqueueReadBufferRect(
			command_queue, buffer, blocking_read, buffer_origin, host_origin, region,
			buffer_row_pitch, buffer_slice_pitch, host_row_pitch, host_slice_pitch, ptr,
			num_events_in_wait_list, event_wait_list, slot));
}

cl_int hooked_clEnqueueWriteBufferRect(cl_command_queue command_queue, cl_mem buffer,
				       cl_bool blocking_read, const size_t *buffer_origin,
				       const size_t *host_origin, const size_t *region,
				       size_t buffer_row_pitch, size_t buffer_slice_pitch,
				       size_t host_row_pitch, size_t host_slice_pitch,
				       const void *ptr, cl_uint num_events_in_wait_list,
				       const cl_event *event_wait_list, cl_event *event)
{
	struct device_copy told = {.direction = DEVICE_COPY_HOST_TO_DEVICE,
				   .bytes = compute_region_volume(region),
				   .from_address = (uintptr_t)ptr,
				   .to_address = (uintptr_t)buffer};

	ENQUEUE_TRACKED_COPY_AND_RETURN(
		told,
		opencl_next_functions.clEnqueueWriteBufferRect(
			command_queue, buffer, blocking_read, buffer_origin, host_origin, region,
			buffer_row_pitch, buffer_slice_pitch, host_row_pitch, host_slice_pitch, ptr,
			num_events_in_wait_list, event_wait_list, slot));
}

cl_int hooked_clEnqueueCopyBufferRect(cl_command_queue command_queue, cl_mem src_buffer,
				      cl_mem dst_buffer, const size_t *src_origin,
				      const size_t *dst_origin, const size_t *region,
				      size_t src_row_pitch, size_t src_slice_pitch,
				      size_t dst_row_pitch, size_t dst_slice_pitch,
				      cl_uint num_events_in_wait_list,
				      const cl_event *event_wait_list, cl_event *event)
{
	struct device_copy told = {.direction = DEVICE_COPY_DEVICE_TO_DEVICE,
				   .bytes = compute_region_volume(region),
				   .from_address = (uintptr_t)src_buffer,
				   .to_address = (uintptr_t)dst_buffer};

	ENQUEUE_TRACKED_COPY_AND_RETURN(
		told, opencl_next_functions.clEnqueueCopyBufferRect(
			      command_queue, src_buffer, dst_buffer, src_origin, dst_origin, region,
			      src_row_pitch, src_slice_pitch, dst_row_pitch, dst_slice_pitch,
			      num_events_in_wait_list, event_wait_list, slot));
}

cl_int hooked_clEnqueueReadImage(cl_command_queue command_queue, cl_mem image,
				 cl_bool blocking_read, const size_t *origin, const size_t *region,
				 size_t row_pitch, size_t slice_pitch, void *ptr,
				 cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
				 cl_event *event)
{
	struct device_copy told = {.direction = DEVICE_COPY_DEVICE_TO_HOST,
				   .bytes = compute_image_region_bytes(image, region),
				   .from_address = (uintptr_t)image,
				   .to_address = (uintptr_t)ptr};

	ENQUEUE_TRACKED_COPY_AND_RETURN(
		told, opencl_next_functions.clEnqueueReadImage(
			      command_queue, image, blocking_read, origin, region, row_pitch,
			      slice_pitch, ptr, num_events_in_wait_list, event_wait_list, slot));
}

cl_int hooked_clEnqueueWriteImage(cl_command_queue command_queue, cl_mem image,
				  cl_bool blocking_write, const size_t *origin,
				  const size_t *region, size_t input_row_pitch,
				  size_t input_slice_pitch, const void *ptr,
				  cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
				  cl_event *event)
{
	struct device_copy told = {.direction = DEVICE_COPY_HOST_TO_DEVICE,
				   .bytes = compute_image_region_bytes(image, region),
				   .from_address = (uintptr_t)ptr,
				   .to_address = (uintptr_t)image};

	ENQUEUE_TRACKED_COPY_AND_RETURN(told,
					opencl_next_functions.clEnqueueWriteImage(
						command_queue, image, blocking_write, origin,
						region, input_row_pitch, input_slice_pitch, ptr,
						num_events_in_wait_list, event_wait_list, slot));
}

cl_int hooked_clEnqueueCopyImage(cl_command_queue command_queue, cl_mem src_image, cl_mem dst_image,
				 const size_t *src_origin, const size_t *dst_origin,
				 const size_t *region, cl_uint num_events_in_wait_list,
				 const cl_event *event_wait_list, cl_event *event)
{
	struct device_copy told = {.direction = DEVICE_COPY_DEVICE_TO_DEVICE,
				   .bytes = compute_image_region_bytes(src_image, region),
				   .from_address = (uintptr_t)src_image,
				   .to_address = (uintptr_t)dst_image};

	ENQUEUE_TRACKED_COPY_AND_RETURN(
		told, opencl_next_functions.clEnqueueCopyImage(
			      command_queue, src_image, dst_image, src_origin, dst_origin, region,
			      num_events_in_wait_list, event_wait_list, slot));
}

cl_int hooked_clEnqueueCopyImageToBuffer(cl_command_queue command_queue, cl_mem src_image,
					 cl_mem dst_buffer, const size_t *src_origin,
					 const size_t *region, size_t dst_offset,
					 cl_uint num_events_in_wait_list,
					 const cl_event *event_wait_list, cl_event *event)
{
	struct device_copy told = {.direction = DEVICE_COPY_DEVICE_TO_DEVICE,
				   .bytes = compute_image_region_bytes(src_image, region),
				   .from_address = (uintptr_t)src_image,
				   .to_address = (uintptr_t)dst_buffer};

	ENQUEUE_TRACKED_COPY_AND_RETURN(
		told, opencl_next_functions.clEnqueueCopyImageToBuffer(
			      command_queue, src_image, dst_buffer, src_origin, region, dst_offset,
			      num_events_in_wait_list, event_wait_list, slot));
}

cl_int hooked_clEnqueueCopyBufferToImage(cl_command_queue command_queue, cl_mem src_buffer,
					 cl_mem dst_image, size_t src_offset,
					 const size_t *dst_origin, const size_t *region,
					 cl_uint num_events_in_wait_list,
					 const cl_event *event_wait_list, cl_event *event)
{
	struct device_copy told = {.direction = DEVICE_COPY_DEVICE_TO_DEVICE,
				   .bytes = compute_image_region_bytes(dst_image, region),
				   .from_address = (uintptr_t)src_buffer,
				   .to_address = (uintptr_t)dst_image};

	ENQUEUE_TRACKED_COPY_AND_RETURN(
		told, opencl_next_functions.clEnqueueCopyBufferToImage(
			      command_queue, src_buffer, dst_image, src_offset, dst_origin, region,
			      num_events_in_wait_list, event_wait_list, slot));
}

/* Shared virtual memory is taken for the device's, and all other for the host's. */
static enum device_copy_direction pointers_to_copy_direction(const void *from, const void *to)
{
	if (opencl_is_svm_pointer(from))
		return opencl_is_svm_pointer(to) ? DEVICE_COPY_DEVICE_TO_DEVICE
						 : DEVICE_COPY_DEVICE_TO_HOST;
	return opencl_is_svm_pointer(to) ? DEVICE_COPY_HOST_TO_DEVICE : DEVICE_COPY_HOST_TO_HOST;
}

cl_int hooked_clEnqueueSVMMemcpy(cl_command_queue command_queue, cl_bool blocking_copy,
				 void *dst_ptr, const void *src_ptr, size_t size,
				 cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
				 cl_event *event)
{
	struct device_copy told = {.direction = pointers_to_copy_direction(src_ptr, dst_ptr),
				   .bytes = size,
				   .from_address = (uintptr_t)src_ptr,
				   .to_address = (uintptr_t)dst_ptr};

	ENQUEUE_TRACKED_COPY_AND_RETURN(told, opencl_next_functions.clEnqueueSVMMemcpy(
						      command_queue, blocking_copy, dst_ptr,
						      src_ptr, size, num_events_in_wait_list,
						      event_wait_list, slot));
}

/* What was mapped for writing, by where: bytes to go back when it is unmapped. */
static struct pointer_map mapped_write_bytes_by_pointer;

static cl_int *get_given_or_own_result_pointer(cl_int *given, cl_int *own)
{
	return given != NULL ? given : own;
}

static bool announce_map_copy_if_wanted(struct opencl_tracked_command *command,
					cl_command_queue queue, cl_mem memory, cl_map_flags flags,
					uint64_t bytes)
{
	struct device_copy told = {.direction = DEVICE_COPY_DEVICE_TO_HOST,
				   .bytes = bytes,
				   .from_address = (uintptr_t)memory};

	return (flags & CL_MAP_READ) != 0 && opencl_announce_copy_if_wanted(command, queue, &told);
}

static void track_map_command_and_store_size(struct opencl_tracked_command *command,
					     cl_command_queue queue, bool wanted, cl_int result,
					     cl_event *slot, const void *mapped, cl_map_flags flags,
					     uint64_t bytes)
{
	if (wanted)
		opencl_track_enqueued_command(command, queue, result, slot);
	if (mapped != NULL)
		pointer_map_set(&mapped_write_bytes_by_pointer, mapped,
				(flags & ~(cl_map_flags)CL_MAP_READ) != 0 ? bytes : 0);
}

void *hooked_clEnqueueMapBuffer(cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_map,
				cl_map_flags map_flags, size_t offset, size_t cb,
				cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
				cl_event *event, cl_int *errcode_ret)
{
	struct opencl_tracked_command command;
	cl_int own_result = CL_SUCCESS,
	       *result = get_given_or_own_result_pointer(errcode_ret, &own_result);
	uint64_t bytes = cb;
	bool wanted =
		announce_map_copy_if_wanted(&command, command_queue, buffer, map_flags, bytes);
	cl_event *slot = wanted && event == NULL ? &command.own : event;
	void *mapped = opencl_next_functions.clEnqueueMapBuffer(
		command_queue, buffer, blocking_map, map_flags, offset, cb, num_events_in_wait_list,
		event_wait_list, slot, result);

	track_map_command_and_store_size(&command, command_queue, wanted, *result, slot, mapped,
					 map_flags, bytes);
	return mapped;
}

void *hooked_clEnqueueMapImage(cl_command_queue command_queue, cl_mem image, cl_bool blocking_map,
			       cl_map_flags map_flags, const size_t *origin, const size_t *region,
			       size_t *image_row_pitch, size_t *image_slice_pitch,
			       cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
			       cl_event *event, cl_int *errcode_ret)
{
	struct opencl_tracked_command command;
	cl_int own_result = CL_SUCCESS,
	       *result = get_given_or_own_result_pointer(errcode_ret, &own_result);
	uint64_t bytes = compute_image_region_bytes(image, region);
	bool wanted = announce_map_copy_if_wanted(&command, command_queue, image, map_flags, bytes);
	cl_event *slot = wanted && event == NULL ? &command.own : event;
	void *mapped = opencl_next_functions.clEnqueueMapImage(
		command_queue, image, blocking_map, map_flags, origin, region, image_row_pitch,
		image_slice_pitch, num_events_in_wait_list, event_wait_list, slot, result);

	track_map_command_and_store_size(&command, command_queue, wanted, *result, slot, mapped,
					 map_flags, bytes);
	return mapped;
}

cl_int hooked_clEnqueueUnmapMemObject(cl_command_queue command_queue, cl_mem memobj,
				      void *mapped_ptr, cl_uint num_events_in_wait_list,
				      const cl_event *event_wait_list, cl_event *event)
{
	struct device_copy told = {
		.direction = DEVICE_COPY_HOST_TO_DEVICE,
		.bytes = pointer_map_get(&mapped_write_bytes_by_pointer, mapped_ptr),
		.from_address = (uintptr_t)mapped_ptr,
		.to_address = (uintptr_t)memobj};

	if (told.bytes == 0)
		return opencl_next_functions.clEnqueueUnmapMemObject(
			command_queue, memobj, mapped_ptr, num_events_in_wait_list, event_wait_list,
			event);
	ENQUEUE_TRACKED_COPY_AND_RETURN(told,
					opencl_next_functions.clEnqueueUnmapMemObject(
						command_queue, memobj, mapped_ptr,
						num_events_in_wait_list, event_wait_list, slot));
}
