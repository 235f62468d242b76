/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Programs and kernels as code objects and symbols. A program is reported with the first kernel
 * made of it: then it is built, in whichever of the many ways.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "device/kernel_serializer.h"
#include "device/opencl/opencl.h"
#include "device/pointer_map.h"

#define UNLOAD_WAIT_FOR_COMMANDS_NS 50000000u

static struct pointer_map program_handles_by_program, kernel_symbols_by_kernel;
static _Atomic unsigned program_count;

static device_handle find_or_add_program_of_kernel(const struct device_sink *sink, cl_kernel kernel)
{
	struct device_program told = {0};
	cl_program program = NULL;
	cl_device_id devices[64] = {NULL};
	device_handle handle;
	char uri[64];

	if (opencl_next_functions.clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof(program),
						  &program, NULL) != CL_SUCCESS ||
	    program == NULL)
		return DEVICE_HANDLE_NONE;
	handle = pointer_map_get(&program_handles_by_program, program);
	if (handle != DEVICE_HANDLE_NONE)
		return handle;
	opencl_next_functions.clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof(devices),
					       devices, NULL);
	snprintf(uri, sizeof(uri), "opencl://program/%u", atomic_fetch_add(&program_count, 1) + 1);
	told.agent = opencl_device_get_agent(opencl_device_find_or_add(devices[0]));
	told.uri = uri;
	handle = sink->program_load(&told);
	pointer_map_set(&program_handles_by_program, program, handle);
	return handle;
}

static uint64_t read_kernel_memory_bytes(cl_kernel kernel, cl_device_id device,
					 cl_kernel_work_group_info what)
{
	cl_ulong bytes = 0;

	if (opencl_next_functions.clGetKernelWorkGroupInfo(kernel, device, what, sizeof(bytes),
							   &bytes, NULL) != CL_SUCCESS)
		return 0;
	return bytes;
}

static device_handle report_kernel_symbol(cl_kernel kernel, unsigned device_number)
{
	const struct device_sink *sink = device_get_sink();
	struct device_symbol symbol = {.object = (uintptr_t)kernel};
	cl_device_id device = opencl_device_find_by_number(device_number);
	device_handle handle;
	char name[1024];

	if (sink == NULL || kernel == NULL)
		return DEVICE_HANDLE_NONE;
	if (opencl_next_functions.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof(name),
						  name, NULL) != CL_SUCCESS)
		snprintf(name, sizeof(name), "(name longer than %zu)", sizeof(name));
	symbol.program = find_or_add_program_of_kernel(sink, kernel);
	symbol.name = name;
	if (device != NULL) {
		symbol.group_bytes = (uint32_t)read_kernel_memory_bytes(kernel, device,
									CL_KERNEL_LOCAL_MEM_SIZE);
		symbol.private_bytes = (uint32_t)read_kernel_memory_bytes(
			kernel, device, CL_KERNEL_PRIVATE_MEM_SIZE);
	}
	handle = sink->kernel_symbol(&symbol);
	serializer_add_kernel_name(handle, name);
	pointer_map_set(&kernel_symbols_by_kernel, kernel, handle);
	return handle;
}

device_handle opencl_find_or_add_kernel_symbol(cl_kernel kernel, unsigned device_number)
{
	device_handle handle = pointer_map_get(&kernel_symbols_by_kernel, kernel);

	return handle != DEVICE_HANDLE_NONE ? handle : report_kernel_symbol(kernel, device_number);
}

cl_kernel hooked_clCreateKernel(cl_program program, const char *kernel_name, cl_int *errcode_ret)
{
	cl_kernel kernel = opencl_next_functions.clCreateKernel(program, kernel_name, errcode_ret);

	report_kernel_symbol(kernel, 0);
	return kernel;
}

cl_int hooked_clCreateKernelsInProgram(cl_program program, cl_uint num_kernels, cl_kernel *made,
				       cl_uint *num_kernels_ret)
{
	cl_uint count = 0;
	cl_int result =
		opencl_next_functions.clCreateKernelsInProgram(program, num_kernels, made, &count);

	if (num_kernels_ret != NULL)
		*num_kernels_ret = count;
	for (cl_uint i = 0; result == CL_SUCCESS && made != NULL && i < count && i < num_kernels;
	     i++)
		report_kernel_symbol(made[i], 0);
	return result;
}

cl_kernel hooked_clCloneKernel(cl_kernel source_kernel, cl_int *errcode_ret)
{
	cl_kernel kernel = opencl_next_functions.clCloneKernel(source_kernel, errcode_ret);

	report_kernel_symbol(kernel, 0);
	return kernel;
}

cl_int hooked_clReleaseProgram(cl_program program)
{
	const struct device_sink *sink = device_get_sink();
	cl_uint references = 0;
	device_handle handle = pointer_map_get(&program_handles_by_program, program);

	if (sink != NULL && handle != DEVICE_HANDLE_NONE &&
	    opencl_next_functions.clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT,
						   sizeof(references), &references,
						   NULL) == CL_SUCCESS &&
	    references == 1) {
		pointer_map_set(&program_handles_by_program, program, DEVICE_HANDLE_NONE);
		/* What has ended is reported by another thread, and is to come before the
		 * end of what it names. */
		if (sink->is_wanted(DEVICE_SERVICE_PROGRAMS, -1))
			opencl_wait_until_idle(UNLOAD_WAIT_FOR_COMMANDS_NS);
		sink->program_unload(handle);
	}
	return opencl_next_functions.clReleaseProgram(program);
}
