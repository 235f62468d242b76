/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * OpenCL as programs use it: several queues, one of them with profiling, kernels with and without
 * events of their own, copies of each direction, mapping, a kernel that is waited for by another
 * queue. Checks its results and that nothing about its queues looks different.
 *
 *   opencl_mix [ROUNDS]           prints "kernels N copies N bytes N"
 *   opencl_mix ROUNDS _exit       ends by _exit()
 */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUEUES 3
#define COUNT  4096

static const char *const source = "__kernel void add(__global float *a, __global const float *b)\n"
				  "{ size_t i = get_global_id(0); a[i] += b[i]; }\n"
				  "__kernel void scale(__global float *a, float by)\n"
				  "{ size_t i = get_global_id(0); a[i] *= by; }\n";

static unsigned long kernels, copies, bytes;

static void check(cl_int result, const char *what)
{
	if (result == CL_SUCCESS)
		return;
	fprintf(stderr, "opencl_mix: %s: %d\n", what, result);
	exit(3);
}

static void copied(size_t size)
{
	copies++;
	bytes += size;
}

struct work {
	cl_command_queue queue;
	cl_kernel add, scale;
	cl_mem a, b, c;
	float host[COUNT];
};

static void run_kernel(struct work *work, cl_kernel kernel, const size_t *local, cl_event *event)
{
	size_t global = COUNT;

	check(clEnqueueNDRangeKernel(work->queue, kernel, 1, NULL, &global, local, 0, NULL, event),
	      "clEnqueueNDRangeKernel");
	kernels++;
}

static void one_round(struct work *work)
{
	const float by = 2;
	const size_t size = sizeof(work->host), local = 64;
	cl_event event;
	float *mapped;
	cl_int result;

	for (unsigned i = 0; i < COUNT; i++)
		work->host[i] = (float)i;
	check(clEnqueueWriteBuffer(work->queue, work->a, CL_FALSE, 0, size, work->host, 0, NULL,
				   NULL),
	      "clEnqueueWriteBuffer");
	copied(size);
	check(clEnqueueWriteBuffer(work->queue, work->b, CL_TRUE, 0, size, work->host, 0, NULL,
				   NULL),
	      "clEnqueueWriteBuffer");
	copied(size);
	check(clSetKernelArg(work->add, 0, sizeof(work->a), &work->a), "clSetKernelArg");
	check(clSetKernelArg(work->add, 1, sizeof(work->b), &work->b), "clSetKernelArg");
	check(clSetKernelArg(work->scale, 0, sizeof(work->a), &work->a), "clSetKernelArg");
	check(clSetKernelArg(work->scale, 1, sizeof(by), &by), "clSetKernelArg");
	run_kernel(work, work->add, &local, NULL);
	run_kernel(work, work->scale, NULL, &event);
	check(clWaitForEvents(1, &event), "clWaitForEvents");
	check(clReleaseEvent(event), "clReleaseEvent");
	check(clEnqueueCopyBuffer(work->queue, work->a, work->c, 0, 0, size, 0, NULL, NULL),
	      "clEnqueueCopyBuffer");
	copied(size);
	check(clEnqueueReadBuffer(work->queue, work->c, CL_TRUE, 0, size, work->host, 0, NULL,
				  NULL),
	      "clEnqueueReadBuffer");
	copied(size);
	mapped = clEnqueueMapBuffer(work->queue, work->c, CL_TRUE, CL_MAP_READ, 0, size, 0, NULL,
				    NULL, &result);
	check(result, "clEnqueueMapBuffer");
	copied(size);
	for (unsigned i = 0; i < COUNT; i++) {
		if (work->host[i] != 4 * (float)i || mapped[i] != work->host[i]) {
			fprintf(stderr, "opencl_mix: wrong value at %u\n", i);
			exit(4);
		}
	}
	check(clEnqueueUnmapMemObject(work->queue, work->c, mapped, 0, NULL, NULL), "unmap");
	check(clFinish(work->queue), "clFinish");
}

static void prepare(struct work *work, cl_context context, cl_program program, cl_device_id device,
		    cl_command_queue_properties properties)
{
	cl_command_queue_properties seen = 0;
	cl_int result;

	work->queue = clCreateCommandQueue(context, device, properties, &result);
	check(result, "clCreateCommandQueue");
	check(clGetCommandQueueInfo(work->queue, CL_QUEUE_PROPERTIES, sizeof(seen), &seen, NULL),
	      "clGetCommandQueueInfo");
	if (seen != properties) {
		fprintf(stderr, "opencl_mix: the queue has other properties than asked for\n");
		exit(4);
	}
	work->add = clCreateKernel(program, "add", &result);
	check(result, "clCreateKernel");
	work->scale = clCreateKernel(program, "scale", &result);
	check(result, "clCreateKernel");
	work->a = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(work->host), NULL, &result);
	check(result, "clCreateBuffer");
	work->b = clCreateBuffer(context, CL_MEM_READ_ONLY, sizeof(work->host), NULL, &result);
	check(result, "clCreateBuffer");
	work->c = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(work->host), NULL, &result);
	check(result, "clCreateBuffer");
}

static void finish(struct work *work)
{
	clReleaseMemObject(work->a);
	clReleaseMemObject(work->b);
	clReleaseMemObject(work->c);
	clReleaseKernel(work->add);
	clReleaseKernel(work->scale);
	clReleaseCommandQueue(work->queue);
}

int main(int count, char **arguments)
{
	static struct work work[QUEUES];
	int rounds = count > 1 ? atoi(arguments[1]) : 10;
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_program program;
	cl_int result;

	check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
	check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &result);
	check(result, "clCreateContext");
	program = clCreateProgramWithSource(context, 1, (const char **)(size_t)&source, NULL,
					    &result);
	check(result, "clCreateProgramWithSource");
	check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
	for (int i = 0; i < QUEUES; i++)
		prepare(&work[i], context, program, device,
			i == QUEUES - 1 ? CL_QUEUE_PROFILING_ENABLE : 0);
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < QUEUES; i++)
			one_round(&work[i]);
	}
	for (int i = 0; i < QUEUES; i++)
		finish(&work[i]);
	clReleaseProgram(program);
	clReleaseContext(context);
	printf("kernels %lu copies %lu bytes %lu\n", kernels, copies, bytes);
	if (count > 2) {
		fflush(stdout);
		_exit(0);
	}
	return 0;
}
