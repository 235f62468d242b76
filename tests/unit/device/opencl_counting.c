/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counting kernels on OpenCL's real runtime (PoCL), through the layer; skipped where there is none.
 * Each test is a process of its own, for the filter and the watchdog are read once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../assert_at.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/array.h"
#include "counting_sink.h"
#include "device/opencl/opencl.h"
#include "device/registry/devices.h"
#include "sink.h"

#define SKIPPED 77

static const char *const source =
	"__kernel void work(__global float *a, int rounds)\n"
	"{ float x = a[get_global_id(0)]; for (int i = 0; i < rounds; i++) x = x * 0.999f + 1.0f;\n"
	"  a[get_global_id(0)] = x; }\n"
	"__kernel void nccl_all(__global float *a, int rounds) { a[get_global_id(0)] = rounds; }\n"
	"__kernel void waits(__global volatile int *flag, __global int *seen, long most)\n"
	"{ long i = 0; while (atomic_add(flag, 0) == 0 && i < most) i++;\n"
	"  *seen = atomic_add(flag, 0) != 0 ? 1 : 2; }\n"
	"__kernel void signals(__global volatile int *flag) { atomic_xchg(flag, 1); }\n";

static struct opencl_function_table below;
static const struct opencl_function_table *cl;
static cl_device_id device;
static cl_context context;
static cl_command_queue queues[2];
static cl_program program;
static cl_mem buffer, flag, seen;
static device_handle agent;
static struct counting_problem problem;

static void check(cl_int result)
{
	assert_int_equal(result, CL_SUCCESS);
}

static void start(void)
{
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW);
	cl_platform_id platform;
	cl_uint count = 0;
	cl_int result;

	if (library == NULL)
		exit(SKIPPED);
#define OPENCL_CALL_ROW(number, type, name, parameters, arguments, addresses)                      \
	*(void **)&below.name = dlsym(library, #name);
#define OPENCL_HOOKED_CALL_ROW OPENCL_CALL_ROW
#define OPENCL_VOID_CALL_ROW(number, name, parameters, arguments, addresses)                       \
	OPENCL_CALL_ROW(number, , name, , , )
#define OPENCL_HOOKED_VOID_CALL_ROW OPENCL_VOID_CALL_ROW
#define OPENCL_ABSENT_ROW(number, name)
#include "device/opencl/calls_table.h"
#undef OPENCL_CALL_ROW
#undef OPENCL_HOOKED_CALL_ROW
#undef OPENCL_VOID_CALL_ROW
#undef OPENCL_HOOKED_VOID_CALL_ROW
#undef OPENCL_ABSENT_ROW
	if (below.clGetPlatformIDs(1, &platform, &count) != CL_SUCCESS || count == 0 ||
	    below.clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, &count) != CL_SUCCESS)
		exit(SKIPPED);
	sink_start();
	cl = opencl_interpose_function_table((const void *const *)&below, OPENCL_CALL_COUNT);
	context = cl->clCreateContext(NULL, 1, &device, NULL, NULL, &result);
	check(result);
	for (unsigned i = 0; i < 2; i++) {
		queues[i] = cl->clCreateCommandQueue(context, device, 0, &result);
		check(result);
	}
	program = cl->clCreateProgramWithSource(context, 1, (const char **)&source, NULL, &result);
	check(cl->clBuildProgram(program, 0, NULL, "", NULL, NULL));
	buffer = cl->clCreateBuffer(context, 1, 1 << 20, NULL, &result);
	flag = cl->clCreateBuffer(context, 1, 64, NULL, &result);
	seen = cl->clCreateBuffer(context, 1, 64, NULL, &result);
	check(result);
	agent = opencl_device_get_agent(opencl_device_find_or_add(device));
}

static cl_kernel kernel_of(const char *name)
{
	cl_int result, rounds = 1000;
	cl_kernel kernel = cl->clCreateKernel(program, name, &result);

	check(result);
	check(cl->clSetKernelArg(kernel, 0, sizeof(buffer), &buffer));
	check(cl->clSetKernelArg(kernel, 1, sizeof(rounds), &rounds));
	return kernel;
}

static void enqueue(cl_command_queue queue, cl_kernel kernel, size_t items)
{
	check(cl->clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL));
}

static void count_with(const struct counting_event_request *requests, uint32_t count)
{
	uint32_t ways = 0;
	void *set = NULL;

	assert_int_equal(opencl_counting.set_make(agent, requests, count, &set, &ways, &problem),
			 COUNTING_OK);
	assert_true((ways & COUNTING_BY_DISPATCH) != 0);
	opencl_counting.dispatch_counting_switch(agent, true);
	atomic_store(&counting_set, set);
}

static void finish(void)
{
	void *set = atomic_exchange(&counting_set, NULL);

	check(cl->clFinish(queues[0]));
	check(cl->clFinish(queues[1]));
	device_flush_all_backends(true, 5000000000);
	if (set != NULL)
		opencl_counting.set_free(set);
	assert_int_equal(told.misused, 0);
	assert_int_equal(told.completed + told.failed, told.kernels);
	assert_int_equal(counted_told.counted + counted_told.not_counted, counted_told.asked);
}

static double cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static const struct counting_event_request of_kernels[] = {
	{.block = "OPENCL", .event = "kernel-time"},
	{.block = "SW", .event = "task-clock"},
	{.block = "SW", .event = "page-faults"}};

static void kernels_are_counted(void)
{
	cl_kernel work;
	double before, used;

	start();
	work = kernel_of("work");
	enqueue(queues[0], work, 65536); /* what the runtime does at first */
	check(cl->clFinish(queues[0]));
	count_with(of_kernels, 3);
	before = cpu_ns();
	for (unsigned i = 0; i < 10; i++)
		enqueue(queues[i % 2], work, 65536);
	used = cpu_ns() - before;
	finish();
	assert_int_equal(counted_told.counted, 10);
	assert_true(counted_told.last_end > counted_told.last_start);
	assert_true(counted_told.sums[0] > 0);
	/* What was counted is what the process has used meanwhile: it did nothing else. */
	assert_true(counted_told.sums[1] <= used * 1.01 + 1e6);
	assert_true(counted_told.sums[1] >= used * 0.8);
}

static void a_tool_may_decline(void)
{
	start();
	count_with(of_kernels, 1);
	atomic_store(&counting_most, 3);
	for (unsigned i = 0; i < 8; i++)
		enqueue(queues[i % 2], kernel_of("work"), 64);
	check(cl->clFinish(queues[0]));
	check(cl->clFinish(queues[1]));
	assert_int_equal(counted_told.asked, 8);
	assert_int_equal(counted_told.counted, 3);
	counted_told.asked = 3;
	finish();
}

static void the_filter_leaves_kernels_out(void)
{
	cl_kernel nccl, work;

	setenv("KYMO_KERNEL_RANGE", "2-3", 1);
	start();
	count_with(of_kernels, 3);
	nccl = kernel_of("nccl_all");
	work = kernel_of("work");
	for (unsigned i = 0; i < 5; i++) {
		enqueue(queues[0], nccl, 64);
		enqueue(queues[0], work, 64);
	}
	finish();
	assert_int_equal(counted_told.counted, 2);
	assert_int_equal(counted_told.filtered, 8);
}

static void *from_thread(void *queue)
{
	cl_kernel work = kernel_of("work");

	for (unsigned i = 0; i < 30; i++)
		enqueue(queue, work, 4096);
	return NULL;
}

static void threads_take_turns(void)
{
	pthread_t threads[2];

	start();
	count_with(of_kernels, 3);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal_at(i, pthread_create(&threads[i], NULL, from_thread, queues[i]),
				    0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	finish();
	assert_int_equal(counted_told.counted, 60);
}

static cl_int run_codependent(void)
{
	cl_int zero = 0, result, saw = 0;
	int64_t most = INT64_C(4000000000);
	cl_kernel waits = cl->clCreateKernel(program, "waits", &result);
	cl_kernel signals = cl->clCreateKernel(program, "signals", &result);

	check(cl->clSetKernelArg(waits, 0, sizeof(flag), &flag));
	check(cl->clSetKernelArg(waits, 1, sizeof(seen), &seen));
	check(cl->clSetKernelArg(waits, 2, sizeof(most), &most));
	check(cl->clSetKernelArg(signals, 0, sizeof(flag), &flag));
	check(cl->clEnqueueWriteBuffer(queues[0], flag, 1, 0, sizeof(zero), &zero, 0, NULL, NULL));
	enqueue(queues[0], waits, 1);
	enqueue(queues[1], signals, 1);
	check(cl->clFlush(queues[0]));
	check(cl->clFinish(queues[1]));
	check(cl->clEnqueueReadBuffer(queues[0], seen, 1, 0, sizeof(saw), &saw, 0, NULL, NULL));
	return saw;
}

/* A kernel that waits for one that comes after it: serialized, it would wait for ever. */
static void kernels_that_wait_for_each_other(void)
{
	unsigned first;

	setenv("KYMO_COUNTER_WATCHDOG", "300ms", 1);
	start();
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		exit(SKIPPED);
	count_with(of_kernels, 3);
	assert_int_equal(run_codependent(), 1);
	first = counted_told.released;
	assert_true(first >= 1);
	assert_true(told.said >= 1);
	assert_non_null(strstr(told.last_said, "\"waits\""));
	assert_non_null(strstr(told.last_said, "--device-counters"));
	/* What comes behind them is counted again. */
	enqueue(queues[0], kernel_of("work"), 64);
	assert_int_equal(counted_told.released, first);
	assert_true(counted_told.counted >= 1);
	/* And they are known now. */
	assert_int_equal(run_codependent(), 1);
	finish();
}

/* The program sets the event behind the enqueueing: to wait there would be to wait for ever. */
static void a_kernel_that_waits_for_the_program(void)
{
	cl_event go;
	cl_int result;
	size_t items = 64;

	start();
	count_with(of_kernels, 3);
	go = cl->clCreateUserEvent(context, &result);
	check(result);
	check(cl->clEnqueueNDRangeKernel(queues[0], kernel_of("work"), 1, NULL, &items, NULL, 1,
					 &go, NULL));
	check(cl->clSetUserEventStatus(go, CL_COMPLETE));
	check(cl->clReleaseEvent(go));
	finish();
	assert_int_equal(counted_told.counted, 0);
	assert_int_equal(counted_told.last_status, COUNTING_NOT_SUPPORTED);
}

static cl_event user_event(void)
{
	cl_int result;
	cl_event event = cl->clCreateUserEvent(context, &result);

	check(result);
	return event;
}

static cl_event write_behind(cl_command_queue queue, cl_event awaited)
{
	static cl_int value;
	cl_event event = NULL;

	check(cl->clEnqueueWriteBuffer(queue, seen, 0, 0, sizeof(value), &value, 1, &awaited,
				       &event));
	return event;
}

/* Through the event of another command, through what is before it in its queue, and through a
 * kernel of another queue that must end before it can be alone. */
static void kernels_that_wait_for_the_program_in_the_end(void)
{
	cl_event go, written, after;
	cl_kernel work;
	size_t items = 64;

	start();
	count_with(of_kernels, 3);
	work = kernel_of("work");
	go = user_event();
	written = write_behind(queues[0], go);
	enqueue(queues[0], work, items);
	check(cl->clEnqueueNDRangeKernel(queues[1], work, 1, NULL, &items, NULL, 1, &written,
					 &after));
	check(cl->clSetUserEventStatus(go, CL_COMPLETE));
	assert_int_equal(counted_told.last_status, COUNTING_NOT_SUPPORTED);
	check(cl->clWaitForEvents(1, &after));
	check(cl->clReleaseEvent(go));
	/* What they waited for is there. */
	check(cl->clEnqueueNDRangeKernel(queues[0], work, 1, NULL, &items, NULL, 1, &after, NULL));
	assert_int_equal(counted_told.counted, 1);
	check(cl->clReleaseEvent(written));
	check(cl->clReleaseEvent(after));

	go = user_event();
	check(cl->clEnqueueNDRangeKernel(queues[0], work, 1, NULL, &items, NULL, 1, &go, NULL));
	enqueue(queues[1], work, items);
	check(cl->clSetUserEventStatus(go, CL_COMPLETE));
	check(cl->clReleaseEvent(go));
	finish();
	assert_int_equal(counted_told.counted, 1);
	assert_int_equal(counted_told.released, 0);
	assert_int_equal(told.said, 0);
}

/* As many as there are bits for, and more. */
static void many_events_that_the_program_sets(void)
{
	enum { MANY = 200 };
	cl_event events[MANY], written;
	cl_kernel work;

	start();
	count_with(of_kernels, 3);
	work = kernel_of("work");
	for (unsigned i = 0; i < MANY; i++)
		events[i] = user_event();
	enqueue(queues[1], work, 64); /* waits for none of them */
	assert_int_equal(counted_told.counted, 1);
	written = write_behind(queues[0], events[MANY - 1]);
	enqueue(queues[0], work, 64);
	assert_int_equal(counted_told.last_status, COUNTING_NOT_SUPPORTED);
	for (unsigned i = MANY; i-- > 0;) {
		check(cl->clSetUserEventStatus(events[i], CL_COMPLETE));
		check(cl->clReleaseEvent(events[i]));
	}
	check(cl->clFinish(queues[0]));
	check(cl->clReleaseEvent(written));
	enqueue(queues[0], work, 64);
	finish();
	assert_int_equal(counted_told.counted, 2);
	assert_int_equal(counted_told.released, 0);
}

/* PoCL tells nobody of commands that fail for that. */
static void an_event_set_to_an_error(void)
{
	cl_event go, written, failed;
	cl_kernel work;
	size_t items = 64;

	start();
	count_with(of_kernels, 3);
	work = kernel_of("work");
	go = user_event();
	written = write_behind(queues[0], go);
	check(cl->clEnqueueNDRangeKernel(queues[1], work, 1, NULL, &items, NULL, 1, &written,
					 &failed));
	check(cl->clSetUserEventStatus(go, -5));
	enqueue(queues[0], work, items);
	enqueue(queues[1], work, items);
	device_flush_all_backends(true, 60000000000);
	assert_int_equal(opencl_get_in_flight_command_count(), 0);
	check(cl->clReleaseEvent(go));
	check(cl->clReleaseEvent(written));
	finish();
	assert_int_equal(counted_told.counted, 2);
	assert_int_equal(counted_told.released, 0);
	assert_int_equal(told.said, 0);
	/* The runtime may let wait for ever what waits for what has failed; it is not waited for.
	 */
	count_with(of_kernels, 3);
	cl->clEnqueueNDRangeKernel(queues[1], work, 1, NULL, &items, NULL, 1, &failed, NULL);
	assert_int_equal(counted_told.last_status, COUNTING_FAILED);
	assert_int_equal(told.said, 0);
}

/* What is left out goes behind the same event at once; and it has a number all the same. */
static void what_is_left_out_waits_for_nothing(void)
{
	cl_event go;
	cl_int result;
	cl_kernel nccl, work;
	size_t items = 64;

	setenv("KYMO_COUNTER_WATCHDOG", "300ms", 1);
	setenv("KYMO_KERNEL_RANGE", "2", 1);
	start();
	count_with(of_kernels, 3);
	nccl = kernel_of("nccl_all");
	work = kernel_of("work");
	go = cl->clCreateUserEvent(context, &result);
	check(result);
	check(cl->clEnqueueNDRangeKernel(queues[0], work, 1, NULL, &items, NULL, 1, &go, NULL));
	enqueue(queues[0], nccl, 64);
	assert_int_equal(counted_told.filtered, 2);
	check(cl->clSetUserEventStatus(go, CL_COMPLETE));
	check(cl->clReleaseEvent(go));
	check(cl->clFinish(queues[0]));
	enqueue(queues[0], work, 64);
	finish();
	assert_int_equal(told.said, 0);
	assert_int_equal(counted_told.released, 0);
	assert_int_equal(counted_told.counted, 1);
}

static void the_device_is_counted_over_time(void)
{
	static const struct counting_event_request requests[] = {
		{.block = "OPENCL", .event = "busy-time"},
		{.block = "OPENCL", .event = "kernels"},
		{.block = "SW", .event = "task-clock"}};
	double values[3], before = cpu_ns();
	uint64_t time;
	uint32_t ways;
	void *set;

	start();
	assert_int_equal(opencl_counting.set_make(agent, requests, 3, &set, &ways, &problem),
			 COUNTING_OK);
	assert_int_equal(ways, COUNTING_BY_DEVICE);
	atomic_store(&sink_wanted, 0); /* nobody traces kernels */
	assert_int_equal(opencl_counting.device_counting_start(agent, set, 10000000, &problem),
			 COUNTING_OK);
	for (unsigned i = 0; i < 20; i++)
		enqueue(queues[i % 2], kernel_of("work"), 65536);
	check(cl->clFinish(queues[0]));
	check(cl->clFinish(queues[1]));
	device_flush_all_backends(true, 5000000000);
	assert_int_equal(opencl_counting.device_counting_read(agent, values, 3, &time, &problem),
			 COUNTING_OK);
	opencl_counting.device_counting_stop(agent);
	opencl_counting.set_free(set);
	assert_true(values[0] > 0 && values[0] < 60e9);
	assert_int_equal((int)values[1], 20);
	assert_true(values[2] > 0 && values[2] <= cpu_ns() - before);
	assert_true(counted_told.samples + counted_told.samples_lost >= 1);
}

static void what_it_cannot_do_is_refused(void)
{
	static const struct counting_event_request mixed[] = {{.block = "OPENCL",
							       .event = "busy-time"},
							      {.block = "OPENCL",
							       .event = "kernel-time"}},
						   unknown = {.block = "SQ", .event = "4"};
	uint32_t ways;
	void *set;

	start();
	assert_int_equal(opencl_counting.set_make(agent, mixed, 2, &set, &ways, &problem),
			 COUNTING_NOT_SUPPORTED);
	assert_int_equal(opencl_counting.set_make(agent, &unknown, 1, &set, &ways, &problem),
			 COUNTING_NO_SUCH_EVENT);
	assert_int_equal(opencl_counting.set_make(4711, mixed, 1, &set, &ways, &problem),
			 COUNTING_NO_SUCH_EVENT);
}

/* ---- each one in a process of its own ---- */

static const struct {
	const char *name;
	void (*test)(void);
} all[] = {
#define X(name)                                                                                    \
	{                                                                                          \
#name, name                                                                        \
	}
	X(kernels_are_counted),
	X(a_tool_may_decline),
	X(the_filter_leaves_kernels_out),
	X(threads_take_turns),
	X(kernels_that_wait_for_each_other),
	X(a_kernel_that_waits_for_the_program),
	X(kernels_that_wait_for_the_program_in_the_end),
	X(many_events_that_the_program_sets),
	X(an_event_set_to_an_error),
	X(what_is_left_out_waits_for_nothing),
	X(the_device_is_counted_over_time),
	X(what_it_cannot_do_is_refused),
#undef X
};

static unsigned which;

static void run_it(void **state)
{
	(void)state;
	all[which].test();
}

static void start_it(void **state)
{
	const unsigned *number = *state;
	char text[16];
	pid_t child;
	int status;

	snprintf(text, sizeof(text), "%u", *number);
	child = fork();
	if (child == 0) {
		execl("/proc/self/exe", "opencl_counting", text, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		skip();
	assert_int_equal(status, 0);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest one[] = {cmocka_unit_test(run_it)};
	struct CMUnitTest tests[ARRAY_SIZE(all)];
	unsigned numbers[ARRAY_SIZE(all)];

	if (count > 1) {
		which = (unsigned)atoi(arguments[1]) % ARRAY_SIZE(all);
		return cmocka_run_group_tests(one, NULL, NULL);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(all); i++) {
		numbers[i] = i;
		tests[i] = (struct CMUnitTest){all[i].name, start_it, NULL, NULL, &numbers[i]};
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
