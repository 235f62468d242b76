/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Switches of collection, and what a thread's samples stand for when it excludes itself.
 */
#include "unit/core/core_test.h"

#include <time.h>

#include "core/base/ticks.h"
#include "core/control.h"
#include "core/threads.h"

static struct collection_control control;
static struct thread thread;

static int setup(void **state)
{
	(void)state;
	control.closed_reasons = 0;
	thread = (struct thread){0};
	return 0;
}

static void collection_is_on_when_nothing_closes_it(void **state)
{
	(void)state;
	control_add_closed_reason(&control, CONTROL_CLOSED_BY_WINDOW);
	control_stop_collection(&control);
	control_remove_closed_reason(&control, CONTROL_CLOSED_BY_WINDOW);
	assert_false(control_is_collecting(&control));
	control_start_collection(&control);
	assert_true(control_is_collecting(&control));
}

static void stops_do_not_count(void **state)
{
	(void)state;
	control_stop_collection(&control);
	control_stop_collection(&control);
	control_start_collection(&control);
	assert_true(control_is_collecting(&control));
	control_toggle_collection(&control);
	assert_false(control_is_collecting(&control));
	control_toggle_collection(&control);
	assert_true(control_is_collecting(&control));
}

static uint64_t cpu_now(void)
{
	return read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void work(uint64_t ns)
{
	uint64_t end = cpu_now() + ns;

	while (cpu_now() < end)
		;
}

static void excluded_time_is_not_in_the_next_sample(void **state)
{
	uint64_t owed;

	(void)state;
	thread.cpu_ns = cpu_now();
	work(2000000);
	control_exclude_this_thread(&control, &thread, THREAD_EXCLUDED_BY_STOP);
	assert_true(thread.excluded_reasons);
	work(10000000);
	control_include_this_thread(&control, &thread, THREAD_EXCLUDED_BY_STOP);
	assert_false(thread.excluded_reasons);
	owed = cpu_now() - thread.cpu_ns;
	assert_in_range(owed, 2000000, 4000000);
	assert_in_range(thread.total_excluded_cpu_ns, 10000000, 12000000);
}

static void two_reasons_are_both_needed_to_go(void **state)
{
	(void)state;
	thread.cpu_ns = cpu_now();
	control_exclude_this_thread(&control, &thread, THREAD_EXCLUDED_BY_SELECTION);
	work(3000000);
	control_exclude_this_thread(&control, &thread, THREAD_EXCLUDED_BY_STOP);
	control_include_this_thread(&control, &thread, THREAD_EXCLUDED_BY_SELECTION);
	assert_int_equal(thread.excluded_reasons, THREAD_EXCLUDED_BY_STOP);
	assert_int_equal(thread.total_excluded_cpu_ns, 0);
	work(3000000);
	control_include_this_thread(&control, &thread, THREAD_EXCLUDED_BY_STOP);
	assert_int_equal(thread.excluded_reasons, 0);
	assert_in_range(thread.total_excluded_cpu_ns, 6000000, 8000000);
	control_include_this_thread(&control, &thread, THREAD_EXCLUDED_BY_STOP);
	assert_in_range(thread.total_excluded_cpu_ns, 6000000, 8000000);
}

/* The background thread armed it in between: its samples stand for what comes from then on. */
static void a_source_armed_in_between_starts_anew(void **state)
{
	(void)state;
	thread.cpu_ns = cpu_now();
	control_exclude_this_thread(&control, &thread, THREAD_EXCLUDED_BY_STOP);
	work(2000000);
	thread.cpu_ns = cpu_now();
	work(1000000);
	control_include_this_thread(&control, &thread, THREAD_EXCLUDED_BY_STOP);
	assert_true(cpu_now() - thread.cpu_ns < 500000);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(collection_is_on_when_nothing_closes_it, setup),
		cmocka_unit_test_setup(stops_do_not_count, setup),
		cmocka_unit_test_setup(excluded_time_is_not_in_the_next_sample, setup),
		cmocka_unit_test_setup(two_reasons_are_both_needed_to_go, setup),
		cmocka_unit_test_setup(a_source_armed_in_between_starts_anew, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
