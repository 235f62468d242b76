/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counting on the host, against what the process is made to do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "counting_sink.h"
#include "device/host/host.h"
#include "device/registry/devices.h"
#include "sink.h"

#define AGENT 77u

static const struct device_counting_backend *host;
static struct counting_problem problem;

static int setup(void **state)
{
	(void)state;
	sink_start();
	device_backend_host.discover_devices(device_get_sink());
	host_add_package(AGENT, 0, true);
	host_add_package(AGENT + 1, 0, false);
	host = device_backend_host.counting;
	return host == NULL;
}

/* Ends what a failed test left counting: the next one can count. */
static int stop_counting(void **state)
{
	(void)state;
	atomic_store(&counting_set, NULL);
	host->device_counting_stop(AGENT);
	return 0;
}

static double elapsed(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* What clocks of the CPUs can have counted since in so many threads: they count as well while the
 * machine below this one is busy with others, which the CPU time of threads does not. */
static double cpus_since(double begin, long threads)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return (elapsed(CLOCK_MONOTONIC) - begin) * (double)(cpus < threads ? cpus : threads) + 1e6;
}

/* Of a range of values, told when it does not hold. */
static bool is_within(double value, double least, double most)
{
	if (value < least || value > most)
		print_error("%.0f is not within %.0f and %.0f\n", value, least, most);
	return value >= least && value <= most;
}

static void burn(double ns)
{
	double until = elapsed(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (elapsed(CLOCK_THREAD_CPUTIME_ID) < until)
		;
}

static void *burn_thread(void *unused)
{
	burn(3e7);
	return unused;
}

static void touch(size_t pages)
{
	size_t size = pages * (size_t)getpagesize();
	volatile char *memory =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise((void *)memory, size, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < pages; i++)
		memory[i * (size_t)getpagesize()] = 1;
	munmap((void *)memory, size);
}

static void *start(const struct counting_event_request *requests, uint32_t count, uint64_t interval)
{
	void *set = NULL;
	uint32_t ways = 0;

	assert_int_equal(host->set_make(AGENT, requests, count, &set, &ways, &problem),
			 COUNTING_OK);
	assert_int_equal(ways & COUNTING_BY_DEVICE, COUNTING_BY_DEVICE);
	assert_int_equal(host->device_counting_start(AGENT, set, interval, &problem), COUNTING_OK);
	return set;
}

static bool count_events(void *context, const struct counting_event_info *event)
{
	assert_true(event->name[0] != '\0');
	assert_int_equal(strspn(event->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					     "0123456789_"),
			 strlen(event->name));
	assert_true(counting_get_event_value_count(event) >= 1);
	++*(unsigned *)context;
	return true;
}

static void its_events_are_listed(void **state)
{
	unsigned count = 0, others = 0;
	struct counting_event_info event;

	(void)state;
	assert_int_equal(host->events(AGENT, count_events, &count), COUNTING_OK);
	assert_true(count >= 5);
	assert_int_equal(host->events(AGENT + 1, count_events, &others), COUNTING_OK);
	assert_true(others < count);
	assert_int_equal(host->events(4711, count_events, &count), COUNTING_NO_SUCH_EVENT);
	assert_int_equal(host->event(AGENT, "SW", "page-faults", &event), COUNTING_OK);
	assert_string_equal(event.name, "page_faults");
	assert_int_equal(host->event(AGENT + 1, "SW", "page-faults", &event),
			 COUNTING_NO_SUCH_EVENT);
	assert_int_equal(host->event(AGENT, "CORE", "page-faults", &event), COUNTING_NO_SUCH_EVENT);
	assert_int_equal(host->event(AGENT, "SW", "no-such-thing", &event), COUNTING_NO_SUCH_EVENT);
}

static void what_the_process_does_is_counted(void **state)
{
	static const struct counting_event_request requests[] = {
		{.block = "SW", .event = "task-clock"}, {.block = "SW", .event = "page-faults"}};
	double values[2], spent, begin;
	pthread_t thread;
	uint64_t time = 0;
	void *set;

	(void)state;
	/* The test reads its clock before and after the counter: it bounds the counter. */
	begin = elapsed(CLOCK_PROCESS_CPUTIME_ID);
	set = start(requests, 2, 0);
	assert_int_equal(pthread_create(&thread, NULL, burn_thread, NULL), 0);
	burn(3e7);
	touch(500);
	pthread_join(thread, NULL);
	assert_int_equal(host->device_counting_read(AGENT, values, 2, &time, &problem),
			 COUNTING_OK);
	spent = elapsed(CLOCK_PROCESS_CPUTIME_ID) - begin;
	assert_true(is_within(values[0], 6e7, spent));
	assert_true(is_within(values[1], 500, 20000));
	assert_true(time != 0);
	assert_int_equal(host->device_counting_read(AGENT, values, 1, &time, &problem),
			 COUNTING_FAILED);
	assert_int_equal(host->device_counting_start(AGENT, set, 0, &problem), COUNTING_BUSY);
	host->device_counting_stop(AGENT);
	assert_int_equal(host->device_counting_read(AGENT, values, 2, &time, &problem),
			 COUNTING_FAILED);
	host->set_free(set);
}

static double own_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (double)(usage.ru_minflt + usage.ru_majflt);
}

/* The first of the machine's packages: that of ranges. */
static void *count_ranges(const struct counting_event_request *requests, uint32_t count)
{
	void *set = NULL;
	uint32_t ways = 0;

	setenv("KYMO_COUNT_REGIONS", "on", 1);
	assert_int_equal(
		host->set_make(host_get_first_agent(), requests, count, &set, &ways, &problem),
		COUNTING_OK);
	assert_int_equal(ways, COUNTING_BY_DEVICE | COUNTING_BY_DISPATCH);
	atomic_store(&counting_set, set);
	memset(&counted_told, 0, sizeof(counted_told));
	memset(&told, 0, sizeof(told));
	return set;
}

static void *leaves_one_open(void *unused)
{
	device_host_region_push("open");
	return unused;
}

static void ranges_of_threads_are_kernels(void **state)
{
	static const struct counting_event_request requests[] = {
		{.block = "SW", .event = "task-clock"},
		{.block = "SW", .event = "page-faults"},
		{.block = "SW", .event = "cpu-clock"}};
	void *set = count_ranges(requests, 3);
	double outer = elapsed(CLOCK_THREAD_CPUTIME_ID), inner, faults, begin;
	pthread_t thread;

	(void)state;
	device_host_region_push("outer");
	pthread_create(&thread, NULL, burn_thread, NULL); /* another thread's is not in it */
	inner = elapsed(CLOCK_THREAD_CPUTIME_ID);
	begin = elapsed(CLOCK_MONOTONIC);
	faults = own_faults();
	device_host_region_push("inner");
	burn(1e7);
	touch(300);
	device_host_region_pop();
	faults = own_faults() - faults;
	inner = elapsed(CLOCK_THREAD_CPUTIME_ID) - inner;
	assert_true(is_within(counted_told.last[0], 1e7, inner));
	assert_true(is_within(counted_told.last[1], 300, faults));
	assert_true(is_within(counted_told.last[2], 0.9e7, elapsed(CLOCK_MONOTONIC) - begin));
	assert_true(counted_told.last_end - counted_told.last_start >= 10000000);
	assert_string_equal(told.last_symbol, "inner");
	device_host_region_pop();
	outer = elapsed(CLOCK_THREAD_CPUTIME_ID) - outer;
	assert_true(is_within(counted_told.last[0], 1e7, outer));
	device_host_region_pop(); /* nothing is open */
	pthread_join(thread, NULL);
	pthread_create(&thread, NULL, leaves_one_open, NULL);
	pthread_join(thread, NULL);
	device_host_region_push("at the end");
	device_flush_all_backends(true, 0);
	device_host_region_pop();
	assert_int_equal(counted_told.asked, 4);
	assert_int_equal(counted_told.counted, 2);
	assert_int_equal(counted_told.not_counted, 2);
	assert_int_equal(counted_told.last_status, COUNTING_NOT_FINISHED);
	assert_int_equal(told.kernels, 4);
	assert_int_equal(told.completed, 4);
	atomic_store(&counting_set, NULL);
	device_host_region_push("nobody counts");
	device_host_region_pop();
	assert_int_equal(counted_told.asked, 4);
	host->set_free(set);
}

/* Of the parent's ranges the child tells nothing. */
static void ranges_across_a_fork(void **state)
{
	static const struct counting_event_request request = {.block = "SW", .event = "task-clock"};
	void *set = count_ranges(&request, 1);
	int status = 0;
	pid_t child;

	(void)state;
	device_host_region_push("of the parent");
	child = fork();
	if (child == 0) {
		device_backend_host.forked();
		device_host_region_pop();
		device_host_region_push("of the child");
		device_host_region_pop();
		_exit(counted_told.counted == 1 && counted_told.not_counted == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	device_host_region_pop();
	assert_int_equal(counted_told.counted, 1);
	atomic_store(&counting_set, NULL);
	host->set_free(set);
}

static void *sleep_and_fault(void *unused)
{
	for (unsigned i = 0; i < 200; i++)
		usleep(100);
	return unused;
}

static void switches_of_all_threads(void **state)
{
	static const struct counting_event_request request = {.block = "SW",
							      .event = "context-switches"};
	void *set = start(&request, 1, 0);
	pthread_t thread;
	double value;
	uint64_t time;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, sleep_and_fault, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(host->device_counting_read(AGENT, &value, 1, &time, &problem),
			 COUNTING_OK);
	assert_true(value >= 200);
	host->device_counting_stop(AGENT);
	host->set_free(set);
}

/* A perf event of each thread: one that was there, and one that is made later. */
static _Atomic int may_burn;

static void *wait_and_burn(void *unused)
{
	while (!may_burn)
		usleep(100);
	return burn_thread(unused);
}

static void perf_events_know_all_threads(void **state)
{
	static const struct counting_event_request requests[] = {
		{.block = "SW", .event = "cpu-clock"}, {.block = "SW", .event = "task-clock"}};
	pthread_t old, fresh;
	struct counting_event_info event;
	double values[2], begin;
	uint64_t time;
	void *set;

	(void)state;
	if (host->event(AGENT, "SW", "cpu-clock", &event) != COUNTING_OK)
		skip();
	begin = elapsed(CLOCK_MONOTONIC);
	assert_int_equal(pthread_create(&old, NULL, wait_and_burn, NULL), 0);
	set = start(requests, 2, 0);
	may_burn = 1;
	assert_int_equal(pthread_create(&fresh, NULL, burn_thread, NULL), 0);
	pthread_join(old, NULL);
	pthread_join(fresh, NULL);
	assert_int_equal(host->device_counting_read(AGENT, values, 2, &time, &problem),
			 COUNTING_OK);
	host->device_counting_stop(AGENT);
	host->set_free(set);
	assert_true(is_within(values[0], 6e7 * 0.9, cpus_since(begin, 2)));
}

static void samples_come_at_intervals(void **state)
{
	static const struct counting_event_request request = {.block = "SW", .event = "task-clock"};
	unsigned samples;
	double value;
	uint64_t time;
	void *set;

	(void)state;
	memset((void *)&counted_told, 0, sizeof(counted_told));
	set = start(&request, 1, 5000000);
	burn(8e7);
	assert_int_equal(host->device_counting_read(AGENT, &value, 1, &time, &problem),
			 COUNTING_OK);
	host->device_counting_stop(AGENT);
	samples = counted_told.samples;
	assert_true(samples + counted_told.samples_lost >= 8);
	assert_true(counted_told.sums[0] <= value * 1.05 + 1e7);
	assert_true(counted_told.last_end > counted_told.last_start);
	usleep(20000);
	assert_int_equal(counted_told.samples, samples);
	host->set_free(set);
}

static void an_interval_for_ever(void **state)
{
	static const struct counting_event_request request = {.block = "SW", .event = "task-clock"};
	void *set;

	(void)state;
	memset((void *)&counted_told, 0, sizeof(counted_told));
	set = start(&request, 1, UINT64_MAX);
	usleep(20000);
	host->device_counting_stop(AGENT);
	host->set_free(set);
	assert_int_equal(counted_told.samples, 1); /* the last one */
	assert_int_equal(counted_told.samples_lost, 0);
}

/* In the child of a fork: it may count, and what it counts is its own. */
static int count_in_child(void *set)
{
	double values[2], begin = elapsed(CLOCK_MONOTONIC);
	uint64_t time;

	device_backend_host.forked();
	if (host->device_counting_start(AGENT, set, 0, &problem) != COUNTING_OK)
		return 1;
	burn(2e7);
	if (host->device_counting_read(AGENT, values, 2, &time, &problem) != COUNTING_OK)
		return 2;
	host->device_counting_stop(AGENT);
	if (!is_within(values[1], 2e7, elapsed(CLOCK_PROCESS_CPUTIME_ID)))
		return 3;
	return is_within(values[0], 1e7, cpus_since(begin, 2)) ? 0 : 4;
}

static void a_child_counts_by_itself(void **state)
{
	static const struct counting_event_request requests[] = {
		{.block = "SW", .event = "cpu-clock"}, {.block = "SW", .event = "task-clock"}};
	struct counting_event_info event;
	pid_t child;
	void *set;
	int status;

	(void)state;
	if (host->event(AGENT, "SW", "cpu-clock", &event) != COUNTING_OK)
		skip();
	set = start(requests, 2, 0);
	burn(3e8);
	child = fork();
	if (child == 0)
		_exit(count_in_child(set));
	burn(3e8);
	assert_int_equal(waitpid(child, &status, 0), child);
	host->device_counting_stop(AGENT);
	host->set_free(set);
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(WIFEXITED(status));
}

static void whole_cpus(void **state)
{
	static const struct counting_event_request request = {.block = "SYSTEM",
							      .event = "cpu-clock"};
	struct counting_event_info event;
	double values[COUNTING_INSTANCE_EXTENT_MAX], sum = 0;
	enum counting_status status;
	uint32_t ways;
	uint64_t time;
	void *set;

	(void)state;
	if (host->event(AGENT, "SYSTEM", "cpu-clock", &event) != COUNTING_OK)
		skip();
	assert_true(counting_get_event_value_count(&event) >= 1);
	status = host->set_make(AGENT, &request, 1, &set, &ways, &problem);
	if (status == COUNTING_NOT_PERMITTED) {
		assert_non_null(strstr(problem.text, "perf_event_paranoid"));
		skip();
	}
	assert_int_equal(status, COUNTING_OK);
	assert_int_equal(host->device_counting_start(AGENT, set, 0, &problem), COUNTING_OK);
	burn(5e7);
	assert_int_equal(host->device_counting_read(AGENT, values,
						    counting_get_event_value_count(&event), &time,
						    &problem),
			 COUNTING_OK);
	for (size_t i = 0; i < counting_get_event_value_count(&event); i++)
		sum += values[i];
	host->device_counting_stop(AGENT);
	host->set_free(set);
	assert_true(sum >= 4e7);
}

static void what_it_cannot_do_is_refused(void **state)
{
	static const struct counting_event_request unknown = {.block = "SW", .event = "coffee"},
						   rollup = {.block = "SW",
							     .event = "task-clock",
							     .rollup = COUNTING_ROLLUP_MAX},
						   summed = {.block = "SW",
							     .event = "task-clock",
							     .accumulation_resolution =
								     COUNTING_ACCUMULATE_HIGH_RES},
						   process = {.block = "SW", .event = "task-clock"};
	uint32_t ways;
	void *set;

	(void)state;
	assert_int_equal(host->set_make(AGENT, &unknown, 1, &set, &ways, &problem),
			 COUNTING_NO_SUCH_EVENT);
	assert_non_null(strstr(problem.text, "coffee"));
	assert_int_equal(host->set_make(AGENT, &rollup, 1, &set, &ways, &problem),
			 COUNTING_NOT_SUPPORTED);
	assert_int_equal(host->set_make(AGENT, &summed, 1, &set, &ways, &problem),
			 COUNTING_NOT_SUPPORTED);
	assert_int_equal(host->set_make(AGENT + 1, &process, 1, &set, &ways, &problem),
			 COUNTING_NO_SUCH_EVENT);
	assert_non_null(strstr(problem.text, "first CPU agent"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(its_events_are_listed, stop_counting),
		cmocka_unit_test_teardown(ranges_of_threads_are_kernels, stop_counting),
		cmocka_unit_test_teardown(ranges_across_a_fork, stop_counting),
		cmocka_unit_test_teardown(what_the_process_does_is_counted, stop_counting),
		cmocka_unit_test_teardown(switches_of_all_threads, stop_counting),
		cmocka_unit_test_teardown(perf_events_know_all_threads, stop_counting),
		cmocka_unit_test_teardown(samples_come_at_intervals, stop_counting),
		cmocka_unit_test_teardown(an_interval_for_ever, stop_counting),
		cmocka_unit_test_teardown(a_child_counts_by_itself, stop_counting),
		cmocka_unit_test_teardown(whole_cpus, stop_counting),
		cmocka_unit_test_teardown(what_it_cannot_do_is_refused, stop_counting),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
