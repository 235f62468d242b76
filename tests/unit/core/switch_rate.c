/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * core/process/switch_rate.c: when the events of a thread have become costly, and cheap again.
 */
#include "core/process/switch_rate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/time_units.h"

#define COST_NS 4600u

/* A thread that has used CPU_MS more, in twice the real time, with so many changes of context. */
static enum switch_rate_verdict passes(struct switch_rate *rate, double cpu_ms, uint64_t switches)
{
	struct switch_rate_reading look = rate->last;

	look.cpu_ns += (uint64_t)(cpu_ms * (double)MILLISECOND_NS);
	look.real_ns += (uint64_t)(2 * cpu_ms * (double)MILLISECOND_NS);
	look.switch_count += switches;
	return switch_rate_judge_reading(rate, &look, COST_NS);
}

static void a_first_look_says_nothing(void **state)
{
	struct switch_rate rate = {0};

	(void)state;
	assert_true(switch_rate_reading_is_due(&rate, 0));
	assert_int_equal(passes(&rate, 1000, 900000), SWITCH_RATE_UNCHANGED);
	assert_false(switch_rate_reading_is_due(&rate, rate.last.cpu_ns));
}

static void a_twentieth_is_costly(void **state)
{
	struct switch_rate rate = {0};

	(void)state;
	switch_rate_init_at_thread_start(&rate, 0);
	/* 10 a ms are 4.6 % */
	assert_int_equal(passes(&rate, 10, 100), SWITCH_RATE_UNCHANGED);
	assert_false(rate.is_costly);
	assert_int_equal(passes(&rate, 10, 110), SWITCH_RATE_COSTLY);
	assert_int_equal(rate.costly_switches_per_second, 5500);
	assert_int_equal(passes(&rate, 10, 110), SWITCH_RATE_UNCHANGED);
}

static void all_is_added_up(void **state)
{
	struct switch_rate rate = {0};

	(void)state;
	passes(&rate, 1000, 900000); /* of what was before nothing is known */
	assert_int_equal(rate.switch_cost_ns, 0);
	passes(&rate, 10, 1000);
	assert_true(rate.is_costly);
	assert_int_equal(rate.switch_cost_ns, 1000 * COST_NS);
	passes(&rate, 10, 1000); /* with a timer */
	assert_int_equal(rate.switch_cost_ns, 1000 * COST_NS + 250000);
}

static void little_time_needs_clear_evidence(void **state)
{
	struct switch_rate rate = {0};

	(void)state;
	switch_rate_init_at_thread_start(&rate, 0);
	assert_int_equal(passes(&rate, 0.5, 20), SWITCH_RATE_UNCHANGED); /* 18 % */
	assert_int_equal(rate.last.cpu_ns, 0);                           /* it is seen again */
	assert_int_equal(passes(&rate, 0.5, 40), SWITCH_RATE_COSTLY);    /* 37 % */
}

static void calm_lasts_before_it_counts(void **state)
{
	struct switch_rate rate = {0};

	(void)state;
	switch_rate_init_at_thread_start(&rate, 0);
	assert_int_equal(passes(&rate, 10, 1000), SWITCH_RATE_COSTLY);
	assert_int_equal(passes(&rate, 200, 0), SWITCH_RATE_UNCHANGED);
	assert_int_equal(passes(&rate, 10, 50),
			 SWITCH_RATE_UNCHANGED); /* neither: it begins again */
	assert_int_equal(passes(&rate, 240, 0), SWITCH_RATE_UNCHANGED);
	assert_int_equal(passes(&rate, 20, 0), SWITCH_RATE_CHEAP);
	/* One that was wrong: twice as long. */
	assert_int_equal(passes(&rate, 10, 1000), SWITCH_RATE_COSTLY);
	assert_int_equal(passes(&rate, 300, 0), SWITCH_RATE_UNCHANGED);
	assert_int_equal(passes(&rate, 300, 0), SWITCH_RATE_CHEAP);
}

static void long_periods_cost_less(void **state)
{
	(void)state;
	assert_true(switch_rate_choose_cost_by_period_ns(MILLISECOND_NS, 4 * MILLISECOND_NS) >
		    switch_rate_choose_cost_by_period_ns(10 * MILLISECOND_NS, 4 * MILLISECOND_NS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_first_look_says_nothing),
		cmocka_unit_test(a_twentieth_is_costly),
		cmocka_unit_test(all_is_added_up),
		cmocka_unit_test(little_time_needs_clear_evidence),
		cmocka_unit_test(calm_lasts_before_it_counts),
		cmocka_unit_test(long_periods_cost_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
