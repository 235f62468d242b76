/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counting on CUDA's devices, against a driver and profilers that run nothing (fake_profiler.h).
 * Each test is a process of its own.
 *
 * usage: cuda_counting FAKE-LIBRARY
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../assert_at.h"
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/array.h"
#include "counting_sink.h"
#include "device/cuda/counting.h"
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
	int (*stream)(void **, unsigned);
	int (*begin_capture)(void *, int);
	int (*end_capture)(void *, void **);
	int (*graph_launch)(void *, void *);
} cu;
static void *module;
static device_handle agent;
static struct counting_problem problem;
static const struct device_counting_backend *counting;

static void find(void *library, void *function, const char *name)
{
	void *found = dlsym(library, name);

	assert_non_null(found);
	memcpy(function, &found, sizeof(found));
}

static void start(void)
{
	void *library = dlopen(fake, RTLD_NOW | RTLD_GLOBAL), *context;

	assert_non_null(library);
	setenv("KYMO_CUPTI", fake, 1);
	find(library, &cu.init, "cuInit");
	find(library, &cu.retain, "cuDevicePrimaryCtxRetain");
	find(library, &cu.load, "cuModuleLoadData");
	find(library, &cu.function, "cuModuleGetFunction");
	find(library, &cu.launch, "cuLaunchKernel");
	find(library, &cu.stream, "cuStreamCreate");
	find(library, &cu.begin_capture, "cuStreamBeginCapture_v2");
	find(library, &cu.end_capture, "cuStreamEndCapture");
	find(library, &cu.graph_launch, "cuGraphLaunch");
	sink_start();
	cuda_begin_tracing_once();
	cu.init(0);
	cu.retain(&context, 0);
	cu.load(&module, "");
	agent = cuda_find_agent_by_ordinal(0);
	counting = device_backend_cuda.counting;
	assert_int_not_equal(agent, DEVICE_HANDLE_NONE);
}

static void *kernel(const char *name)
{
	void *found = NULL;

	cu.function(&found, module, name);
	return found;
}

static int launch(void *function, void *stream, unsigned block)
{
	return cu.launch(function, 2, 1, 1, block, 1, 1, 0, stream, NULL, NULL);
}

static const struct counting_event_request both[] = {
	{.event = "fake__kernels", .rollup = COUNTING_ROLLUP_MAX}, {.event = "fake__share.pct"}};

static void *make(const struct counting_event_request *requests, uint32_t count)
{
	uint32_t ways = 0;
	void *set = NULL;

	assert_int_equal(counting->set_make(agent, requests, count, &set, &ways, &problem),
			 COUNTING_OK);
	assert_int_equal(ways, COUNTING_BY_DISPATCH | COUNTING_BY_DEVICE);
	return set;
}

static void count_kernels(void)
{
	atomic_store(&counting_set, make(both, 2));
	counting->dispatch_counting_switch(agent, true);
}

static void finish(void)
{
	void *set = atomic_load(&counting_set);

	device_flush_all_backends(true, 1000000000);
	device_finish_all_backends();
	atomic_store(&counting_set, NULL);
	if (set != NULL)
		counting->set_free(set);
	assert_int_equal(told.misused, 0);
	assert_int_equal(told.completed + told.failed, told.kernels);
	assert_int_equal(counted_told.counted + counted_told.not_counted, counted_told.asked);
}

static void each_kernel_has_its_own_values(void)
{
	void *function, *stream;

	start();
	count_kernels();
	function = kernel("of_test");
	cu.stream(&stream, 1);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal_at(i, launch(function, i % 2 ? stream : NULL, 64), 0);
	finish();
	assert_int_equal(counted_told.counted, 200);
	assert_int_equal((int)counted_told.last[0], 100);
	assert_int_equal((int)counted_told.last[1], 50);
	assert_int_equal((int)counted_told.sums[0], 20000);
	assert_int_equal(told.without_time, 0);
	assert_in_range(counted_told.last_end - counted_told.last_start, 1, 250000);
	assert_string_equal(told.last_symbol, "of_test");
}

/* The device's clocks are counted while a range is open. */
static void nothing_delays_a_kernel_in_its_range(void)
{
	_Atomic int *delays;

	start();
	find(RTLD_DEFAULT, &delays, "fake_profiler_delays");
	count_kernels();
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal_at(i, launch(kernel("of_test"), NULL, 64), 0);
	finish();
	assert_int_equal(counted_told.counted, 100);
	assert_int_equal(*delays, 0);
}

/* What is counted on while nothing runs is told for the kernel's own time. */
static void clocks_are_the_kernels(void)
{
	static const struct counting_event_request clocks[] = {
		{.event = "fake__cycles_elapsed"}, {.event = "fake__kernels.sum.per_second"}};
	double ns, share;

	start();
	atomic_store(&counting_set, make(clocks, 2));
	counting->dispatch_counting_switch(agent, true);
	launch(kernel("of_test"), NULL, 64);
	finish();
	assert_int_equal(counted_told.counted, 1);
	ns = (double)(counted_told.last_end - counted_told.last_start);
	share = ns / 500000;
	assert_true(fabs(counted_told.last[0] - 1e6 * share) < 1);
	assert_true(fabs(counted_told.last[1] - 100 / (ns / 1e9)) < 1);
}

/* Where there is no room for the range's time beside them they are those of the range. */
static void clocks_without_room_for_their_time(void)
{
	static const struct counting_event_request three[] = {{.event = "fake__cycles_elapsed"},
							      {.event = "fake__kernels"},
							      {.event = "fake__share.pct"}};

	start();
	atomic_store(&counting_set, make(three, 3));
	counting->dispatch_counting_switch(agent, true);
	launch(kernel("of_test"), NULL, 64);
	finish();
	assert_int_equal((int)counted_told.last[0], 1000000);
	assert_int_equal((int)counted_told.last[1], 100);
}

static void names_of_clocks(void)
{
	static const struct {
		const char *event;
		enum cuda_time_dependence kind;
	} names[] = {
		{"sm__cycles_elapsed", CUDA_GROWS_WITH_TIME},
		{"sm__cycles_elapsed.max", CUDA_GROWS_WITH_TIME},
		{"gpc__cycles_elapsed.avg.per_second", CUDA_TIME_INDEPENDENT},
		{"sm__cycles_active", CUDA_TIME_INDEPENDENT},
		{"gpu__time_duration", CUDA_GROWS_WITH_TIME},
		{"gpu__time_duration.sum", CUDA_GROWS_WITH_TIME},
		{"gpu__time_duration_measured_user", CUDA_TIME_INDEPENDENT},
		{"sm__inst_executed", CUDA_TIME_INDEPENDENT},
		{"sm__inst_executed.sum.per_second", CUDA_DIVIDED_BY_TIME},
		{"sm__inst_executed.avg.per_cycle_elapsed", CUDA_DIVIDED_BY_TIME},
		{"sm__inst_executed.avg.per_cycle_active", CUDA_TIME_INDEPENDENT},
		{"sm__throughput.avg.pct_of_peak_sustained_elapsed", CUDA_DIVIDED_BY_TIME},
		{"sm__inst_executed.sum.pct_of_peak_sustained_active", CUDA_TIME_INDEPENDENT},
		{"sm__inst_executed.sum.peak_sustained", CUDA_TIME_INDEPENDENT},
		{"sm__inst_executed.sum.peak_sustained_elapsed", CUDA_GROWS_WITH_TIME},
		{"lts__t_sector_hit_rate.pct", CUDA_TIME_INDEPENDENT},
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (cuda_metric_get_time_dependence(names[i].event) != names[i].kind)
			fail_msg("%s", names[i].event);
	}
}

static void a_launch_that_fails_has_none(void)
{
	start();
	count_kernels();
	assert_int_equal(launch(kernel("one"), NULL, 4096), 1);
	assert_int_equal(launch(kernel("one"), NULL, 32), 0);
	finish();
	assert_int_equal(counted_told.counted, 1);
	assert_int_equal(counted_told.not_counted, 1);
	assert_int_equal(told.failed, 1);
}

static void kernels_that_are_declined_or_filtered(void)
{
	setenv("KYMO_KERNEL_EXCLUDE", "^skip", 1);
	start();
	count_kernels();
	for (unsigned i = 0; i < 10; i++) {
		launch(kernel("skip_me"), NULL, 32);
		launch(kernel("take_me"), NULL, 32);
		launch(kernel("ncclDevKernel_AllReduce"), NULL, 32);
	}
	finish();
	assert_int_equal(counted_told.counted, 10);
	assert_int_equal(counted_told.filtered, 20);
	assert_int_equal((int)counted_told.sums[0], 1000);
}

static void a_graph_is_one_of_them(void)
{
	void *graph, *stream;

	start();
	count_kernels();
	cu.stream(&stream, 1);
	cu.begin_capture(stream, 1);
	for (unsigned i = 0; i < 10; i++)
		launch(kernel("node"), stream, 32);
	cu.end_capture(stream, &graph);
	for (unsigned i = 0; i < 7; i++)
		cu.graph_launch(graph, stream);
	finish();
	assert_int_equal(counted_told.counted, 7);
	assert_int_equal((int)counted_told.last[0], 1000);
}

static void kernels_that_wait_for_each_other(void)
{
	void *streams[2];

	setenv("KYMO_COUNTER_WATCHDOG", "100ms", 1);
	start();
	count_kernels();
	cu.stream(&streams[0], 1);
	cu.stream(&streams[1], 1);
	for (unsigned i = 0; i < 2; i++) {
		launch(kernel("waits"), streams[0], 32);
		launch(kernel("signals"), streams[1], 32);
		launch(kernel("other"), NULL, 32);
	}
	finish();
	assert_int_equal(counted_told.counted, 2); /* the others */
	assert_int_equal(counted_told.released, 4);
	assert_int_equal(told.said, 1);
	assert_non_null(strstr(told.last_said, "\"waits\""));
}

static void *launch_many(void *unused)
{
	void *function = kernel("of_thread"), *stream;

	cu.stream(&stream, 1);
	for (unsigned i = 0; i < 500; i++)
		launch(function, stream, 32);
	return unused;
}

static void from_several_threads(void)
{
	pthread_t threads[4];

	start();
	count_kernels();
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal_at(i, pthread_create(&threads[i], NULL, launch_many, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	finish();
	assert_int_equal(counted_told.counted, 2000);
	assert_int_equal((int)counted_told.sums[0], 200000);
}

static void refused(const char *code, enum counting_status status, const char *text)
{
	setenv("FAKE_CUPTI_RANGES", code, 1);
	start();
	count_kernels();
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal_at(i, launch(kernel("one"), NULL, 32), 0);
	finish();
	assert_int_equal(counted_told.not_counted, 5);
	assert_int_equal(counted_told.last_status, status);
	assert_non_null(strstr(counted_told.last_text, text));
}

static void without_permission(void)
{
	refused("35", COUNTING_NOT_PERMITTED, "administrators");
}

static void while_somebody_else_counts(void)
{
	refused("26", COUNTING_BUSY, "another client");
}

static void sets_of_two_passes_are_refused(void)
{
	static const struct counting_event_request four[] = {
		{.event = "fake__kernels"},
		{.event = "fake__kernels", .rollup = COUNTING_ROLLUP_MAX},
		{.event = "fake__kernels", .rollup = COUNTING_ROLLUP_MIN},
		{.event = "fake__share.pct"}};
	uint32_t ways;
	void *set;

	start();
	assert_int_equal(counting->set_make(agent, four, 4, &set, &ways, &problem),
			 COUNTING_DOES_NOT_FIT);
	assert_non_null(strstr(problem.text, "fake__share.pct"));
	assert_int_equal(counting->set_make(agent,
					    &(struct counting_event_request){.event = "none"}, 1,
					    &set, &ways, &problem),
			 COUNTING_NO_SUCH_EVENT);
	assert_int_equal(counting->set_make(4711, four, 1, &set, &ways, &problem),
			 COUNTING_NO_SUCH_EVENT);
}

static const struct timespec moment = {0, 1000000};

/* What is before the end of the first sample is left out. */
static void wait_for_first_sample(void)
{
	uint64_t begun = device_get_sink()->now(), time = 0;
	double values[2];

	for (int i = 0; i < 5000 && time <= begun; i++) {
		nanosleep(&moment, NULL);
		assert_int_equal(counting->device_counting_read(agent, values, 2, &time, &problem),
				 COUNTING_OK);
	}
	assert_true(time > begun);
}

static void the_device_over_time(void)
{
	double values[2] = {0};
	uint64_t time;
	void *set;

	start();
	set = make(both, 2);
	launch(kernel("before"), NULL, 32);
	assert_int_equal(counting->device_counting_start(agent, set, 0, &problem), COUNTING_OK);
	assert_int_equal(counting->device_counting_start(agent, set, 0, &problem), COUNTING_BUSY);
	wait_for_first_sample();
	for (unsigned i = 0; i < 50; i++) {
		launch(kernel("during"), NULL, 32);
		nanosleep(&moment, NULL);
	}
	for (int i = 0; i < 5000 && values[0] < 5000; i++) {
		nanosleep(&moment, NULL);
		assert_int_equal(counting->device_counting_read(agent, values, 2, &time, &problem),
				 COUNTING_OK);
	}
	assert_int_equal((int)values[0], 5000);
	assert_int_equal((int)(values[1] + 0.5), 50);
	counting->device_counting_stop(agent);
	assert_int_equal(counting->device_counting_read(agent, values, 2, &time, &problem),
			 COUNTING_FAILED);
	assert_int_equal(counted_told.samples, 0);
	/* As samples: the same once more. */
	assert_int_equal(counting->device_counting_start(agent, set, 5000000, &problem),
			 COUNTING_OK);
	wait_for_first_sample();
	for (unsigned i = 0; i < 20; i++)
		launch(kernel("during"), NULL, 32);
	for (unsigned i = 0; i < 10000 && counted_told.samples < 8; i++)
		nanosleep(&moment, NULL);
	counting->device_counting_stop(agent);
	assert_true(counted_told.samples >= 8);
	assert_int_equal((int)counted_told.sums[0], 2000);
	counting->set_free(set);
}

/* By the first call of the program that has a context, once. */
static void the_driver_is_awaited(void)
{
	start();
	cuda_set_counting_awaits_driver();
	assert_int_equal(counted_told.ready, 0);
	launch(kernel("first"), NULL, 32);
	launch(kernel("second"), NULL, 32);
	assert_int_equal(counted_told.ready, 1);
	finish();
	assert_int_equal(told.completed, 2);
	assert_int_equal(told.without_time, 0);
}

static void a_device_that_is_sampled_already(void)
{
	void *set;

	setenv("FAKE_CUPTI_SAMPLES", "26", 1);
	start();
	set = make(both, 2);
	assert_int_equal(counting->device_counting_start(agent, set, 0, &problem), COUNTING_BUSY);
	assert_non_null(strstr(problem.text, "another client"));
	counting->set_free(set);
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
	X(each_kernel_has_its_own_values),
	X(nothing_delays_a_kernel_in_its_range),
	X(clocks_are_the_kernels),
	X(clocks_without_room_for_their_time),
	X(names_of_clocks),
	X(a_launch_that_fails_has_none),
	X(kernels_that_are_declined_or_filtered),
	X(a_graph_is_one_of_them),
	X(kernels_that_wait_for_each_other),
	X(from_several_threads),
	X(without_permission),
	X(while_somebody_else_counts),
	X(sets_of_two_passes_are_refused),
	X(the_device_over_time),
	X(the_driver_is_awaited),
	X(a_device_that_is_sampled_already),
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
		execl("/proc/self/exe", "cuda_counting", fake, text, NULL);
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
