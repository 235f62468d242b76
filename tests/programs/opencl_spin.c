/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Kernels that compute for a while, for counters to be compared with what the program measures
 * itself: the CPU time of the process around each launch of `spin`, where the device is the
 * processor. Then launches of `both` on two queues at once.
 *
 *   opencl_spin [ROUNDS [STEPS]]    prints "spin NUMBER CPU-NS" for each, then "both N sum N"
 */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define QUEUES 2
#define ITEMS  64

static const char *const source =
	"void work(__global uint *a, uint steps)\n"
	"{ uint x = a[get_global_id(0)];\n"
	"  for (uint i = 0; i < steps; i++) x = x * 1664525u + 1013904223u + (x >> 7);\n"
	"  a[get_global_id(0)] = x; }\n"
	"__kernel void spin(__global uint *a, uint steps) { work(a, steps); }\n"
	"__kernel void both(__global uint *a, uint steps) { work(a, steps); }\n";

static void check(cl_int result, const char *what)
{
	if (result == CL_SUCCESS)
		return;
	fprintf(stderr, "opencl_spin: %s: %d\n", what, result);
	exit(3);
}

static unsigned long long cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (unsigned long long)used.tv_sec * 1000000000u + (unsigned long long)used.tv_nsec;
}

static void launch(cl_command_queue queue, cl_kernel kernel, cl_mem memory, cl_uint steps)
{
	size_t items = ITEMS, group = ITEMS / 2;

	check(clSetKernelArg(kernel, 0, sizeof(memory), &memory), "clSetKernelArg");
	check(clSetKernelArg(kernel, 1, sizeof(steps), &steps), "clSetKernelArg");
	check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &group, 0, NULL, NULL),
	      "clEnqueueNDRangeKernel");
}

int main(int count, char **arguments)
{
	int rounds = count > 1 ? atoi(arguments[1]) : 4;
	cl_uint steps = count > 2 ? (cl_uint)atoi(arguments[2]) : 100000;
	cl_uint host[ITEMS] = {1}, sum = 0;
	cl_platform_id platform;
	cl_device_id device;
	cl_command_queue queues[QUEUES];
	cl_mem memory[QUEUES];
	cl_context context;
	cl_program program;
	cl_kernel spin, both;
	cl_int result;

	setvbuf(stdout, NULL, _IOLBF, 0);
	check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
	check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &result);
	check(result, "clCreateContext");
	program = clCreateProgramWithSource(context, 1, (const char **)&source, NULL, &result);
	check(result, "clCreateProgramWithSource");
	check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
	spin = clCreateKernel(program, "spin", &result);
	check(result, "clCreateKernel");
	both = clCreateKernel(program, "both", &result);
	check(result, "clCreateKernel");
	for (int i = 0; i < QUEUES; i++) {
		queues[i] = clCreateCommandQueue(context, device, 0, &result);
		check(result, "clCreateCommandQueue");
		memory[i] = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
					   sizeof(host), host, &result);
		check(result, "clCreateBuffer");
	}
	for (int i = 0; i < rounds; i++) {
		unsigned long long before = cpu_ns();

		/* Each takes longer than the one before. */
		launch(queues[i % QUEUES], spin, memory[i % QUEUES], steps * (cl_uint)(i + 1));
		check(clFinish(queues[i % QUEUES]), "clFinish");
		printf("spin %d %llu\n", i + 1, cpu_ns() - before);
	}
	for (int i = 0; i < rounds; i++) {
		for (int queue = 0; queue < QUEUES; queue++) {
			launch(queues[queue], both, memory[queue], steps);
			check(clFlush(queues[queue]), "clFlush");
		}
	}
	for (int i = 0; i < QUEUES; i++) {
		check(clEnqueueReadBuffer(queues[i], memory[i], CL_TRUE, 0, sizeof(host), host, 0,
					  NULL, NULL),
		      "clEnqueueReadBuffer");
		for (unsigned k = 0; k < ITEMS; k++)
			sum += host[k];
	}
	printf("both %d sum %u\n", rounds * QUEUES, sum);
	return 0;
}
