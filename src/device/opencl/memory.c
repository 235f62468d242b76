/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Memory objects as allocations. A buffer has no address that means anything outside the runtime:
 * its handle stands for it.
 */
#include "device/address_ranges.h"
#include "device/opencl/opencl.h"

/* What clSVMAlloc() gave. */
static struct address_ranges svm_allocations = {.mutex = PTHREAD_MUTEX_INITIALIZER};

bool opencl_is_svm_pointer(const void *pointer)
{
	return address_ranges_contain(&svm_allocations, pointer);
}

void opencl_forget_svm_allocations(void)
{
	address_ranges_reset_forked(&svm_allocations);
}

static bool sink_wants_allocation(enum device_allocation_operation operation)
{
	const struct device_sink *sink = device_get_sink();

	return sink != NULL && sink->is_wanted(DEVICE_SERVICE_ALLOCATIONS, (int32_t)operation);
}

static uint64_t read_sink_time(void)
{
	const struct device_sink *sink = device_get_sink();

	return sink != NULL ? sink->now() : 0;
}

static void emit_allocation(enum device_allocation_operation operation, unsigned device_number,
			    const void *object, uint64_t bytes, uint64_t start)
{
	struct device_allocation told = {.operation = operation,
					 .agent = opencl_device_get_agent(device_number),
					 .address = (uintptr_t)object,
					 .bytes = bytes,
					 .start = start,
					 .end = read_sink_time()};

	device_get_sink()->allocation_event(&told);
}

static cl_mem report_allocation_if_wanted(cl_context context, cl_mem memory, uint64_t start)
{
	size_t bytes = 0;

	if (memory == NULL || !sink_wants_allocation(DEVICE_ALLOCATE))
		return memory;
	opencl_next_functions.clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof(bytes), &bytes, NULL);
	emit_allocation(DEVICE_ALLOCATE, opencl_context_to_device_number(context), memory, bytes,
			start);
	return memory;
}

cl_mem hooked_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host_ptr,
			     cl_int *errcode_ret)
{
	uint64_t start = read_sink_time();

	return report_allocation_if_wanted(
		context,
		opencl_next_functions.clCreateBuffer(context, flags, size, host_ptr, errcode_ret),
		start);
}

cl_mem hooked_clCreateBufferWithProperties(cl_context context, const cl_mem_properties *properties,
					   cl_mem_flags flags, size_t size, void *host_ptr,
					   cl_int *errcode_ret)
{
	uint64_t start = read_sink_time();

	return report_allocation_if_wanted(
		context,
		opencl_next_functions.clCreateBufferWithProperties(context, properties, flags, size,
								   host_ptr, errcode_ret),
		start);
}

cl_mem hooked_clCreateImage(cl_context context, cl_mem_flags flags,
			    const cl_image_format *image_format, const cl_image_desc *image_desc,
			    void *host_ptr, cl_int *errcode_ret)
{
	uint64_t start = read_sink_time();

	return report_allocation_if_wanted(
		context,
		opencl_next_functions.clCreateImage(context, flags, image_format, image_desc,
						    host_ptr, errcode_ret),
		start);
}

cl_mem hooked_clCreateImageWithProperties(cl_context context, const cl_mem_properties *properties,
					  cl_mem_flags flags, const cl_image_format *image_format,
					  const cl_image_desc *image_desc, void *host_ptr,
					  cl_int *errcode_ret)
{
	uint64_t start = read_sink_time();

	return report_allocation_if_wanted(context,
					   opencl_next_functions.clCreateImageWithProperties(
						   context, properties, flags, image_format,
						   image_desc, host_ptr, errcode_ret),
					   start);
}

cl_mem hooked_clCreateImage2D(cl_context context, cl_mem_flags flags,
			      const cl_image_format *image_format, size_t image_width,
			      size_t image_height, size_t image_row_pitch, void *host_ptr,
			      cl_int *errcode_ret)
{
	uint64_t start = read_sink_time();

	return report_allocation_if_wanted(
		context,
		opencl_next_functions.clCreateImage2D(context, flags, image_format, image_width,
						      image_height, image_row_pitch, host_ptr,
						      errcode_ret),
		start);
}

cl_mem hooked_clCreateImage3D(cl_context context, cl_mem_flags flags,
			      const cl_image_format *image_format, size_t image_width,
			      size_t image_height, size_t image_depth, size_t image_row_pitch,
			      size_t image_slice_pitch, void *host_ptr, cl_int *errcode_ret)
{
	uint64_t start = read_sink_time();

	return report_allocation_if_wanted(
		context,
		opencl_next_functions.clCreateImage3D(context, flags, image_format, image_width,
						      image_height, image_depth, image_row_pitch,
						      image_slice_pitch, host_ptr, errcode_ret),
		start);
}

/* A part of a buffer (clCreateSubBuffer) was no allocation. */
static bool is_last_reference_to_allocation(cl_mem memory)
{
	cl_uint references = 0;
	cl_mem whole = NULL;

	opencl_next_functions.clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof(references),
						 &references, NULL);
	opencl_next_functions.clGetMemObjectInfo(memory, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(whole),
						 &whole, NULL);
	return references == 1 && whole == NULL;
}

cl_int hooked_clReleaseMemObject(cl_mem memobj)
{
	bool is_wanted = memobj != NULL && sink_wants_allocation(DEVICE_FREE) &&
			 is_last_reference_to_allocation(memobj);
	cl_context context = NULL;
	unsigned device_number = 0;
	size_t bytes = 0;
	uint64_t start = read_sink_time();
	cl_int result;

	if (is_wanted) {
		opencl_next_functions.clGetMemObjectInfo(memobj, CL_MEM_SIZE, sizeof(bytes), &bytes,
							 NULL);
		opencl_next_functions.clGetMemObjectInfo(memobj, CL_MEM_CONTEXT, sizeof(context),
							 &context, NULL);
		/* The context may go with its last object. */
		device_number = opencl_context_to_device_number(context);
	}
	result = opencl_next_functions.clReleaseMemObject(memobj);
	if (is_wanted && result == CL_SUCCESS)
		emit_allocation(DEVICE_FREE, device_number, memobj, bytes, start);
	return result;
}

void *hooked_clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size,
			unsigned int alignment)
{
	uint64_t start = read_sink_time();
	void *memory = opencl_next_functions.clSVMAlloc(context, flags, size, alignment);

	if (memory == NULL)
		return NULL;
	address_ranges_add(&svm_allocations, memory, size);
	if (sink_wants_allocation(DEVICE_ALLOCATE))
		emit_allocation(DEVICE_ALLOCATE, opencl_context_to_device_number(context), memory,
				size, start);
	return memory;
}

/* Before it is freed: another thread may get the same memory right after. */
void hooked_clSVMFree(cl_context context, void *svm_pointer)
{
	uint64_t start = read_sink_time();
	uint64_t bytes = address_ranges_remove(&svm_allocations, svm_pointer);

	opencl_next_functions.clSVMFree(context, svm_pointer);
	if (svm_pointer != NULL && sink_wants_allocation(DEVICE_FREE))
		emit_allocation(DEVICE_FREE, opencl_context_to_device_number(context), svm_pointer,
				bytes, start);
}

/* The command frees them some time later; nobody may use them in commands behind it. What the
 * program frees itself, in the function that it gives, it frees by clSVMFree(). */
cl_int hooked_clEnqueueSVMFree(cl_command_queue command_queue, cl_uint num_svm_pointers,
			       void **svm_pointers, cl_callback pfn_free_func, void *user_data,
			       cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
			       cl_event *event)
{
	bool is_wanted = pfn_free_func == NULL && sink_wants_allocation(DEVICE_FREE);
	uint64_t start = read_sink_time();
	unsigned device_number = opencl_find_queue(command_queue).device_number;

	for (cl_uint i = 0; pfn_free_func == NULL && svm_pointers != NULL && i < num_svm_pointers;
	     i++) {
		uint64_t bytes = address_ranges_remove(&svm_allocations, svm_pointers[i]);

		if (is_wanted && bytes != 0)
			emit_allocation(DEVICE_FREE, device_number, svm_pointers[i], bytes, start);
	}
	return opencl_next_functions.clEnqueueSVMFree(
		command_queue, num_svm_pointers, svm_pointers, pfn_free_func, user_data,
		num_events_in_wait_list, event_wait_list, event);
}
