/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a thread earns while it runs, by what samples have taught: in bursts of a kind, and in
 * short and long tasks from one queue, of which one sort is the target.
 */
#include "fake.h"

#include "causal/burst.h"

#define US       1000ull
#define KIND     4711u
#define SHORT_US 150u
#define LONG_US  1200u
#define EVERY_US 970u /* a sample; of no burst a divisor */

static uint64_t us(uint64_t count)
{
	return causal_ns_to_ticks(count * US);
}

/* A burst that began at `begin`, with the samples that fall into it. */
static void run_burst(struct causal_thread *self, uint64_t begin, uint32_t length_us, bool hit)
{
	static uint32_t next_us = EVERY_US;

	causal_begin_burst(fake_control, self, KIND, begin);
	for (; next_us < length_us; next_us += EVERY_US)
		burst_add_sample(self, us(next_us), EVERY_US * US, hit);
	next_us -= length_us;
	causal_end_burst(fake_control, self, begin + us(length_us));
}

static struct causal_thread *taught(bool short_ones_are_it)
{
	struct causal_thread *self;
	uint64_t now = ticks_now();

	fake_experiment(3, 1000);
	self = causal_find_or_make_current_state();
	assert_non_null(self);
	assert_true(causal_try_enter_state(self));
	causal_sync_with_experiment(fake_control, self);
	kymo_causal_rates.repay_time_ticks =
		causal_ns_to_ticks(1000000 * MS); /* nothing of what is due */
	for (int i = 0; i < 2000; i++) {
		uint32_t length_us = i % 5 ? SHORT_US : LONG_US;

		run_burst(self, now, length_us, (length_us == SHORT_US) == short_ones_are_it);
		now += us(length_us);
	}
	return self;
}

/* Percent of the time that local_delay has grown by in a burst that ends then. */
static int64_t earned_percent(struct causal_thread *self, uint32_t length_us)
{
	uint64_t begin = ticks_now(), before = causal_load_relaxed(&self->local_delay), grown;

	causal_begin_burst(fake_control, self, KIND, begin);
	causal_end_burst(fake_control, self, begin + us(length_us));
	grown = causal_load_relaxed(&self->local_delay) - before;
	return 100 * (int64_t)grown / (int64_t)us(length_us);
}

static int64_t earned_us_at(struct causal_thread *self, uint32_t at_us)
{
	uint64_t begin = ticks_now(), seen, most;
	int64_t grown;

	causal_begin_burst(fake_control, self, KIND, begin);
	grown = causal_compute_thread_delay_growth(self, begin + us(at_us));
	/* Others see the same, where it is not behind what it was. */
	seen = causal_compute_local_delay_at(self, begin + us(at_us));
	most = causal_load_relaxed(&fake_control->global_delay);
	assert_int_equal(causal_compute_global_delay(fake_control, begin + us(at_us)),
			 seen > most ? seen : most);
	causal_pause_burst(fake_control, self, begin);
	return grown / (int64_t)kymo_causal_rates.ticks_per_us;
}

static void test_short_tasks_are_the_target(void **state)
{
	struct causal_thread *self = taught(true);

	(void)state;
	assert_in_range(earned_percent(self, SHORT_US), 85, 105);
	assert_in_range(earned_percent(self, LONG_US) + 100, 95, 108);
	/* At first it is thought to be what most are; then it is known not to be. */
	assert_in_range(earned_us_at(self, 100), 60, 95);
	assert_in_range(earned_us_at(self, 600) + 100, 85, 140);
	causal_leave_state(self);
}

static void test_long_tasks_are_the_target(void **state)
{
	struct causal_thread *self = taught(false);

	(void)state;
	assert_in_range(earned_percent(self, SHORT_US) + 100, 95, 115);
	assert_in_range(earned_percent(self, LONG_US), 90, 105);
	assert_in_range(earned_us_at(self, 100), 5, 40);
	assert_in_range(earned_us_at(self, 600), 520, 610);
	causal_leave_state(self);
}

/* Whatever is learnt of which, in the end it is what samples have said. */
static void test_nothing_is_earned_twice(void **state)
{
	struct causal_thread *self = taught(true);
	uint64_t spent_us = 400 * (4 * SHORT_US + LONG_US), target_us = 400 * 4 * SHORT_US;
	uint64_t earned_us =
		(causal_load_relaxed(&self->local_delay) - causal_load_relaxed(&self->start)) /
		kymo_causal_rates.ticks_per_us;

	(void)state;
	assert_in_range(earned_us, target_us * 80 / 100, target_us * 110 / 100);
	assert_true(earned_us < spent_us);
	causal_leave_state(self);
}

/* What is learnt of a kind counts for it alone, and for no other experiment. */
static void test_what_is_learnt_is_forgotten(void **state)
{
	struct causal_thread *self = taught(true);

	(void)state;
	fake_experiment(4, 1000);
	causal_sync_with_experiment(fake_control, self);
	assert_int_equal(earned_percent(self, SHORT_US), 0);
	assert_int_equal(earned_us_at(self, 600), 0);
	causal_leave_state(self);
}

static void test_earning_while_running(void **state)
{
	struct causal_thread *self;
	uint64_t begin, grown, ns;

	(void)state;
	fake_experiment(3, 1000);
	kymo_causal_rates.repay_time_ticks =
		causal_ns_to_ticks(1000000 * MS); /* nothing of what is due */
	causal_pay_delay();                       /* a burst begins */
	for (int i = 0; i < 400; i++)
		fake_sample(i % 2 ? 3 : 4, MS);
	self = causal_find_or_make_current_state();
	assert_true(causal_try_enter_state(self));
	begin = ticks_now();
	causal_end_burst(fake_control, self, begin);
	causal_begin_burst(fake_control, self, self->attribution.kind, begin);
	/* So far as it is believed to run without being seen, and no further. */
	grown = causal_ticks_to_ns(
		(uint64_t)causal_compute_thread_delay_growth(self, begin + causal_ns_to_ticks(MS)));
	assert_in_range(grown, 400000, 600000);
	assert_int_equal(causal_compute_global_delay(fake_control, begin + causal_ns_to_ticks(MS)),
			 causal_compute_local_delay_at(self, begin + causal_ns_to_ticks(MS)));
	ns = causal_ticks_to_ns(kymo_causal_rates.running_unseen_max_ticks);
	grown = causal_ticks_to_ns((uint64_t)causal_compute_thread_delay_growth(
		self, begin + causal_ns_to_ticks(100 * MS)));
	assert_in_range(grown, ns * 4 / 10, ns * 6 / 10);
	/* Another kind of burst is another matter. */
	causal_pause_burst(fake_control, self, begin + causal_ns_to_ticks(MS));
	assert_int_equal(
		causal_compute_global_delay(fake_control, ticks_now() + causal_ns_to_ticks(9 * MS)),
		self->local_delay);
	causal_begin_burst(fake_control, self, 12346, begin);
	grown = causal_ticks_to_ns(
		(uint64_t)causal_compute_thread_delay_growth(self, begin + causal_ns_to_ticks(MS)));
	assert_in_range(grown, 400000, 600000); /* nothing is known of it yet */
	for (int i = 0; i < 40; i++)
		burst_add_sample(self, 0, MS, false);
	causal_end_burst(fake_control, self, begin + causal_ns_to_ticks(MS));
	causal_begin_burst(fake_control, self, 12346, begin);
	grown = causal_ticks_to_ns(
		(uint64_t)causal_compute_thread_delay_growth(self, begin + causal_ns_to_ticks(MS)));
	assert_true(grown < 10000);
	causal_leave_state(self);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_begin, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(test_short_tasks_are_the_target), TEST(test_long_tasks_are_the_target),
		TEST(test_nothing_is_earned_twice),    TEST(test_what_is_learnt_is_forgotten),
		TEST(test_earning_while_running),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
