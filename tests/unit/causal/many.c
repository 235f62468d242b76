/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Several threads: what all of them have absorbed is what was earned, paid and credited, and no
 * thread is left behind.
 */
#include "fake.h"

#include <pthread.h>
#include <stdlib.h>

#define THREADS 4
#define ROUNDS  400

static uint64_t absorbed[THREADS];
static pthread_barrier_t all_there;

static void do_something(unsigned *seed, unsigned number)
{
	struct causal_wait_state wait;

	switch (rand_r(seed) % 5) {
	case 0:
		if (number < 2)
			fake_sample(1 + number, 100000);
		causal_pay_delay_of_sampled_thread(kymo_thread);
		break;
	case 1:
		causal_pay_delay();
		break;
	case 2:
		causal_apply_delay_and_begin_wait(&wait);
		sched_yield();
		causal_end_wait_and_apply_delay(&wait, CAUSAL_WAKER_SESSION);
		break;
	case 3:
		causal_apply_delay_and_begin_wait(&wait);
		sched_yield();
		causal_end_wait_and_apply_delay(&wait, CAUSAL_WAKER_OUTSIDE);
		break;
	default:
		causal_record_visit(0);
	}
}

static void *run(void *argument)
{
	unsigned number = (unsigned)(uintptr_t)argument, seed = number + 1;
	struct causal_wait_state wait;

	fake_thread();
	causal_pay_delay();
	pthread_barrier_wait(&all_there); /* nothing has grown yet */
	for (int i = 0; i < ROUNDS; i++)
		do_something(&seed, number);
	fake_release();
	pthread_barrier_wait(&all_there);         /* nothing grows any more */
	causal_apply_delay_and_begin_wait(&wait); /* pays, and does not run on */
	absorbed[number] = fake_delay_ns();
	causal_pay_delay_of_sampled_thread(kymo_thread); /* its counts */
	return NULL;
}

static void test_sums(void **state)
{
	uint64_t sum = 0, expected;
	pthread_t threads[THREADS];

	(void)state;
	fake_experiment(1, 500);
	pthread_barrier_init(&all_there, NULL, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		fake_assert_near(absorbed[i], fake_most_ns());
		sum += absorbed[i];
	}
	expected = fake_count_ns(&fake_control->earned) + fake_count_ns(&fake_control->credited) +
		   fake_count_ns(&fake_control->paid) - fake_count_ns(&fake_control->overslept);
	assert_in_range(sum, expected - 100, expected + 100); /* rounding */
	assert_true(fake_control->earned > 0 && fake_control->paid > 0);
	assert_int_equal(fake_control->waits > 0 && fake_control->waits_outside > 0, 1);
}

/* Two that run the target at once: both earn, and neither owes the other. */
static void *run_target(void *argument)
{
	struct causal_wait_state wait;

	(void)argument;
	fake_thread();
	causal_pay_delay();
	pthread_barrier_wait(&all_there);
	fake_sample(1, 10 * MS);
	fake_release();
	pthread_barrier_wait(&all_there);
	causal_apply_delay_and_begin_wait(&wait);
	return NULL;
}

static void test_the_same_time_is_earned_once(void **state)
{
	pthread_t thread;

	(void)state;
	fake_experiment(1, 500);
	pthread_barrier_init(&all_there, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, run_target, NULL), 0);
	run_target(NULL);
	pthread_join(thread, NULL);
	fake_assert_near(fake_most_ns(), 5 * MS);
	fake_assert_near(fake_count_ns(&fake_control->earned), 10 * MS);
	assert_int_equal(fake_control->pauses, 0);
}

/* ---- begin and end of threads ---- */

static struct thread *child;

static void *run_child(void *argument)
{
	(void)argument;
	kymo_thread = child;
	fake_assert_near(fake_delay_ns(), 10 * MS);
	fake_sample(1, 4 * MS);
	causal_pay_delay_of_ending_thread();
	assert_null(kymo_causal_thread);
	return NULL;
}

static void test_threads_begin_with_what_their_creator_has(void **state)
{
	struct thread *mine = kymo_thread;
	struct causal_wait_state wait;
	pthread_t thread;

	(void)state;
	fake_experiment(1, 500);
	causal_pay_delay();
	fake_owe(10 * MS);
	child = fake_thread();
	kymo_causal_thread = NULL;
	kymo_thread = mine;
	causal_pay_delay_and_init_created_thread(child);
	fake_assert_near(fake_delay_ns(), 10 * MS);
	assert_int_equal(((struct causal_thread *)child->causal_state)->local_delay,
			 causal_find_or_make_current_state()->local_delay);
	causal_apply_delay_and_begin_wait(&wait);
	assert_int_equal(pthread_create(&thread, NULL, run_child, NULL), 0);
	pthread_join(thread, NULL);
	causal_end_wait_and_apply_delay(&wait, CAUSAL_WAKER_SESSION);
	/* It ended with all that it had earned. */
	fake_assert_near(fake_most_ns(), 12 * MS);
	fake_assert_near(fake_delay_ns(), 12 * MS);
}

static void test_threads_that_are_found_owe_nothing(void **state)
{
	(void)state;
	fake_experiment(1, 500);
	fake_owe(10 * MS);
	fake_thread();
	causal_pay_delay();
	assert_int_equal(fake_control->pauses, 0);
	fake_assert_near(fake_delay_ns(), 10 * MS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_begin, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(test_sums),
		TEST(test_the_same_time_is_earned_once),
		TEST(test_threads_begin_with_what_their_creator_has),
		TEST(test_threads_that_are_found_owe_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
