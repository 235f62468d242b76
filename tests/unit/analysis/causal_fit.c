/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Predictions from windows whose answer is plain, and the reasons for saying nothing. How often
 * intervals are right is causal_simulation.c's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit/analysis/causal_fixture.h"

/* Target 1 is 40 % of each period. */
static void exact(void **state)
{
	struct causal_data data = {0};
	struct causal_fit_result result;
	const struct causal_prediction *prediction;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		add(&data, 0, 0, 20, 5 * MS);
		add(&data, 1, 500, 20, 5 * MS * 0.8);
		add(&data, 1, 250, 20, 5 * MS * 0.9);
		add(&data, 1, 1000, 20, 5 * MS * 0.6);
	}
	fit(&data, &result);
	assert_int_equal(result.prediction_count, 1);
	assert_int_equal(result.baseline_window_count, 6);
	assert_int_equal(result.warning_bits, 0);
	prediction = &result.predictions[0];
	assert_true(prediction->is_supported_by_data);
	assert_int_equal(prediction->warning_bits, 0);
	assert_int_equal(prediction->speedup_estimate_count, 3);
	near(prediction->baseline_period_or_latency_ns, 5 * MS, 1);
	near(prediction->speedup_estimates[0].speedup_percent, 25, 0);
	near(prediction->speedup_estimates[0].predicted_gain_percent, 10, 1e-6);
	near(prediction->speedup_estimates[2].predicted_gain_percent, 40, 1e-6);
	near(prediction->speedup_estimates[2].gain_interval_high_percent, 40 + OWN, 1e-3);
	assert_int_equal(prediction->speedup_estimates[1].window_count, 6);
	assert_int_equal(prediction->speedup_estimates[1].visit_count, 120);
	near(prediction->headline_gain_percent, 40, 0.1);
	near(prediction->gain_per_speedup_slope, 0.4, 1e-6);
	near(prediction->self_share, 0.3, 1e-9);
	near(prediction->total_share, 0.4, 1e-9);
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
}

/* A curve may bend right behind what was tried: here it gains nothing more from 50 % on. */
static void nothing_is_said_beyond_what_was_tried(void **state)
{
	struct causal_data data = {0};
	struct causal_fit_result result;
	const struct causal_prediction *prediction;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		add(&data, 0, 0, 20, 5 * MS);
		add(&data, 1, 250, 20, 5 * MS * 0.75);
		add(&data, 1, 500, 20, 5 * MS * 0.5);
		add(&data, 2, 500, 20, 5 * MS * 0.9);
		add(&data, 2, 1000, 20, 5 * MS * 0.8);
	}
	/* one window is no measurement of its speedup */
	add(&data, 1, 1000, 20, 5 * MS * 0.1);
	fit(&data, &result);
	assert_int_equal(result.prediction_count, 2);
	prediction = &result.predictions[0];
	assert_int_equal(prediction->target, 1);
	near(prediction->headline_speedup_percent, 50, 1e-9);
	near(prediction->headline_gain_percent, 50, 0.2);
	near(prediction->headline_gain_high_percent, 50 + OWN / 2, 0.3);
	near(result.predictions[1].headline_speedup_percent, 100, 1e-9);
	near(result.predictions[1].headline_gain_percent, 20, 0.2);
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
}

static void harm_keeps_its_sign(void **state)
{
	struct causal_data data = {0};
	struct causal_fit_result result;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		add(&data, 0, 0, 20, 5 * MS);
		add(&data, 1, 500, 20, 5.5 * MS);
	}
	fit(&data, &result);
	near(result.predictions[0].speedup_estimates[0].predicted_gain_percent, -10, 1e-6);
	assert_true(result.predictions[0].headline_gain_high_percent < 0);
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
}

/* Windows of 20 visits of 5 ms without a speedup, with so much CPU time of a target each. */
static void add_with_work(struct causal_data *data, uint32_t target, double period_ns,
			  uint64_t cpu_ns)
{
	struct causal_data_window_visits seen = {0, UINT32_MAX, 20, 0, (int64_t)(20 * period_ns),
						 0};
	struct causal_data_target_time_row time = {target ? target : 1, cpu_ns, cpu_ns};
	struct causal_data_window window = window_of(target, target ? 500 : 0, &seen);

	window.times = &time;
	window.time_count = 1;
	assert_int_equal(causal_data_add_window(data, &window), 0);
}

/* A loss in windows that take twice the CPU time a visit is no loss of the target's. */
static void losses_with_more_work_are_not_ranked(void **state)
{
	struct causal_data data = {0};
	struct causal_fit_result result;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		add_with_work(&data, 0, 5 * MS, (50 + i) * MS);
		add_with_work(&data, 1, 7 * MS, (100 + i) * MS);
		add_with_work(&data, 2, 7 * MS, (50 + i) * MS);
		add_with_work(&data, 3, 4 * MS, (100 + i) * MS);
	}
	fit(&data, &result);
	assert_int_equal(result.prediction_count, 3);
	for (size_t i = 0; i < 3; i++) {
		bool disturbed = result.predictions[i].target == 1;

		assert_int_equal(result.predictions[i].is_supported_by_data, !disturbed);
		assert_int_equal(result.predictions[i].warning_bits & CAUSAL_WARN_EXTRA_WORK,
				 disturbed ? CAUSAL_WARN_EXTRA_WORK : 0);
	}
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
}

/* Windows of few visits count less than those of many. */
static void ratio_of_sums(void **state)
{
	struct causal_data data = {0};
	struct causal_fit_result result;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		add(&data, 0, 0, 10, 10 * MS);
		add(&data, 1, 500, i % 2 ? 90 : 10, i % 2 ? 8 * MS : 2 * MS);
	}
	fit(&data, &result);
	near(result.predictions[0].speedup_estimates[0].predicted_gain_percent,
	     100 * (1 - 7.4 / 10), 1e-6);
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
}

/* Ten visits of so much work (of target 1 and of the rest) in each window, of which the target's is
 * paused for: more of it in the last group than usual. The gain is that of the usual work. */
static void add_work(struct causal_data *data, uint32_t speedup, double target_ns, double other_ns)
{
	struct causal_data_window_visits seen = {0, UINT32_MAX, 10, 0, 0, 0};
	struct causal_data_target_time_row times[2] = {
		{1, (uint64_t)(10 * target_ns), (uint64_t)(10 * target_ns)},
		{2, (uint64_t)(10 * other_ns), (uint64_t)(10 * other_ns)}};
	struct causal_data_window window = window_of(speedup ? 1 : 0, speedup, &seen);

	seen.intervals_virtual_ns = (int64_t)(10 * (other_ns + target_ns * (1 - speedup / 1000.0)));
	window.times = times;
	window.time_count = 2;
	assert_int_equal(causal_data_add_window(data, &window), 0);
}

static void work_by_chance(void **state)
{
	static const double targets[] = {4, 8, 5, 7}; /* usual: 6 of 12 */
	struct causal_data data = {0};
	struct causal_fit_result result;

	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		double clock = 1 + i % 4 * 0.1;

		add_work(&data, 0, targets[i % 4] * MS * clock, 6 * MS * clock);
		add_work(&data, 500, targets[i % 4] * MS / clock, 6 * MS / clock);
		/* some of the windows with more of the target, and none of those with less */
		if (i % 2)
			add_work(&data, 1000, (targets[i % 4] + i / 8) * MS, 6 * MS);
	}
	fit(&data, &result);
	near(result.predictions[0].speedup_estimates[0].predicted_gain_percent, 25, 1);
	near(result.predictions[0].speedup_estimates[1].predicted_gain_percent, 50, 2);
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
}

/* Target 1 gains more at some times than at others: half as much again as usual, or half of it. */
static double half_interval(bool (*more)(unsigned i))
{
	struct causal_data data = {0};
	struct causal_fit_result result;
	double half;

	for (unsigned i = 0; i < 24; i++) {
		double gain = more(i) ? 0.6 : 0.2;

		add(&data, 0, 0, 20, 5 * MS);
		add(&data, 1, 500, 20, 5 * MS * (1 - gain / 2));
		add(&data, 1, 1000, 20, 5 * MS * (1 - gain));
	}
	fit(&data, &result);
	near(result.predictions[0].headline_gain_percent, 40, 1);
	half = result.predictions[0].headline_gain_percent -
	       result.predictions[0].headline_gain_low_percent;
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
	return half;
}

static bool in_turns(unsigned i)
{
	return i % 2;
}

static bool once_for_long(unsigned i)
{
	return i >= 6 && i < 18;
}

static void gains_that_change(void **state)
{
	double quickly = half_interval(in_turns), slowly = half_interval(once_for_long);

	(void)state;
	if (!(slowly > 2 * quickly))
		fail_msg("+-%g where gains change slowly, +-%g where quickly", slowly, quickly);
}

static void latency(void **state)
{
	struct causal_data data = {0};
	struct causal_fit_result result;

	(void)state;
	for (unsigned i = 0; i < 12; i++) {
		struct causal_data_window_visits seen = {
			4, 5, 50, 50, 100 * MS, (int64_t)50 * (i % 2 ? 3 * MS : 4 * MS)};
		struct causal_data_window window = window_of(i % 2, i % 2 ? 1000 : 0, &seen);

		assert_int_equal(causal_data_add_window(&data, &window), 0);
	}
	fit(&data, &result);
	assert_int_equal(result.prediction_count, 1);
	assert_int_equal(result.predictions[0].point, 4);
	assert_int_equal(result.predictions[0].end_point, 5);
	near(result.predictions[0].baseline_period_or_latency_ns, 4 * MS, 1e-3);
	near(result.predictions[0].speedup_estimates[0].predicted_gain_percent, 25, 1e-6);
	assert_int_equal(result.predictions[0].warning_bits, CAUSAL_WARN_NO_TARGET_SAMPLES);
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
}

/* A program that gets slower all the time, tried in an order that would deceive a plain mean. */
static void drift_is_followed(void **state)
{
	struct causal_data data = {0};
	struct causal_fit_result result;

	(void)state;
	for (unsigned i = 0; i < 80; i++) {
		double period = 5 * MS * (1 + i / 80.0);

		add(&data, 0, 0, 20, period);
		add(&data, 1, i < 40 ? 250 : 500, 20, period * (i < 40 ? 0.9 : 0.8));
	}
	fit(&data, &result);
	assert_int_equal(result.predictions[0].warning_bits, CAUSAL_WARN_BASELINE_DRIFT);
	assert_int_equal(result.warning_bits, CAUSAL_WARN_BASELINE_DRIFT);
	assert_true(result.predictions[0].is_supported_by_data);
	near(result.predictions[0].speedup_estimates[0].predicted_gain_percent, 10, 1);
	near(result.predictions[0].speedup_estimates[1].predicted_gain_percent, 20, 1);
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
}

/* Runs whose baselines differ (placement in memory): each is compared with its own. */
static void runs_are_compared_with_themselves(void **state)
{
	struct causal_data data = {0};
	struct causal_fit_result result;

	(void)state;
	for (unsigned i = 0; i < 60; i++) {
		uint32_t run = i / 20;
		double period = 5 * MS * (1 + 0.5 * run);

		current_run = run;
		add(&data, 0, 0, 20, period);
		add(&data, 1, 500, 20, period * 0.8);
	}
	current_run = 0;
	fit(&data, &result);
	near(result.predictions[0].speedup_estimates[0].predicted_gain_percent, 20, 0.01);
	near(result.predictions[0].speedup_estimates[0].gain_interval_high_percent, 20 + OWN / 2,
	     0.1);
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
}

/* Each run one window, of one "visit": the duration of the process. */
static void end_to_end(void **state)
{
	struct causal_data data = {0};
	struct causal_fit_result result;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		struct causal_data_program_run run = {.number = i, .end_to_end = true};

		assert_int_equal(causal_data_add_run(&data, &run), 0);
		current_run = i;
		add(&data, i % 2, i % 2 ? 500 : 0, 1, (i % 2 ? 900 : 1000) * MS + i % 3 * MS);
		data.windows[i].end = CAUSAL_WINDOW_ENDED_BY_PROGRAM_EXIT;
	}
	current_run = 0;
	fit(&data, &result);
	assert_int_equal(result.predictions[0].warning_bits, 0);
	near(result.predictions[0].speedup_estimates[0].predicted_gain_percent, 10, 0.2);
	assert_true(result.predictions[0].is_supported_by_data);
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
}

/* ---- what cannot be said ---- */

static uint32_t warnings_after(struct causal_data *data, bool expect_ranked)
{
	struct causal_fit_result result;
	uint32_t warnings;

	fit(data, &result);
	assert_int_equal(result.prediction_count, 1);
	warnings = result.predictions[0].warning_bits;
	assert_int_equal(result.predictions[0].is_supported_by_data, expect_ranked);
	causal_fit_result_deinit(&result);
	causal_data_deinit(data);
	return warnings;
}

static void few_windows(void **state)
{
	struct causal_data data = {0};

	(void)state;
	add(&data, 0, 0, 20, 5 * MS);
	add(&data, 0, 0, 20, 5 * MS);
	add(&data, 0, 0, 20, 5 * MS);
	add(&data, 1, 500, 20, 4 * MS);
	assert_int_equal(warnings_after(&data, false), CAUSAL_WARN_FEW_WINDOWS);
}

static void no_baseline(void **state)
{
	struct causal_data data = {0};

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		add(&data, 1, 500, 20, 5 * MS);
	assert_int_equal(warnings_after(&data, false), CAUSAL_WARN_FEW_WINDOWS);
}

static void few_visits(void **state)
{
	struct causal_data data = {0};

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		add(&data, 0, 0, 20, 5 * MS);
		add(&data, 1, 500, 4, 4 * MS);
	}
	assert_int_equal(warnings_after(&data, true), CAUSAL_WARN_FEW_VISITS);
}

static void wide(void **state)
{
	struct causal_data data = {0};

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		add(&data, 0, 0, 20, i % 2 ? 2 * MS : 8 * MS);
		add(&data, 1, 500, 20, i % 3 ? 2 * MS : 9 * MS);
	}
	assert_int_equal(warnings_after(&data, false), CAUSAL_WARN_WIDE_INTERVALS);
}

static void no_samples(void **state)
{
	struct causal_data data = {0};

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		add(&data, 0, 0, 20, 5 * MS);
		add(&data, 2, 1000, 20, 5 * MS);
	}
	assert_int_equal(warnings_after(&data, false), CAUSAL_WARN_NO_TARGET_SAMPLES);
}

/* Another target's windows saw visits, this one's did not. */
static void no_visits(void **state)
{
	struct causal_data data = {0};
	struct causal_fit_result result;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		add(&data, 0, 0, 20, 5 * MS);
		add(&data, 1, 500, 20, 4 * MS);
		add(&data, 2, 500, 0, 5 * MS);
	}
	fit(&data, &result);
	assert_int_equal(result.prediction_count, 2);
	assert_int_equal(result.predictions[1].target, 2);
	assert_int_equal(result.predictions[1].warning_bits,
			 CAUSAL_WARN_NO_VISITS | CAUSAL_WARN_NO_TARGET_SAMPLES);
	assert_false(result.predictions[1].is_supported_by_data);
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
}

static void nothing(void **state)
{
	struct causal_data data = {0};
	struct causal_fit_result result;

	(void)state;
	fit(&data, &result);
	assert_int_equal(result.prediction_count, 0);
	assert_int_equal(result.warning_bits, CAUSAL_WARN_NO_VISITS | CAUSAL_WARN_FEW_WINDOWS);
	causal_fit_result_deinit(&result);
	add(&data, 1, 500, 0, 5 * MS);
	fit(&data, &result);
	assert_int_equal(result.prediction_count, 0);
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
}

/* ---- the rest ---- */

/* Windows of wild values give numbers or nothing, and always the same ones. */
static void any_values(void **state)
{
	uint64_t random = 5;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		struct causal_data data = {0};
		struct causal_fit_result first, second;

		for (unsigned i = 0; i < fit_draw_random_u64(&random) % 60; i++)
			add(&data, (uint32_t)(fit_draw_random_u64(&random) % 4),
			    (uint32_t)(fit_draw_random_u64(&random) % 5 * 250),
			    fit_draw_random_u64(&random) % 3 ? fit_draw_random_u64(&random) % 100
							     : fit_draw_random_u64(&random) >> 40,
			    (double)(fit_draw_random_u64(&random) >>
				     (20 + fit_draw_random_u64(&random) % 40)));
		fit(&data, &first);
		fit(&data, &second);
		assert_int_equal(first.prediction_count, second.prediction_count);
		for (size_t i = 0; i < first.prediction_count; i++) {
			const struct causal_prediction *prediction = &first.predictions[i];

			assert_true(isfinite(prediction->headline_gain_percent));
			assert_true(isfinite(prediction->headline_gain_high_percent));
			assert_true(isfinite(prediction->slope_interval_high));
			assert_true(prediction->headline_gain_low_percent ==
				    second.predictions[i].headline_gain_low_percent);
			for (size_t j = 0; j < prediction->speedup_estimate_count; j++)
				assert_true(isfinite(prediction->speedup_estimates[j]
							     .gain_interval_high_percent));
		}
		causal_fit_result_deinit(&first);
		causal_fit_result_deinit(&second);
		causal_data_deinit(&data);
	}
}

/* Tables of Student's distribution. */
static void student(void **state)
{
	(void)state;
	near(fit_compute_student_quantile(0.95, 1), 12.706, 1e-3);
	near(fit_compute_student_quantile(0.95, 2), 4.303, 2e-3);
	near(fit_compute_student_quantile(0.95, 3), 3.182, 2e-3);
	near(fit_compute_student_quantile(0.95, 5), 2.571, 1e-3);
	near(fit_compute_student_quantile(0.99, 10), 3.169, 1e-3);
	near(fit_compute_student_quantile(0.9, 30), 1.697, 1e-3);
	near(fit_compute_student_quantile(0.5, 8), 0.706, 1e-3);
	near(fit_compute_student_quantile(0.95, 1e6), 1.960, 1e-3);
}

/* As many windows as a quarter of an hour gives; the time is printed, not judged. */
static void size(void **state)
{
	struct causal_fit_options options = {.seed = 1};
	struct causal_data data = {0};
	struct causal_fit_result result;
	uint64_t random = 1;
	clock_t begin;

	(void)state;
	for (unsigned i = 0; i < 5000; i++)
		add(&data, i % 4 == 0 ? 0 : (uint32_t)(fit_draw_random_u64(&random) % 20 + 1),
		    (uint32_t)(i % 4 == 0 ? 0 : 250 * (1 + fit_draw_random_u64(&random) % 4)), 20,
		    5e6 * (1 + 1e-3 * (double)(fit_draw_random_u64(&random) % 100)));
	begin = clock();
	assert_int_equal(causal_compute_predictions(&data, &options, &result), 0);
	print_message("5000 windows: %.2f s\n", (double)(clock() - begin) / CLOCKS_PER_SEC);
	assert_int_equal(result.prediction_count, 20);
	causal_fit_result_deinit(&result);
	causal_data_deinit(&data);
}

static void texts(void **state)
{
	(void)state;
	for (unsigned bit = 1; bit <= CAUSAL_WARN_EXTRA_WORK; bit *= 2)
		assert_string_not_equal(causal_warning_get_text((enum causal_warning_bit)bit),
					"unknown");
	assert_string_equal(
		causal_warning_get_text((enum causal_warning_bit)(2 * CAUSAL_WARN_EXTRA_WORK)),
		"unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact),
		cmocka_unit_test(nothing_is_said_beyond_what_was_tried),
		cmocka_unit_test(harm_keeps_its_sign),
		cmocka_unit_test(losses_with_more_work_are_not_ranked),
		cmocka_unit_test(ratio_of_sums),
		cmocka_unit_test(work_by_chance),
		cmocka_unit_test(gains_that_change),
		cmocka_unit_test(latency),
		cmocka_unit_test(drift_is_followed),
		cmocka_unit_test(runs_are_compared_with_themselves),
		cmocka_unit_test(end_to_end),
		cmocka_unit_test(few_windows),
		cmocka_unit_test(no_baseline),
		cmocka_unit_test(few_visits),
		cmocka_unit_test(wide),
		cmocka_unit_test(no_samples),
		cmocka_unit_test(no_visits),
		cmocka_unit_test(nothing),
		cmocka_unit_test(any_values),
		cmocka_unit_test(student),
		cmocka_unit_test(size),
		cmocka_unit_test(texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
