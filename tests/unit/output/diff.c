/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Comparisons of runs that are made of random numbers: how often a change is named where there is
 * none, and found where there is one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/splitmix64.h"
#include "output/diff/diff.h"

#define ROWS 40

static uint64_t random_state;

static double draw(void)
{
	return (double)(splitmix64_next(&random_state) >> 11) / 9007199254740992.;
}

/* As of programs: mostly a little noise, and now and then a run that something disturbed. */
static double draw_disturbance(double noise)
{
	double normal = sqrt(-2 * log(1 - draw())) * cos(6.283185307179586 * draw());

	return 1 + noise * fabs(normal) + (draw() < 0.1 ? 10 * noise * draw() : 0);
}

/* Rows of 1 to ROWS ms; `factor`: of row 10 after, `all`: of every row after. */
static void make_runs(struct diff *diff, size_t repeats, double noise, double factor, double all)
{
	diff_init(diff, DIFF_BY_THREAD, VIEW_MEASURE_CPU_TIME);
	for (uint32_t i = 0; i < ROWS; i++) {
		char name[16];
		uint32_t index;

		snprintf(name, sizeof(name), "row %u", i);
		assert_int_equal(strings_find_or_add(&diff->names, name, &index), 0);
	}
	for (size_t run = 0; run < 2 * repeats; run++) {
		struct diff_run *it = &diff->runs[diff->run_count++];
		double disturbance = draw_disturbance(noise);

		it->side = run % 2 ? DIFF_AFTER : DIFF_BEFORE;
		diff->side_count[it->side]++;
		it->values = calloc(ROWS, sizeof(double));
		it->capacity = ROWS;
		for (uint32_t i = 0; i < ROWS; i++) {
			it->values[i] = (i + 1) * 1e6 * disturbance * draw_disturbance(noise);
			if (it->side == DIFF_AFTER)
				it->values[i] *= all * (i == 10 ? factor : 1);
			it->total += it->values[i];
		}
	}
}

struct tally {
	size_t totals, rows, wanted_rows, other_rows;
};

static struct tally repeat(size_t trials, size_t repeats, double noise, double factor, double all)
{
	struct tally tally = {0};

	random_state = 7;
	for (size_t i = 0; i < trials; i++) {
		struct problem problem;
		struct diff diff;
		bool any = false, other = false;

		make_runs(&diff, repeats, noise, factor, all);
		assert_int_equal(diff_judge(&diff, &problem), 0);
		tally.totals += diff.total.verdict != DIFF_UNCHANGED;
		for (size_t k = 0; k < diff.row_count; k++) {
			bool named = diff.rows[k].verdict != DIFF_UNCHANGED;
			bool wanted = strcmp(diff.rows[k].name, "row 10") == 0;

			any |= named;
			other |= named && !wanted;
			tally.wanted_rows += named && wanted;
		}
		tally.rows += any;
		tally.other_rows += other;
		diff_deinit(&diff);
	}
	return tally;
}

static void noise_is_named_in_five_of_hundred_cases_at_most(void **state)
{
	(void)state;
	for (size_t repeats = 1; repeats <= 5; repeats++) {
		struct tally tally = repeat(1000, repeats, 0.01, 1, 1);

		print_message("%zu repeats: total %zu, rows %zu of 1000\n", repeats, tally.totals,
			      tally.rows);
		/* three standard deviations above 50 */
		assert_in_range(tally.totals, 0, 71);
		assert_in_range(tally.rows, 0, 71);
	}
	struct tally many = repeat(60, 12, 0.01, 1, 1);

	assert_in_range(many.totals, 0, 9);
	assert_in_range(many.rows, 0, 9);
}

static void changes_are_found(void **state)
{
	struct tally tally = repeat(500, 5, 0.008, 1, 1.03);

	(void)state;
	print_message("3 %% more of all: %zu of 500\n", tally.totals);
	assert_in_range(tally.totals, 450, 500);
	tally = repeat(500, 5, 0.01, 1.2, 1);
	print_message("20 %% more of a row: %zu of 500, others %zu\n", tally.wanted_rows,
		      tally.other_rows);
	assert_in_range(tally.wanted_rows, 450, 500);
	assert_in_range(tally.other_rows, 0, 50);
	tally = repeat(200, 1, 0.01, 1, 1.5);
	assert_int_equal(tally.totals, 200);
}

/* A machine that becomes slower and faster: neighbours are alike. */
static size_t count_verdicts_under_drift(bool apart, double factor)
{
	size_t named = 0;

	random_state = 11;
	for (size_t trial = 0; trial < 1000; trial++) {
		struct problem problem;
		struct diff diff;
		double drift = 0;

		make_runs(&diff, 5, 0, 1, 1);
		for (size_t i = 0; i < 10; i++) {
			struct diff_run *run = &diff.runs[i];
			double normal =
				sqrt(-2 * log(1 - draw())) * cos(6.283185307179586 * draw());

			drift = 0.7 * drift + 0.71 * normal;
			run->start_ns = i + 1;
			run->side = apart ? i >= 5 : i % 2;
			run->total = 1e9 * (1 + 0.02 * drift) * (run->side ? factor : 1);
		}
		assert_int_equal(diff_judge(&diff, &problem), 0);
		assert_int_equal(diff.are_sides_apart, apart);
		named += diff.total.verdict != DIFF_UNCHANGED;
		diff_deinit(&diff);
	}
	return named;
}

static void a_drift_is_no_change(void **state)
{
	size_t in_turn = count_verdicts_under_drift(false, 1);
	size_t apart = count_verdicts_under_drift(true, 1);
	size_t found = count_verdicts_under_drift(false, 1.03);

	(void)state;
	print_message("drift: in turn %zu, apart %zu of 1000; 3 %% found in %zu\n", in_turn, apart,
		      found);
	assert_in_range(in_turn, 0, 60);
	assert_in_range(apart, 0, 90);
	assert_in_range(found, 700, 1000);
}

static void numbers_are_of_the_faster_runs(void **state)
{
	static const double totals[] = {100, 110, 104, 90, 300, 500, 102, 112, 101, 111};
	struct problem problem;
	struct diff diff;

	(void)state;
	make_runs(&diff, 5, 0, 1, 1);
	for (size_t i = 0; i < 10; i++)
		diff.runs[i].total = totals[i];
	assert_int_equal(diff_judge(&diff, &problem), 0);
	assert_true(fabs(diff.total.before - 101) < 1e-6); /* 100, 102, 101 */
	assert_true(fabs(diff.total.after - (90 + 110 + 111) / 3.) < 1e-6);
	diff_deinit(&diff);
}

static void expect_condition(const char *text, const char *name, double limit, bool relative,
			     bool below)
{
	struct diff_condition condition;
	struct problem problem;

	assert_int_equal(diff_condition_parse(text, &condition, &problem), 0);
	assert_string_equal(condition.name, name);
	assert_true(fabs(condition.limit - limit) < 1e-6);
	assert_int_equal(condition.is_relative, relative);
	assert_int_equal(condition.is_below, below);
}

static void conditions_name_rows_and_limits(void **state)
{
	static const char *const wrong[] = {"",        "total",     "total>",    ">3%",
					    "total>3", "a>b%",      "total>3%%", "total>3 x",
					    "  >1%",   "total>nan%"};
	struct diff_condition condition;
	struct problem problem;

	(void)state;
	expect_condition("total>+3%", "total", 0.03, true, false);
	expect_condition(" total >= 3 %", "total", 0.03, true, false);
	expect_condition("any<-10%", "any", -0.1, true, true);
	expect_condition("vector<int>::push_back>+5ms", "vector<int>::push_back", 5e6, false,
			 false);
	expect_condition("total>0", "total", 0, false, false);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(diff_condition_parse(wrong[i], &condition, &problem), -EINVAL);
}

static void conditions_ask_for_more_than_noise(void **state)
{
	struct problem problem;
	struct diff_condition condition;
	struct diff diff;
	char text[256];

	(void)state;
	random_state = 3;
	make_runs(&diff, 5, 0.001, 1, 1.1);
	assert_int_equal(diff_judge(&diff, &problem), 0);
	assert_int_equal(diff_condition_parse("total>+3%", &condition, &problem), 0);
	assert_int_equal(diff_condition_check(&condition, &diff, text, sizeof(text), &problem), 1);
	assert_non_null(strstr(text, "'total'"));
	assert_int_equal(diff_condition_parse("row 3>+5%", &condition, &problem), 0);
	assert_int_equal(diff_condition_check(&condition, &diff, text, sizeof(text), &problem), 1);
	assert_int_equal(diff_condition_parse("any>+30%", &condition, &problem), 0);
	assert_int_equal(diff_condition_check(&condition, &diff, text, sizeof(text), &problem), 0);
	assert_int_equal(diff_condition_parse("row>+5%", &condition, &problem), 0);
	assert_int_equal(diff_condition_check(&condition, &diff, text, sizeof(text), &problem),
			 -EINVAL);
	diff_deinit(&diff);
	make_runs(&diff, 5, 0.2, 1, 1.04);
	assert_int_equal(diff_judge(&diff, &problem), 0);
	assert_int_equal(diff_condition_parse("any>0", &condition, &problem), 0);
	assert_int_equal(diff_condition_check(&condition, &diff, text, sizeof(text), &problem), 0);
	diff_deinit(&diff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(noise_is_named_in_five_of_hundred_cases_at_most),
		cmocka_unit_test(changes_are_found),
		cmocka_unit_test(a_drift_is_no_change),
		cmocka_unit_test(numbers_are_of_the_faster_runs),
		cmocka_unit_test(conditions_name_rows_and_limits),
		cmocka_unit_test(conditions_ask_for_more_than_noise),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
