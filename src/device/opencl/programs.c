/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Programs and kernels as code objects and symbols. A program is told with the first kernel made of
 * it: then it is built, in whichever of the many ways.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "device/opencl/opencl.h"
#include "device/pointer_map.h"
#include "device/turns.h"

#define KERNELS_AT_ONCE   1024
#define WAIT_FOR_ENDED_NS 50000000u

static struct pointer_map programs, kernels;
static _Atomic unsigned program_count;

static device_handle program_of(const struct device_sink *sink, cl_kernel kernel)
{
	struct device_program told = {0};
	cl_program program = NULL;
	cl_device_id devices[64] = {NULL};
	device_handle handle;
	char uri[64];

	if (opencl_next.clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof(program), &program,
					NULL) != CL_SUCCESS ||
	    program == NULL)
		return DEVICE_NONE;
	handle = pointer_map_get(&programs, program);
	if (handle != DEVICE_NONE)
		return handle;
	opencl_next.clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof(devices), devices, NULL);
	snprintf(uri, sizeof(uri), "opencl://program/%u", atomic_fetch_add(&program_count, 1) + 1);
	told.agent = opencl_device_agent(opencl_device_number(devices[0]));
	told.uri = uri;
	handle = sink->program_load(&told);
	pointer_map_set(&programs, program, handle);
	return handle;
}

static uint64_t kernel_bytes(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what)
{
	cl_ulong bytes = 0;

	if (opencl_next.clGetKernelWorkGroupInfo(kernel, device, what, sizeof(bytes), &bytes,
						 NULL) != CL_SUCCESS)
		return 0;
	return bytes;
}

static device_handle remember(cl_kernel kernel, unsigned device_number)
{
	const struct device_sink *sink = device_sink();
	struct device_symbol symbol = {.object = (uintptr_t)kernel};
	cl_device_id device = opencl_device(device_number);
	device_handle handle;
	char name[1024];

	if (sink == NULL || kernel == NULL)
		return DEVICE_NONE;
	if (opencl_next.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(name), name,
					NULL) != CL_SUCCESS)
		snprintf(name, sizeof(name), "(name longer than %zu)", sizeof(name));
	symbol.program = program_of(sink, kernel);
	symbol.name = name;
	if (device != NULL) {
		symbol.group_bytes =
			(uint32_t)kernel_bytes(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE);
		symbol.private_bytes =
			(uint32_t)kernel_bytes(kernel, device, CL_KERNEL_PRIVATE_MEM_SIZE);
	}
	handle = sink->kernel_symbol(&symbol);
	turn_kernel_named(handle, name);
	pointer_map_set(&kernels, kernel, handle);
	return handle;
}

device_handle opencl_symbol_of(cl_kernel kernel, unsigned device_number)
{
	device_handle handle = pointer_map_get(&kernels, kernel);

	return handle != DEVICE_NONE ? handle : remember(kernel, device_number);
}

cl_kernel hooked_clCreateKernel(cl_program program, const char *kernel_name, cl_int *errcode_ret)
{
	cl_kernel kernel = opencl_next.clCreateKernel(program, kernel_name, errcode_ret);

	remember(kernel, 0);
	return kernel;
}

cl_int hooked_clCreateKernelsInProgram(cl_program program, cl_uint num_kernels, cl_kernel *made,
				       cl_uint *num_kernels_ret)
{
	cl_uint count = 0;
	cl_int result = opencl_next.clCreateKernelsInProgram(program, num_kernels, made, &count);

	if (num_kernels_ret != NULL)
		*num_kernels_ret = count;
	for (cl_uint i = 0; result == CL_SUCCESS && made != NULL && i < count && i < num_kernels;
	     i++)
		remember(made[i], 0);
	return result;
}

cl_kernel hooked_clCloneKernel(cl_kernel source_kernel, cl_int *errcode_ret)
{
	cl_kernel kernel = opencl_next.clCloneKernel(source_kernel, errcode_ret);

	remember(kernel, 0);
	return kernel;
}

cl_int hooked_clReleaseProgram(cl_program program)
{
	const struct device_sink *sink = device_sink();
	cl_uint references = 0;
	device_handle handle = pointer_map_get(&programs, program);

	if (sink != NULL && handle != DEVICE_NONE &&
	    opencl_next.clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof(references),
					 &references, NULL) == CL_SUCCESS &&
	    references == 1) {
		pointer_map_set(&programs, program, DEVICE_NONE);
		/* What has ended is told from another thread, and is to come before the end of what
		 * it names. */
		if (sink->wants(DEVICE_SERVICE_PROGRAMS, -1))
			opencl_wait(WAIT_FOR_ENDED_NS);
		sink->program_unload(handle);
	}
	return opencl_next.clReleaseProgram(program);
}
