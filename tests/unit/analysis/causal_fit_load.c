/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Predictions from windows that other programs, a hypervisor or queues for processors disturbed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/analysis/causal_fixture.h"

static void load_and_oversubscription(void **state)
{
	struct causal_data data = {0};
	struct causal_data_program_run run = {.processors = 1};
	struct causal_fit_result result;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		add(&data, 0, 0, 20, 5 * MS);
		data.windows[i].involuntary_switches = 20; /* in 0.1 s of CPU time */
	}
	assert_int_equal(causal_data_add_run(&data, &run), 0);
	fit(&data, &result);
	assert_int_equal(result.warning_bits, CAUSAL_WARN_CPUS_OVERSUBSCRIBED);
	data.runs[0].processors = 2;
	causal_fit_result_deinit(&result);
	fit(&data, &result);
	assert_int_equal(result.warning_bits, CAUSAL_WARN_OUTSIDE_LOAD);
	causal_fit_result_deinit(&result);
	/* How many threads there are says more than how much they run. */
	data.runs[0].processors = 1;
	data.windows[3].threads = 1;
	fit(&data, &result);
	assert_int_equal(result.warning_bits, CAUSAL_WARN_OUTSIDE_LOAD);
	causal_fit_result_deinit(&result);
	data.windows[3].threads = 2;
	fit(&data, &result);
	assert_int_equal(result.warning_bits, CAUSAL_WARN_CPUS_OVERSUBSCRIBED);
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
}

/* One of eight windows took five times as long: left out under load from outside, and only then. */
static void disturbed(void **state)
{
	(void)state;
	for (unsigned load = 0; load < 2; load++) {
		struct causal_data_program_run run = {.processors = 4};
		struct causal_data data = {0};
		struct causal_fit_result result;

		assert_int_equal(causal_data_add_run(&data, &run), 0);
		for (unsigned i = 0; i < 8; i++) {
			double usual = (5 + 0.01 * (i * 5 % 8)) * MS * (i % 8 == 3 ? 5 : 1);

			add(&data, 0, 0, 20, usual);
			add(&data, 1, 500, 20, 0.9 * usual);
			add(&data, 1, 1000, 20, 0.8 * usual);
		}
		for (unsigned i = 0; i < 24; i++)
			data.windows[i].involuntary_switches = load * 20;
		fit(&data, &result);
		assert_int_equal(result.warning_bits, load ? CAUSAL_WARN_OUTSIDE_LOAD : 0);
		assert_int_equal(result.disturbed_window_count, load ? 3 : 0);
		near(result.predictions[0].headline_gain_percent, 20, load ? 0.5 : 60);
		assert_int_equal(result.predictions[0].is_supported_by_data, load);
		assert_int_equal(result.predictions[0].speedup_estimates[0].window_count,
				 load ? 7 : 8);
		causal_fit_result_deinit(&result);
		causal_data_deinit(&data);
	}
}

/* A hypervisor took up to a tenth of each window, which is taken off again, and half of two
 * windows, which are left out. Without a count of it, nothing is known of that. */
static void stolen(void **state)
{
	(void)state;
	for (unsigned known = 0; known < 2; known++) {
		struct causal_data data = {0};
		struct causal_fit_result result;
		double width;

		for (unsigned i = 0; i < 40; i++) {
			double off = i == 7 || i == 30 ? 50 * MS : i * 7 % 11 * MS;
			double period = i % 4 == 1 ? 4 * MS : i % 4 == 3 ? 3 * MS : 5 * MS;

			add(&data, i % 2, i % 2 * (i % 4 == 1 ? 500 : 1000), 20, period + off / 20);
			data.windows[i].stolen_ns = known ? (uint64_t)off : 0;
		}
		fit(&data, &result);
		assert_int_equal(result.warning_bits, known ? CAUSAL_WARN_OUTSIDE_LOAD : 0);
		assert_int_equal(result.disturbed_window_count, known ? 2 : 0);
		if (known) {
			near(result.predictions[0].headline_gain_percent, 40, 0.2);
			near(result.predictions[0].speedup_estimates[0].predicted_gain_percent, 20,
			     0.2);
		}
		width = result.predictions[0].headline_gain_high_percent -
			result.predictions[0].headline_gain_low_percent;
		assert_true(known ? width < 2 * OWN + 0.5 : width > 2 * OWN + 2);
		causal_fit_result_deinit(&result);
		causal_data_deinit(&data);
	}
}

/* A program that gets its processor for two thirds of the time, more or less: a function that is
 * half of its CPU time is half of what it needs, not a third. Two threads may have waited at the
 * same time; three, of two processors, have waited for each other. */
static void queued(void **state)
{
	static const double expected[] = {50, 41, 33}, error[] = {0.5, 2, 2};

	(void)state;
	for (unsigned threads = 1; threads <= 3; threads++) {
		struct causal_data_program_run run = {.processors = 2};
		struct causal_data data = {0};
		struct causal_fit_result result;

		assert_int_equal(causal_data_add_run(&data, &run), 0);
		for (unsigned i = 0; i < 40; i++) {
			double off = (40 + i * 7 % 21) * MS;
			double period = i % 2 ? 2.5 * MS : 5 * MS;

			add(&data, i % 2, i % 2 * 1000, 20, period + off / 20);
			data.windows[i].queued_ns = (uint64_t)off;
			data.windows[i].threads = threads;
			/* load, either way */
			data.windows[i].involuntary_switches = threads < 3 ? 20 : 0;
			data.windows[i].stolen_ns = threads < 3 ? 0 : 2 * MS;
		}
		fit(&data, &result);
		assert_int_equal(result.warning_bits, CAUSAL_WARN_OUTSIDE_LOAD);
		near(result.predictions[0].headline_gain_percent, expected[threads - 1],
		     error[threads - 1]);
		causal_fit_result_deinit(&result);
		causal_data_deinit(&data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load_and_oversubscription),
		cmocka_unit_test(disturbed),
		cmocka_unit_test(stolen),
		cmocka_unit_test(queued),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
