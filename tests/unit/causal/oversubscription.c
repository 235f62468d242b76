/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * More threads than processors: who pauses keeps its processor, who waits for one is credited.
 */
#include "fake.h"

#include <sys/resource.h>
#include <time.h>

#include "causal/oversubscription.h"

static uint64_t cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

/* How often this thread went to sleep. CPU time would not tell: others may take the processor. */
static long sleeps(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

static int64_t could_run(void)
{
	uint64_t epoch = causal_load_relaxed(&fake_control->experiment) >> CAUSAL_EPOCH_SHIFT;

	return atomic_load(&fake_control->could_run[epoch % 2]);
}

static int64_t took_part(void)
{
	uint64_t epoch = causal_load_relaxed(&fake_control->experiment) >> CAUSAL_EPOCH_SHIFT;

	return atomic_load(&fake_control->took_part[epoch % 2]);
}

/* One processor, another thread that could run, and this one. */
static void oversubscribe(void)
{
	uint64_t epoch;

	kymo_causal_rates.usable_processor_count = 1;
	fake_experiment(3, 500);
	epoch = causal_load_relaxed(&fake_control->experiment) >> CAUSAL_EPOCH_SHIFT;
	atomic_store(&fake_control->could_run[epoch % 2], 1);
	atomic_store(&fake_control->took_part[epoch % 2], 1);
	causal_pay_delay();
	causal_find_or_make_current_state()->oversubscription.has_realtime_policy = true;
	causal_pay_delay();
}

/* Not on the processor, and nobody was told. */
static void lose_the_processor(uint64_t ns)
{
	struct timespec time = {.tv_nsec = (long)ns};

	nanosleep(&time, NULL);
}

static void test_who_could_run(void **state)
{
	struct causal_wait_state wait;

	(void)state;
	fake_experiment(3, 500);
	causal_pay_delay();
	causal_pay_delay();
	assert_int_equal(could_run(), 1);
	causal_apply_delay_and_begin_wait(&wait);
	assert_int_equal(could_run(), 0);
	causal_end_wait_and_apply_delay(&wait, CAUSAL_WAKER_SESSION);
	assert_int_equal(could_run(), 1);
	assert_int_equal(took_part(), 1);
	causal_apply_delay_and_begin_wait(&wait);
	fake_experiment(3, 500); /* what is left of the one before counts no more */
	assert_int_equal(could_run(), 0);
	causal_end_wait_and_apply_delay(&wait, CAUSAL_WAKER_OUTSIDE);
	assert_int_equal(could_run(), 1);
	assert_int_equal(took_part(), 1);
	fake_experiment(3, 500);
	causal_apply_delay_and_begin_wait(&wait);
	causal_end_wait_and_apply_delay(&wait, CAUSAL_WAKER_SESSION);
	assert_int_equal(could_run(), 1);
	assert_int_equal(took_part(), 1);
	causal_pay_delay_of_ending_thread();
	assert_int_equal(could_run(), 0);
	assert_int_equal(took_part(), 0);
}

static void test_a_pause_keeps_the_processor(void **state)
{
	long before;

	(void)state;
	oversubscribe();
	fake_owe(20 * MS);
	before = sleeps();
	causal_pay_delay();
	assert_int_equal(sleeps(), before);
	fake_assert_near(fake_delay_ns(), 20 * MS);
	/* Its samples tell of the program alone. */
	assert_true(causal_find_or_make_current_state()->attribution.spun_ns +
			    causal_ticks_to_ns(causal_find_or_make_current_state()->credited) >
		    15 * MS);
}

static void test_a_pause_gives_a_free_processor_back(void **state)
{
	uint64_t before;
	long asleep;

	(void)state;
	oversubscribe();
	kymo_causal_rates.usable_processor_count = 2;
	fake_owe(20 * MS);
	before = cpu_ns();
	asleep = sleeps();
	causal_pay_delay();
	assert_true(cpu_ns() - before < 10 * MS);
	assert_true(sleeps() > asleep);
	fake_assert_near(fake_delay_ns(), 20 * MS);
}

static void test_waiting_for_a_processor_is_credited(void **state)
{
	struct causal_thread *self = causal_find_or_make_current_state();
	uint64_t before;

	(void)state;
	oversubscribe();
	lose_the_processor(40 * MS);
	fake_owe(20 * MS);
	causal_pay_delay();
	fake_assert_near(fake_delay_ns(), 20 * MS);
	assert_true(fake_count_ns(&fake_control->paid) < 5 * MS);
	assert_true(causal_ticks_to_ns(self->credited) > 15 * MS);
	/* What it ran meanwhile is not. */
	before = self->credited;
	for (uint64_t end = cpu_ns() + 10 * MS; cpu_ns() < end;)
		;
	fake_owe(2 * MS);
	causal_pay_delay();
	assert_true(fake_count_ns(&fake_control->paid) > 0 || self->credited > before);
	fake_assert_near(fake_delay_ns(), 22 * MS);
}

static void test_where_there_is_no_oversubscription_it_is_owed(void **state)
{
	(void)state;
	oversubscribe();
	kymo_causal_rates.usable_processor_count = 2;
	causal_pay_delay();
	lose_the_processor(40 * MS);
	fake_owe(20 * MS);
	causal_pay_delay();
	assert_int_equal(causal_find_or_make_current_state()->credited, 0);
	assert_true(fake_count_ns(&fake_control->paid) > 19 * MS);
}

/* A wait that was told of is accounted for as such. */
static void test_other_waits_are_not_credited_again(void **state)
{
	struct causal_wait_state wait;

	(void)state;
	oversubscribe();
	causal_apply_delay_and_begin_wait(&wait);
	lose_the_processor(40 * MS);
	causal_end_wait_and_apply_delay(&wait, CAUSAL_WAKER_OUTSIDE);
	fake_owe(10 * MS);
	causal_pay_delay();
	assert_true(fake_count_ns(&fake_control->paid) +
			    causal_ticks_to_ns(causal_find_or_make_current_state()->credited) >
		    9 * MS);
	assert_true(fake_count_ns(&fake_control->paid) > 0);
	fake_assert_near(fake_delay_ns(), 10 * MS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_begin, fake_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_who_could_run),
		TEST(test_a_pause_keeps_the_processor),
		TEST(test_a_pause_gives_a_free_processor_back),
		TEST(test_waiting_for_a_processor_is_credited),
		TEST(test_where_there_is_no_oversubscription_it_is_owed),
		TEST(test_other_waits_are_not_credited_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
