/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Time windows on clocks that the test turns.
 */
#include "unit/core/core_test.h"

#include <time.h>

#include "core/base/windows.h"

static uint64_t now[16]; /* by clock id */
static unsigned readings;

static uint64_t fake_clock(int clock)
{
	readings++;
	return now[clock];
}

struct moment {
	uint64_t time;
	bool open;
	uint64_t wait;
};

/* Steps the windows at each moment of a clock and compares what they say. */
static void expect(struct time_windows *windows, int clock, const struct moment *moments,
		   size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t wait;

		now[clock] = moments[i].time;
		assert_int_equal(time_windows_advance(windows, 1, &wait), moments[i].open);
		assert_int_equal(wait, moments[i].wait);
	}
}

#define EXPECT(windows, clock, ...)                                                                \
	expect(windows, clock, (const struct moment[]){__VA_ARGS__},                               \
	       LENGTH(((const struct moment[]){__VA_ARGS__})))

static void start(struct time_windows *windows, const struct collection_period_setting *periods,
		  uint32_t count)
{
	for (size_t i = 0; i < LENGTH(now); i++)
		now[i] = 1000;
	time_windows_init(windows, periods, count, fake_clock);
}

static void without_periods_the_window_is_open_for_ever(void **state)
{
	struct time_windows windows;

	(void)state;
	start(&windows, NULL, 0);
	EXPECT(&windows, CLOCK_MONOTONIC, {1000, true, TIME_WINDOWS_WAIT_NEVER_ENDS},
	       {UINT64_MAX, true, TIME_WINDOWS_WAIT_NEVER_ENDS});
}

/* The peer records nothing with a delay alone (defect A13). */
static void a_delay_alone_opens_until_the_end(void **state)
{
	static const struct collection_period_setting period = {CLOCK_MONOTONIC, 500, 0, 1};
	struct time_windows windows;

	(void)state;
	start(&windows, &period, 1);
	EXPECT(&windows, CLOCK_MONOTONIC, {1000, false, 500}, {1499, false, 1},
	       {1500, true, TIME_WINDOWS_WAIT_NEVER_ENDS},
	       {999999999, true, TIME_WINDOWS_WAIT_NEVER_ENDS});
}

static void delay_and_duration_open_and_close_once(void **state)
{
	static const struct collection_period_setting period = {CLOCK_REALTIME, 500, 200, 1};
	struct time_windows windows;

	(void)state;
	start(&windows, &period, 1);
	EXPECT(&windows, CLOCK_REALTIME, {1000, false, 500}, {1500, true, 200}, {1699, true, 1},
	       {1700, false, TIME_WINDOWS_WAIT_NEVER_ENDS},
	       {9999, false, TIME_WINDOWS_WAIT_NEVER_ENDS});
}

static void a_duration_alone_opens_at_once(void **state)
{
	static const struct collection_period_setting period = {CLOCK_MONOTONIC, 0, 200, 1};
	struct time_windows windows;

	(void)state;
	start(&windows, &period, 1);
	EXPECT(&windows, CLOCK_MONOTONIC, {1000, true, 200},
	       {1200, false, TIME_WINDOWS_WAIT_NEVER_ENDS});
}

static void time_counts_from_the_first_step(void **state)
{
	static const struct collection_period_setting period = {CLOCK_MONOTONIC, 500, 0, 1};
	struct time_windows windows;

	(void)state;
	start(&windows, &period, 1);
	EXPECT(&windows, CLOCK_MONOTONIC, {5000, false, 500},
	       {5500, true, TIME_WINDOWS_WAIT_NEVER_ENDS});
}

static void cycles_repeat_delay_and_duration(void **state)
{
	static const struct collection_period_setting period = {CLOCK_MONOTONIC, 100, 50, 3};
	struct time_windows windows;

	(void)state;
	start(&windows, &period, 1);
	EXPECT(&windows, CLOCK_MONOTONIC, {1000, false, 100}, {1100, true, 50}, {1150, false, 100},
	       {1250, true, 50}, {1300, false, 100}, {1400, true, 50},
	       {1450, false, TIME_WINDOWS_WAIT_NEVER_ENDS});
}

static void cycles_zero_go_on_for_ever(void **state)
{
	static const struct collection_period_setting period = {CLOCK_MONOTONIC, 100, 50, 0};
	struct time_windows windows;

	(void)state;
	start(&windows, &period, 1);
	for (uint64_t cycle = 0; cycle < 1000; cycle++)
		EXPECT(&windows, CLOCK_MONOTONIC, {1000 + cycle * 150, false, 100},
		       {1100 + cycle * 150, true, 50});
}

/* A caller that comes late each time does not move the windows to come. */
static void lateness_does_not_add_up_over_cycles(void **state)
{
	static const struct collection_period_setting period = {CLOCK_MONOTONIC, 100, 50, 0};
	struct time_windows windows;

	(void)state;
	start(&windows, &period, 1);
	EXPECT(&windows, CLOCK_MONOTONIC, {1000, false, 100});
	for (uint64_t cycle = 0; cycle < 1000; cycle++)
		EXPECT(&windows, CLOCK_MONOTONIC, {1107 + cycle * 150, true, 43},
		       {1159 + cycle * 150, false, 91});
}

static void lateness_does_not_add_up_over_periods_of_one_clock(void **state)
{
	static const struct collection_period_setting periods[] = {{CLOCK_MONOTONIC, 100, 50, 1},
								   {CLOCK_MONOTONIC, 10, 20, 1}};
	struct time_windows windows;

	(void)state;
	start(&windows, periods, 2);
	EXPECT(&windows, CLOCK_MONOTONIC, {1000, false, 100}, {1101, true, 49}, {1157, false, 3},
	       {1160, true, 20}, {1180, false, TIME_WINDOWS_WAIT_NEVER_ENDS});
}

static void a_window_slept_through_leaves_the_later_ones_in_place(void **state)
{
	static const struct collection_period_setting period = {CLOCK_MONOTONIC, 100, 50, 4};
	struct time_windows windows;

	(void)state;
	start(&windows, &period, 1);
	EXPECT(&windows, CLOCK_MONOTONIC, {1000, false, 100}, {1420, true, 30}, {1450, false, 100},
	       {1550, true, 50}, {1600, false, TIME_WINDOWS_WAIT_NEVER_ENDS});
}

static void periods_run_one_after_the_other_each_on_its_clock(void **state)
{
	static const struct collection_period_setting periods[] = {{CLOCK_MONOTONIC, 100, 50, 1},
								   {CLOCK_BOOTTIME, 10, 5, 2},
								   {CLOCK_REALTIME, 7, 0, 1}};
	struct time_windows windows;

	(void)state;
	start(&windows, periods, 3);
	now[CLOCK_BOOTTIME] = 77000;
	EXPECT(&windows, CLOCK_MONOTONIC, {1000, false, 100}, {1100, true, 50}, {1150, false, 10});
	EXPECT(&windows, CLOCK_BOOTTIME, {77010, true, 5}, {77015, false, 10}, {77025, true, 5},
	       {77030, false, 7});
	EXPECT(&windows, CLOCK_REALTIME, {1006, false, 1},
	       {1007, true, TIME_WINDOWS_WAIT_NEVER_ENDS});
}

static void cpu_time_may_run_as_many_times_faster_as_there_are_cpus(void **state)
{
	static const struct collection_period_setting period = {CLOCK_PROCESS_CPUTIME_ID, 8000, 400,
								1};
	struct time_windows windows;
	uint64_t wait;

	(void)state;
	start(&windows, &period, 1);
	assert_false(time_windows_advance(&windows, 4, &wait));
	assert_int_equal(wait, 2000);
	now[CLOCK_PROCESS_CPUTIME_ID] = 8999;
	assert_false(time_windows_advance(&windows, 4, &wait));
	assert_int_equal(wait, 0);
	now[CLOCK_PROCESS_CPUTIME_ID] = 9000;
	assert_true(time_windows_advance(&windows, 4, &wait));
	assert_int_equal(wait, 100);
	now[CLOCK_PROCESS_CPUTIME_ID] = 9400;
	assert_false(time_windows_advance(&windows, 4, &wait));
	assert_int_equal(wait, TIME_WINDOWS_WAIT_NEVER_ENDS);
}

/* A clock that was set, a process that was stopped for a night: whole cycles are passed over in one
 * go, not one by one. */
static void many_missed_cycles_cost_no_more_than_one(void **state)
{
	static const struct collection_period_setting period = {CLOCK_REALTIME, 0, 1, 0};
	struct time_windows windows;
	uint64_t wait;

	(void)state;
	start(&windows, &period, 1);
	time_windows_advance(&windows, 1, &wait);
	now[CLOCK_REALTIME] += 86400ull * 1000000000;
	readings = 0;
	assert_true(time_windows_advance(&windows, 1, &wait));
	assert_in_range(readings, 1, 10);
}

static void missed_cycles_are_counted(void **state)
{
	static const struct collection_period_setting period = {CLOCK_REALTIME, 100, 50, 1000};
	struct time_windows windows;

	(void)state;
	start(&windows, &period, 1);
	EXPECT(&windows, CLOCK_REALTIME, {1000, false, 100}, {1000 + 998 * 150 + 120, true, 30},
	       {1000 + 999 * 150 + 120, true, 30},
	       {1000 + 1000 * 150, false, TIME_WINDOWS_WAIT_NEVER_ENDS});
	start(&windows, &period, 1);
	EXPECT(&windows, CLOCK_REALTIME, {1000, false, 100},
	       {1000 + 5000 * 150, false, TIME_WINDOWS_WAIT_NEVER_ENDS});
}

static void a_sampler_without_delay_and_duration_is_always_open(void **state)
{
	static const struct collection_period_setting none = {CLOCK_MONOTONIC, 0, 0, 1};
	static const struct collection_period_setting some = {CLOCK_MONOTONIC, 10, 20, 1};
	struct time_windows windows;

	(void)state;
	start(&windows, NULL, 0);
	time_windows_init_single_period(&windows, &none, fake_clock);
	EXPECT(&windows, CLOCK_MONOTONIC, {1000, true, TIME_WINDOWS_WAIT_NEVER_ENDS});
	time_windows_init_single_period(&windows, &some, fake_clock);
	EXPECT(&windows, CLOCK_MONOTONIC, {1000, false, 10}, {1010, true, 20},
	       {1030, false, TIME_WINDOWS_WAIT_NEVER_ENDS});
}

static void lateness_does_not_add_up_over_real_clocks(void **state)
{
	static const struct collection_period_setting periods[] = {{CLOCK_MONOTONIC, 100, 50, 1},
								   {CLOCK_REALTIME, 10, 20, 1}};
	struct time_windows windows;

	(void)state;
	start(&windows, periods, 2);
	EXPECT(&windows, CLOCK_MONOTONIC, {1000, false, 100}, {1100, true, 50});
	now[CLOCK_MONOTONIC] = 1154;
	EXPECT(&windows, CLOCK_REALTIME, {1004, false, 6}, {1010, true, 20},
	       {1030, false, TIME_WINDOWS_WAIT_NEVER_ENDS});
}

static void who_joins_late_finds_windows_under_way(void **state)
{
	static const struct collection_period_setting periods[] = {
		{CLOCK_MONOTONIC, 100, 50, 2}, {CLOCK_PROCESS_CPUTIME_ID, 30, 0, 1}};
	struct time_windows windows;

	(void)state;
	start(&windows, periods, 2);
	time_windows_backdate_start(&windows, 120);
	EXPECT(&windows, CLOCK_MONOTONIC, {1000, true, 30}, {1030, false, 100});
	start(&windows, periods, 2);
	time_windows_backdate_start(&windows, 900);
	EXPECT(&windows, CLOCK_PROCESS_CPUTIME_ID, {1000, false, 30},
	       {1030, true, TIME_WINDOWS_WAIT_NEVER_ENDS});
}

static void a_forked_child_goes_on_with_the_windows_of_its_parent(void **state)
{
	static const struct collection_period_setting period = {CLOCK_MONOTONIC, 100, 50, 2};
	struct time_windows windows;

	(void)state;
	start(&windows, &period, 1);
	EXPECT(&windows, CLOCK_MONOTONIC, {1000, false, 100}, {1120, true, 30});
	time_windows_restart_cpu_time_period(&windows);
	EXPECT(&windows, CLOCK_MONOTONIC, {1130, true, 20}, {1150, false, 100}, {1250, true, 50},
	       {1300, false, TIME_WINDOWS_WAIT_NEVER_ENDS});
}

static void a_forked_child_has_cpu_time_of_its_own(void **state)
{
	static const struct collection_period_setting periods[] = {
		{CLOCK_MONOTONIC, 0, 10, 1}, {CLOCK_PROCESS_CPUTIME_ID, 100, 50, 1}};
	struct time_windows windows;
	uint64_t wait;

	(void)state;
	start(&windows, periods, 2);
	EXPECT(&windows, CLOCK_MONOTONIC, {1000, true, 10});
	now[CLOCK_MONOTONIC] = 1010;
	EXPECT(&windows, CLOCK_PROCESS_CPUTIME_ID, {1000, false, 100}, {1110, true, 40});
	now[CLOCK_PROCESS_CPUTIME_ID] = 3;
	time_windows_restart_cpu_time_period(&windows);
	assert_false(time_windows_advance(&windows, 1, &wait));
	assert_int_equal(wait, 100);
	EXPECT(&windows, CLOCK_PROCESS_CPUTIME_ID, {103, true, 50},
	       {153, false, TIME_WINDOWS_WAIT_NEVER_ENDS});
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_periods_the_window_is_open_for_ever),
		cmocka_unit_test(a_delay_alone_opens_until_the_end),
		cmocka_unit_test(delay_and_duration_open_and_close_once),
		cmocka_unit_test(a_duration_alone_opens_at_once),
		cmocka_unit_test(time_counts_from_the_first_step),
		cmocka_unit_test(cycles_repeat_delay_and_duration),
		cmocka_unit_test(cycles_zero_go_on_for_ever),
		cmocka_unit_test(lateness_does_not_add_up_over_cycles),
		cmocka_unit_test(lateness_does_not_add_up_over_periods_of_one_clock),
		cmocka_unit_test(a_window_slept_through_leaves_the_later_ones_in_place),
		cmocka_unit_test(periods_run_one_after_the_other_each_on_its_clock),
		cmocka_unit_test(cpu_time_may_run_as_many_times_faster_as_there_are_cpus),
		cmocka_unit_test(many_missed_cycles_cost_no_more_than_one),
		cmocka_unit_test(missed_cycles_are_counted),
		cmocka_unit_test(a_sampler_without_delay_and_duration_is_always_open),
		cmocka_unit_test(lateness_does_not_add_up_over_real_clocks),
		cmocka_unit_test(who_joins_late_finds_windows_under_way),
		cmocka_unit_test(a_forked_child_goes_on_with_the_windows_of_its_parent),
		cmocka_unit_test(a_forked_child_has_cpu_time_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
