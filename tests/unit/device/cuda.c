/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The CUDA backend against a driver and a CUPTI that run nothing (tests/programs/cuda/fake_cuda.c).
 * Each test is a process of its own, since a process has one CUPTI.
 *
 * usage: cuda FAKE-LIBRARY
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../assert_at.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/array.h"
#include "device/cuda/cuda.h"
#include "device/registry/devices.h"
#include "sink.h"

static const char *fake;

static struct {
	int (*init)(unsigned);
	int (*retain)(void **, int);
	int (*load)(void **, const void *);
	int (*function)(void **, void *, const char *);
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		      void *, void **, void **);
	int (*to_device)(uint64_t, const void *, size_t, void *);
	int (*within_device)(uint64_t, uint64_t, size_t, void *);
	int (*fill)(uint64_t, unsigned char, size_t, void *);
	int (*begin_capture)(void *, int);
	int (*end_capture)(void *, void **);
	int (*graph_launch)(void *, void *);
	int (*allocate)(uint64_t *, size_t);
	int (*release)(uint64_t);
} cu;
static void *kernel;

static void find(void *library, void *function, const char *name)
{
	void *found = dlsym(library, name);

	assert_non_null(found);
	memcpy(function, &found, sizeof(found));
}

/* The driver is there, kymo is begun, a context and a kernel are made. */
static void start(void)
{
	void *library = dlopen(fake, RTLD_NOW | RTLD_GLOBAL), *context, *module;

	assert_non_null(library);
	setenv("KYMO_CUPTI", fake, 1);
	find(library, &cu.init, "cuInit");
	find(library, &cu.retain, "cuDevicePrimaryCtxRetain");
	find(library, &cu.load, "cuModuleLoadData");
	find(library, &cu.function, "cuModuleGetFunction");
	find(library, &cu.launch, "cuLaunchKernel");
	find(library, &cu.to_device, "cuMemcpyHtoDAsync_v2");
	find(library, &cu.within_device, "cuMemcpyDtoDAsync_v2");
	find(library, &cu.fill, "cuMemsetD8Async");
	find(library, &cu.begin_capture, "cuStreamBeginCapture_v2");
	find(library, &cu.end_capture, "cuStreamEndCapture");
	find(library, &cu.graph_launch, "cuGraphLaunch");
	find(library, &cu.allocate, "cuMemAlloc_v2");
	find(library, &cu.release, "cuMemFree_v2");
	sink_start();
	cuda_begin_tracing_once();
	cu.init(0);
	cu.retain(&context, 0);
	cu.load(&module, "");
	cu.function(&kernel, module, "kernel_of_test");
}

static int launch(unsigned block)
{
	return cu.launch(kernel, 2, 1, 1, block, 1, 1, 0, NULL, NULL, NULL);
}

static void finish(void)
{
	device_flush_all_backends(true, 1000000000);
	device_finish_all_backends();
}

static void each_launch_has_its_record(void)
{
	struct device_record_loss_counts losses;

	start();
	for (unsigned i = 0; i < 5000; i++)
		assert_int_equal_at(i, launch(64), 0);
	finish();
	assert_int_equal(told.kernels, 5000);
	assert_int_equal(told.completed, 5000);
	assert_int_equal(told.submitted, 5000);
	assert_int_equal(told.without_time, 0);
	assert_int_equal(told.misused, 0);
	assert_int_equal(told.calls_entered, told.calls_left);
	assert_true(told.calls_entered >= 5000);
	assert_string_equal(told.last_symbol, "kernel_of_test");
	assert_int_equal(told.last_kernel.grid_threads[0], 128);
	assert_int_equal(told.last_kernel.group_threads[0], 64);
	device_sum_losses_of_all_backends(&losses);
	assert_int_equal(
		losses.dropped + losses.unmatched_work_count + losses.incomplete_work_count, 0);
}

static void a_launch_that_fails_is_none(void)
{
	start();
	assert_int_equal(launch(4096), 1);
	assert_int_equal(launch(32), 0);
	finish();
	assert_int_equal(told.failed, 1);
	assert_int_equal(told.completed, 1);
	assert_int_equal(told.misused, 0);
}

static void *graph_of(unsigned nodes)
{
	void *graph;

	cu.begin_capture(NULL, 1);
	for (unsigned i = 0; i < nodes; i++)
		launch(32);
	cu.end_capture(NULL, &graph);
	return graph;
}

static void a_graph_is_one_record(void)
{
	void *graph;

	start();
	graph = graph_of(10);
	assert_int_equal(told.kernels, 0);
	for (unsigned i = 0; i < 7; i++)
		cu.graph_launch(graph, NULL);
	finish();
	assert_int_equal(told.kernel_records, 7);
	assert_int_equal(told.unknown_correlations, 0);
	assert_int_equal(told.opened, told.closed);
	assert_int_equal(told.misused, 0);
	assert_string_equal(told.last_symbol, "[CUDA graph 1]");
}

static void a_graph_is_its_nodes_when_asked(void)
{
	setenv("KYMO_CUDA_GRAPHS", "nodes", 1);
	start();
	cu.graph_launch(graph_of(10), NULL);
	finish();
	assert_int_equal(told.kernel_records, 10);
	assert_int_equal(told.unknown_correlations, 0);
	assert_int_equal(told.opened, told.closed);
	assert_int_equal(told.misused, 0);
}

/* Records of whole graphs and of copies together break such programs. */
static void graphs_that_copy_are_their_nodes(void)
{
	void *plain, *graph;

	start();
	plain = graph_of(4);
	cu.graph_launch(plain, NULL);
	cu.begin_capture(NULL, 1);
	for (unsigned i = 0; i < 10; i++)
		launch(32);
	cu.within_device(1, 2, 100, NULL);
	cu.end_capture(NULL, &graph);
	cu.graph_launch(graph, NULL);
	finish();
	assert_int_equal(told.kernel_records, 1 + 10);
	assert_int_equal(told.unknown_correlations, 0);
	assert_int_equal(told.said, 1);
	assert_non_null(strstr(told.last_said, "copy memory"));
	assert_int_equal(told.opened, told.closed);
	assert_int_equal(told.misused, 0);
}

static void copies_and_memory(void)
{
	uint64_t address;

	start();
	cu.allocate(&address, 1000);
	for (unsigned i = 0; i < 20; i++)
		cu.to_device(address, NULL, 1000, NULL);
	cu.release(address);
	finish();
	assert_int_equal(told.copy_records, 20);
	assert_int_equal(told.copied_bytes, 20000);
	assert_int_equal(told.unknown_correlations, 0);
	assert_int_equal(told.allocations, 1);
	assert_int_equal(told.allocated_bytes, 1000);
	assert_int_equal(told.frees, 1);
	assert_int_equal(told.misused, 0);
}

static void fills(void)
{
	struct device_record_loss_counts losses;
	uint64_t address;

	start();
	cu.allocate(&address, 1000);
	for (unsigned i = 0; i < 20; i++)
		cu.fill(address, 7, 1000, NULL);
	finish();
	assert_int_equal(told.copy_records, 20);
	assert_int_equal(told.copied_bytes, 20000);
	assert_int_equal(told.opened, 20);
	assert_int_equal(told.closed, 20);
	assert_int_equal(told.unknown_correlations, 0);
	assert_int_equal(told.misused, 0);
	device_sum_losses_of_all_backends(&losses);
	assert_int_equal(
		losses.dropped + losses.unmatched_work_count + losses.incomplete_work_count, 0);
}

/* What is captured does not run. Behind a flush that waits nothing is in flight any more. */
static void what_has_no_record_is_not_waited_for(void)
{
	void *graph;

	start();
	cu.begin_capture(NULL, 1);
	cu.fill(0x1000, 7, 1000, NULL);
	cu.end_capture(NULL, &graph);
	assert_int_equal(told.opened, 1);
	launch(32);
	device_flush_all_backends(true, 1000000000);
	assert_int_equal(told.closed, 1);
	assert_int_equal(told.completed, 1);
	launch(32);
	finish();
	assert_int_equal(told.completed, 2);
	assert_int_equal(told.without_time, 0);
	assert_int_equal(told.misused, 0);
}

static void what_is_dropped_is_counted(void)
{
	struct device_record_loss_counts losses;

	setenv("FAKE_CUPTI_DROP", "4", 1);
	start();
	for (unsigned i = 0; i < 400; i++)
		launch(32);
	finish();
	device_sum_losses_of_all_backends(&losses);
	assert_int_equal(losses.dropped, 100);
	assert_int_equal(losses.incomplete_work_count, 100);
	assert_int_equal(told.completed, 400);
	assert_int_equal(told.without_time, 100);
	assert_int_equal(told.misused, 0);
}

static void another_tool_is_left_alone(void)
{
	struct device_record_loss_counts losses;

	setenv("FAKE_CUPTI_HOLDER", "Kineto", 1);
	start();
	assert_int_equal(launch(32), 0);
	finish();
	assert_false(cuda_is_tracing());
	assert_int_equal(told.said, 1);
	assert_non_null(strstr(told.last_said, "\"Kineto\" uses it"));
	assert_int_equal(told.kernels, 0);
	device_sum_losses_of_all_backends(&losses);
	assert_int_equal(losses.tracing_conflict_count, 1);
}

static void an_old_cupti_is_refused(void)
{
	setenv("FAKE_CUPTI_VERSION", "12", 1);
	start();
	finish();
	assert_false(cuda_is_tracing());
	assert_non_null(strstr(told.last_said, "newer CUPTI"));
}

static void no_cupti_is_said(void)
{
	sink_start();
	setenv("KYMO_CUPTI", "/nowhere/libcupti.so", 1);
	cuda_begin_tracing_once();
	assert_false(cuda_is_tracing());
	assert_non_null(strstr(told.last_said, "libcupti.so"));
}

static void nobody_wants_anything(void)
{
	atomic_store(&sink_wanted, 0);
	start();
	for (unsigned i = 0; i < 100; i++)
		launch(32);
	atomic_store(&sink_wanted, UINT32_MAX);
	device_notify_wanted_services_changed();
	for (unsigned i = 0; i < 50; i++)
		launch(32);
	finish();
	assert_int_equal(told.kernels, 50);
	assert_int_equal(told.completed, 50);
	assert_int_equal(told.misused, 0);
}

static void *launch_many(void *unused)
{
	for (unsigned i = 0; i < 5000; i++)
		launch(32);
	return unused;
}

static void from_several_threads(void)
{
	pthread_t threads[4];

	start();
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal_at(i, pthread_create(&threads[i], NULL, launch_many, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	finish();
	assert_int_equal(told.kernels, 20000);
	assert_int_equal(told.completed, 20000);
	assert_int_equal(told.misused, 0);
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
	X(each_launch_has_its_record),
	X(a_launch_that_fails_is_none),
	X(a_graph_is_one_record),
	X(a_graph_is_its_nodes_when_asked),
	X(graphs_that_copy_are_their_nodes),
	X(copies_and_memory),
	X(what_is_dropped_is_counted),
	X(fills),
	X(what_has_no_record_is_not_waited_for),
	X(another_tool_is_left_alone),
	X(an_old_cupti_is_refused),
	X(no_cupti_is_said),
	X(nobody_wants_anything),
	X(from_several_threads),
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
		execl("/proc/self/exe", "cuda", fake, text, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest one[] = {cmocka_unit_test(run_it)};
	struct CMUnitTest tests[ARRAY_SIZE(all)];
	unsigned numbers[ARRAY_SIZE(all)];

	if (count < 2)
		return 2;
	fake = arguments[1];
	if (count > 2) {
		which = (unsigned)atoi(arguments[2]) % ARRAY_SIZE(all);
		return cmocka_run_group_tests(one, NULL, NULL);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(all); i++) {
		numbers[i] = i;
		tests[i] = (struct CMUnitTest){all[i].name, start_it, NULL, NULL, &numbers[i]};
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
