/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Two kernels of which the first waits for the second, each in a queue of its own: they need to run
 * at the same time. Serialized the first would wait for ever; it gives up after SPINS turns.
 *
 *   opencl_codependent [ROUNDS [SPINS]]      prints "rounds N, met N"
 */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const source =
	"__kernel void waits(__global volatile int *flag, __global int *met, long most)\n"
	"{ long i = 0; while (atomic_add(flag, 0) == 0 && i < most) i++;\n"
	"  *met = atomic_add(flag, 0); }\n"
	"__kernel void signals(__global volatile int *flag) { atomic_xchg(flag, 1); }\n"
	"__kernel void alone(__global int *met) { *met += 0; }\n";

static void check(cl_int result, const char *what)
{
	if (result == CL_SUCCESS)
		return;
	fprintf(stderr, "opencl_codependent: %s: %d\n", what, result);
	exit(3);
}
#define CHECK(call) check(call, #call)

static cl_context context;
static cl_command_queue queues[2];
static cl_kernel waits, signals, alone;
static cl_mem flag, met;

static void make(cl_long spins)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_program program;
	cl_int result;

	CHECK(clGetPlatformIDs(1, &platform, NULL));
	CHECK(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &result);
	check(result, "clCreateContext");
	for (unsigned i = 0; i < 2; i++)
		queues[i] = clCreateCommandQueue(context, device, 0, &result);
	check(result, "clCreateCommandQueue");
	program = clCreateProgramWithSource(context, 1, (const char **)&source, NULL, &result);
	CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL));
	waits = clCreateKernel(program, "waits", &result);
	signals = clCreateKernel(program, "signals", &result);
	alone = clCreateKernel(program, "alone", &result);
	check(result, "clCreateKernel");
	flag = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &result);
	met = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &result);
	check(result, "clCreateBuffer");
	CHECK(clSetKernelArg(waits, 0, sizeof(flag), &flag));
	CHECK(clSetKernelArg(waits, 1, sizeof(met), &met));
	CHECK(clSetKernelArg(waits, 2, sizeof(spins), &spins));
	CHECK(clSetKernelArg(signals, 0, sizeof(flag), &flag));
	CHECK(clSetKernelArg(alone, 0, sizeof(met), &met));
	CHECK(clReleaseProgram(program));
}

static void enqueue(unsigned queue, cl_kernel kernel)
{
	const size_t one = 1;

	CHECK(clEnqueueNDRangeKernel(queues[queue], kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
	CHECK(clFlush(queues[queue]));
}

static int one_round(void)
{
	cl_int zero = 0, seen = 0;

	CHECK(clEnqueueWriteBuffer(queues[0], flag, CL_TRUE, 0, sizeof(zero), &zero, 0, NULL,
				   NULL));
	enqueue(0, waits);
	enqueue(1, signals);
	CHECK(clFinish(queues[1]));
	CHECK(clFinish(queues[0]));
	enqueue(0, alone);
	CHECK(clEnqueueReadBuffer(queues[0], met, CL_TRUE, 0, sizeof(seen), &seen, 0, NULL, NULL));
	return seen != 0;
}

int main(int count, char **arguments)
{
	int rounds = count > 1 ? atoi(arguments[1]) : 2, met_count = 0;

	make(count > 2 ? atoll(arguments[2]) : 4000000000);
	for (int i = 0; i < rounds; i++)
		met_count += one_round();
	printf("rounds %d, met %d\n", rounds, met_count);
	return met_count != rounds;
}
