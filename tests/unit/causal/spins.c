/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A call of a function that waits by looking again and again is a wait for a thread of the session.
 */
#include "fake.h"

#include "causal/spins.h"

#define FUNCTION 0x5000u
#define OTHER    0x6000u

static void test_a_call_is_a_wait(void **state)
{
	(void)state;
	spins_add_function(FUNCTION);
	spins_add_function(FUNCTION);
	fake_experiment(3, 500);
	causal_pay_delay();
	fake_owe(10 * MS);
	spins_begin_wait_if_spin_function(FUNCTION); /* pays before */
	fake_assert_near(fake_count_ns(&fake_control->paid) -
				 fake_count_ns(&fake_control->overslept),
			 10 * MS);
	fake_owe(20 * MS);
	spins_end_wait_if_spin_function(FUNCTION); /* what grew meanwhile is credited */
	fake_assert_near(fake_delay_ns(), 30 * MS);
	fake_assert_near(causal_ticks_to_ns(causal_find_or_make_current_state()->credited),
			 20 * MS);
	assert_int_equal(causal_load_relaxed(&causal_find_or_make_current_state()->waiting), 0);
}

static void test_samples_inside_earn_nothing(void **state)
{
	(void)state;
	spins_add_function(FUNCTION);
	fake_experiment(3, 1000);
	causal_pay_delay();
	spins_begin_wait_if_spin_function(FUNCTION);
	fake_sample(3, 5 * MS);
	assert_int_equal(fake_control->targets[3].self_ns, 0);
	spins_end_wait_if_spin_function(FUNCTION);
	fake_release();
	fake_assert_near(fake_delay_ns(), 0);
	fake_sample(3, MS); /* and outside again, they do */
	assert_int_equal(fake_control->targets[3].self_ns, MS);
}

static void test_other_functions_do_nothing(void **state)
{
	(void)state;
	spins_add_function(FUNCTION);
	fake_experiment(3, 500);
	causal_pay_delay();
	fake_owe(10 * MS);
	spins_begin_wait_if_spin_function(OTHER);
	spins_end_wait_if_spin_function(OTHER);
	spins_end_wait_if_spin_function(FUNCTION); /* which it was not seen to enter */
	assert_int_equal(fake_control->paid, 0);
	assert_int_equal(causal_find_or_make_current_state()->credited, 0);
}

static void test_there_is_room_for_some(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		spins_add_function(0x100000 + i);
	test_a_call_is_a_wait(state); /* which was there before */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_begin, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_call_is_a_wait),
		TEST(test_samples_inside_earn_nothing),
		TEST(test_other_functions_do_nothing),
		TEST(test_there_is_room_for_some),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
