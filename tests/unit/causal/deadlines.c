/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Deadlines of a thread that has paid delays: sleeps and timeouts of the program end by as much
 * later, and marks say which wait was ended by whom.
 */
#include "fake.h"

static void test_clocks(void **state)
{
	uint64_t before;

	(void)state;
	fake_experiment(3, 500);
	causal_record_clock_reading();
	assert_int_equal(causal_compute_deadline_extension_ns(), 0);
	fake_owe(10 * MS);
	causal_pay_delay();
	fake_assert_near(
		causal_compute_deadline_extension_ns(),
		10 * MS + causal_ticks_to_ns(causal_find_or_make_current_state()->excess_delay));
	causal_record_clock_reading();
	assert_int_equal(causal_compute_deadline_extension_ns(), 0);
	before = fake_count_ns(&fake_control->paid);
	fake_owe(10 * MS);
	causal_pay_delay();
	/* it stays late when the experiment is over, and after the next one */
	fake_control->experiment &= ~CAUSAL_ACTIVE;
	fake_assert_near(causal_compute_deadline_extension_ns(),
			 fake_count_ns(&fake_control->paid) - before);
	fake_experiment(3, 500);
	fake_owe(5 * MS);
	causal_pay_delay();
	fake_assert_near(causal_compute_deadline_extension_ns(),
			 fake_count_ns(&fake_control->paid) - before);
	causal_record_clock_reading();
	assert_int_equal(causal_compute_deadline_extension_ns(), 0);
}

/* A timetable of one millisecond: by all that was ever absorbed, though clocks are read. */
static void test_timetables(void **state)
{
	int64_t time = 1000 * MS;
	uint64_t paid = 0, late;

	(void)state;
	fake_experiment(3, 500);
	for (int i = 0; i < 30; i++, time += MS) {
		causal_record_clock_reading();
		causal_get_sleep_until_extension_ns(CLOCK_MONOTONIC, time,
						    time - (int64_t)MS + (int64_t)paid);
		fake_owe(MS / 2);
		causal_pay_delay();
		paid = fake_count_ns(&fake_control->paid);
	}
	assert_int_equal(causal_find_or_make_current_state()->sleep_timetable.kind,
			 CAUSAL_SLEEP_TIMETABLE_FIXED);
	fake_experiment(0, 0);
	causal_record_clock_reading();
	late = causal_get_sleep_until_extension_ns(CLOCK_MONOTONIC, time, time);
	assert_true(paid >= 14 * MS);
	assert_in_range(late, paid - MS / 5, paid + MS / 5);
}

/* The clock and so much more: by what was absorbed since it was read. */
static void test_times_from_a_clock(void **state)
{
	int64_t now = 1000 * MS;
	uint64_t before;

	(void)state;
	fake_experiment(3, 500);
	for (int i = 0; i < 30; i++) {
		causal_record_clock_reading();
		now += MS +
		       (int64_t)causal_get_sleep_until_extension_ns(CLOCK_MONOTONIC, now + MS, now);
		fake_owe(MS / 2);
		causal_pay_delay();
		now += MS / 2;
	}
	assert_int_equal(causal_find_or_make_current_state()->sleep_timetable.kind,
			 CAUSAL_SLEEP_TIMETABLE_FROM_CLOCK);
	causal_record_clock_reading();
	assert_int_equal(causal_get_sleep_until_extension_ns(CLOCK_MONOTONIC, now + MS, now), 0);
	before = fake_count_ns(&fake_control->paid);
	fake_owe(30 * MS);
	causal_pay_delay();
	fake_assert_near(
		causal_get_sleep_until_extension_ns(CLOCK_MONOTONIC, now + 31 * MS, now + 30 * MS),
		fake_count_ns(&fake_control->paid) - before);
}

static void test_marks(void **state)
{
	uint64_t now = ticks_now();

	(void)state;
	assert_false(causal_wakeup_was_published_since(77, now));
	causal_publish_wakeup_to_session(77);
	assert_true(causal_wakeup_was_published_since(77, now));
	assert_false(causal_wakeup_was_published_since(78, now));
	assert_false(causal_wakeup_was_published_since(77, ticks_now()));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_begin, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(test_clocks),
		TEST(test_timetables),
		TEST(test_times_from_a_clock),
		TEST(test_marks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
