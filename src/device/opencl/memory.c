/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Memory objects as allocations. A buffer has no address that means anything outside the runtime:
 * its handle stands for it.
 */
#include "device/opencl/opencl.h"
#include "device/pointer_map.h"

/* Sizes of what clSVMAlloc() gave. */
static struct pointer_map shared_sizes;

static bool wants(enum device_allocation_operation operation)
{
	const struct device_sink *sink = device_sink();

	return sink != NULL && sink->wants(DEVICE_SERVICE_ALLOCATIONS, (int32_t)operation);
}

static uint64_t now(void)
{
	const struct device_sink *sink = device_sink();

	return sink != NULL ? sink->now() : 0;
}

static void tell(enum device_allocation_operation operation, unsigned device_number,
		 const void *object, uint64_t bytes, uint64_t start)
{
	struct device_allocation told = {.operation = operation,
					 .agent = opencl_device_agent(device_number),
					 .address = (uintptr_t)object,
					 .bytes = bytes,
					 .start = start,
					 .end = now()};

	device_sink()->allocation(&told);
}

static cl_mem made(cl_context context, cl_mem memory, uint64_t start)
{
	size_t bytes = 0;

	if (memory == NULL || !wants(DEVICE_ALLOCATE))
		return memory;
	opencl_next.clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof(bytes), &bytes, NULL);
	tell(DEVICE_ALLOCATE, opencl_context_device_number(context), memory, bytes, start);
	return memory;
}

cl_mem hooked_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host_ptr,
			     cl_int *errcode_ret)
{
	uint64_t start = now();

	return made(context,
		    opencl_next.clCreateBuffer(context, flags, size, host_ptr, errcode_ret), start);
}

cl_mem hooked_clCreateBufferWithProperties(cl_context context, const cl_mem_properties *properties,
					   cl_mem_flags flags, size_t size, void *host_ptr,
					   cl_int *errcode_ret)
{
	uint64_t start = now();

	return made(context,
		    opencl_next.clCreateBufferWithProperties(context, properties, flags, size,
							     host_ptr, errcode_ret),
		    start);
}

cl_mem hooked_clCreateImage(cl_context context, cl_mem_flags flags,
			    const cl_image_format *image_format, const cl_image_desc *image_desc,
			    void *host_ptr, cl_int *errcode_ret)
{
	uint64_t start = now();

	return made(context,
		    opencl_next.clCreateImage(context, flags, image_format, image_desc, host_ptr,
					      errcode_ret),
		    start);
}

cl_mem hooked_clCreateImageWithProperties(cl_context context, const cl_mem_properties *properties,
					  cl_mem_flags flags, const cl_image_format *image_format,
					  const cl_image_desc *image_desc, void *host_ptr,
					  cl_int *errcode_ret)
{
	uint64_t start = now();

	return made(context,
		    opencl_next.clCreateImageWithProperties(context, properties, flags,
							    image_format, image_desc, host_ptr,
							    errcode_ret),
		    start);
}

cl_mem hooked_clCreateImage2D(cl_context context, cl_mem_flags flags,
			      const cl_image_format *image_format, size_t image_width,
			      size_t image_height, size_t image_row_pitch, void *host_ptr,
			      cl_int *errcode_ret)
{
	uint64_t start = now();

	return made(context,
		    opencl_next.clCreateImage2D(context, flags, image_format, image_width,
						image_height, image_row_pitch, host_ptr,
						errcode_ret),
		    start);
}

cl_mem hooked_clCreateImage3D(cl_context context, cl_mem_flags flags,
			      const cl_image_format *image_format, size_t image_width,
			      size_t image_height, size_t image_depth, size_t image_row_pitch,
			      size_t image_slice_pitch, void *host_ptr, cl_int *errcode_ret)
{
	uint64_t start = now();

	return made(context,
		    opencl_next.clCreateImage3D(context, flags, image_format, image_width,
						image_height, image_depth, image_row_pitch,
						image_slice_pitch, host_ptr, errcode_ret),
		    start);
}

/* A part of a buffer (clCreateSubBuffer) was no allocation. */
static bool is_last_reference(cl_mem memory)
{
	cl_uint references = 0;
	cl_mem whole = NULL;

	opencl_next.clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof(references),
				       &references, NULL);
	opencl_next.clGetMemObjectInfo(memory, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(whole), &whole,
				       NULL);
	return references == 1 && whole == NULL;
}

cl_int hooked_clReleaseMemObject(cl_mem memobj)
{
	bool is_wanted = memobj != NULL && wants(DEVICE_FREE) && is_last_reference(memobj);
	cl_context context = NULL;
	unsigned device_number = 0;
	size_t bytes = 0;
	uint64_t start = now();
	cl_int result;

	if (is_wanted) {
		opencl_next.clGetMemObjectInfo(memobj, CL_MEM_SIZE, sizeof(bytes), &bytes, NULL);
		opencl_next.clGetMemObjectInfo(memobj, CL_MEM_CONTEXT, sizeof(context), &context,
					       NULL);
		/* The context may go with its last object. */
		device_number = opencl_context_device_number(context);
	}
	result = opencl_next.clReleaseMemObject(memobj);
	if (is_wanted && result == CL_SUCCESS)
		tell(DEVICE_FREE, device_number, memobj, bytes, start);
	return result;
}

void *hooked_clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size,
			unsigned int alignment)
{
	uint64_t start = now();
	void *memory = opencl_next.clSVMAlloc(context, flags, size, alignment);

	if (memory == NULL)
		return NULL;
	pointer_map_set(&shared_sizes, memory, size);
	if (wants(DEVICE_ALLOCATE))
		tell(DEVICE_ALLOCATE, opencl_context_device_number(context), memory, size, start);
	return memory;
}

void hooked_clSVMFree(cl_context context, void *svm_pointer)
{
	uint64_t start = now();
	uint64_t bytes = pointer_map_get(&shared_sizes, svm_pointer);

	opencl_next.clSVMFree(context, svm_pointer);
	if (svm_pointer != NULL && wants(DEVICE_FREE))
		tell(DEVICE_FREE, opencl_context_device_number(context), svm_pointer, bytes, start);
}
