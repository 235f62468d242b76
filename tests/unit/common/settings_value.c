/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What each type of setting takes and refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/array.h"
#include "common/settings_check.h"

static void booleans(void **state)
{
	static const char *const on[] = {"on", "ON", "true", "Yes", "1", "t", "y", " on "};
	static const char *const off[] = {"off", "False", "no", "0", "f", "n"};
	static const char *const neither[] = {"2", "onn", "o", "maybe", "-1"};
	bool value;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(on); i++) {
		value = false;
		assert_int_equal(setting_parse_bool(setting_slice_from_text(on[i]), &value),
				 SETTING_VALID);
		assert_true(value);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(off); i++) {
		value = true;
		assert_int_equal(setting_parse_bool(setting_slice_from_text(off[i]), &value),
				 SETTING_VALID);
		assert_false(value);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(neither); i++)
		assert_int_equal(setting_parse_bool(setting_slice_from_text(neither[i]), &value),
				 SETTING_MALFORMED);
	assert_int_equal(setting_parse_bool(setting_slice_from_text(" "), &value), SETTING_EMPTY);
}

static void integers(void **state)
{
	int64_t value = 77;

	(void)state;
	assert_int_equal(
		setting_parse_integer(setting_slice_from_text("9223372036854775807"), &value), 0);
	assert_true(value == INT64_MAX);
	assert_int_equal(setting_parse_integer(setting_slice_from_text(" -12 "), &value), 0);
	assert_int_equal(value, -12);
	assert_int_equal(
		setting_parse_integer(setting_slice_from_text("9223372036854775808"), &value),
		SETTING_TOO_LARGE);
	assert_int_equal(
		setting_parse_integer(setting_slice_from_text("99999999999999999999"), &value),
		SETTING_TOO_LARGE);
	assert_int_equal(setting_parse_integer(setting_slice_from_text("1.5"), &value),
			 SETTING_MALFORMED);
	assert_int_equal(setting_parse_integer(setting_slice_from_text("-"), &value),
			 SETTING_MALFORMED);
	assert_int_equal(setting_parse_integer(setting_slice_from_text(""), &value), SETTING_EMPTY);
	assert_int_equal(value, -12); /* untouched by errors */
}

static void numbers(void **state)
{
	static const struct {
		const char *text;
		double value;
	} good[] = {
		{"0.1", 0.1},   {"1e3", 1000},   {"-2.50", -2.5}, {".5", 0.5},
		{"5.", 5},      {"1E-3", 0.001}, {"300", 300},    {"0.3333333333333333", 1. / 3},
		{"1e22", 1e22}, {"+7", 7}};
	static const char *const bad[] = {"",     ".",   "e5",  "1e",  "1,5",
					  "0x10", "nan", "inf", "1 2", "1e9999"};
	double value;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(
			setting_parse_number(setting_slice_from_text(good[i].text), &value), 0);
		assert_true(value == good[i].value);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_not_equal(setting_parse_number(setting_slice_from_text(bad[i]), &value),
				     0);
}

static void sizes(void **state)
{
	uint64_t value;

	(void)state;
	assert_int_equal(setting_parse_size(setting_slice_from_text("64M"), &value), 0);
	assert_true(value == UINT64_C(64) << 20);
	assert_int_equal(setting_parse_size(setting_slice_from_text("1.5 KiB"), &value), 0);
	assert_true(value == 1536);
	assert_int_equal(setting_parse_size(setting_slice_from_text("2tb"), &value), 0);
	assert_true(value == UINT64_C(2) << 40);
	assert_int_equal(setting_parse_size(setting_slice_from_text("12b"), &value), 0);
	assert_true(value == 12);
	assert_int_equal(setting_parse_size(setting_slice_from_text("1X"), &value),
			 SETTING_BAD_UNIT);
	assert_int_equal(setting_parse_size(setting_slice_from_text("1KK"), &value),
			 SETTING_BAD_UNIT);
	assert_int_equal(setting_parse_size(setting_slice_from_text("-1"), &value),
			 SETTING_TOO_SMALL);
	assert_int_equal(setting_parse_size(setting_slice_from_text("1e30"), &value),
			 SETTING_TOO_LARGE);
}

static void durations(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {{"1.5", 1500000000},  {"200ms", 200000000},  {"3 us", 3000}, {"7ns", 7},
		    {"2m", 120000000000}, {"1h", 3600000000000}, {"0", 0},       {"0.000000001", 1},
		    {"90s", 90000000000}};
	int64_t value;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(
			setting_parse_duration(setting_slice_from_text(good[i].text), &value), 0);
		assert_true(value == good[i].ns);
	}
	assert_int_equal(setting_parse_duration(setting_slice_from_text("1d"), &value),
			 SETTING_BAD_UNIT);
	assert_int_equal(setting_parse_duration(setting_slice_from_text("1e18"), &value),
			 SETTING_TOO_LARGE);
	assert_int_equal(setting_parse_duration(setting_slice_from_text("s"), &value),
			 SETTING_MALFORMED);
}

struct ranges {
	uint64_t first[8], last[8];
	unsigned count;
};

static void collect(uint64_t first, uint64_t last, void *context)
{
	struct ranges *ranges = context;

	ranges->first[ranges->count] = first;
	ranges->last[ranges->count++] = last;
}

static void thread_lists(void **state)
{
	struct ranges ranges = {.count = 0};

	(void)state;
	assert_int_equal(
		setting_for_each_tid_range(setting_slice_from_text("0-3,7 12"), collect, &ranges),
		0);
	assert_int_equal(ranges.count, 3);
	assert_int_equal(ranges.first[0], 0);
	assert_int_equal(ranges.last[0], 3);
	assert_int_equal(ranges.first[1], 7);
	assert_int_equal(ranges.last[2], 12);
	assert_int_equal(setting_for_each_tid_range(setting_slice_from_text(""), NULL, NULL), 0);
	assert_int_equal(setting_for_each_tid_range(setting_slice_from_text("3-1"), NULL, NULL),
			 SETTING_MALFORMED);
	assert_int_equal(setting_for_each_tid_range(setting_slice_from_text("a"), NULL, NULL),
			 SETTING_MALFORMED);
	assert_int_equal(setting_for_each_tid_range(setting_slice_from_text("1-"), NULL, NULL),
			 SETTING_MALFORMED);
}

static void choices(void **state)
{
	unsigned index = 99;

	(void)state;
	assert_int_equal(
		setting_parse_choice(setting_slice_from_text("PERF"), "auto,perf,timer", &index),
		0);
	assert_int_equal(index, 1);
	assert_int_equal(
		setting_parse_choice(setting_slice_from_text("yes"), "auto,on,off", &index), 0);
	assert_int_equal(index, 1);
	assert_int_equal(
		setting_parse_choice(setting_slice_from_text("per"), "auto,perf,timer", &index),
		SETTING_NOT_CHOICE);
}

static void expect_period(const char *text, enum setting_clock clock, int64_t delay,
			  int64_t duration, uint64_t cycles)
{
	static const struct setting_collection_period_value defaults = {SETTING_CLOCK_BOOTTIME, 0,
									0, 1};
	struct setting_collection_period_value period;

	assert_int_equal(setting_parse_period(setting_slice_from_text(text), &defaults, &period),
			 0);
	assert_int_equal(period.clock, clock);
	assert_true(period.delay_ns == delay && period.duration_ns == duration);
	assert_true(period.cycles == cycles);
}

static void windows(void **state)
{
	static const int64_t s = 1000000000;
	static const char *const bad[] = {"x",      "realtime",  "1:2:3:4",      "1:2:3:4:5",
					  ":1",     "realtime:", "1:-2",         "-1",
					  "1:2:-3", "1:2:1.5",   "wallclock:1:2"};
	static const struct setting_collection_period_value defaults = {.cycles = 1};
	struct setting_collection_period_value period;

	(void)state;
	expect_period("realtime:10:1:5", SETTING_CLOCK_REALTIME, 10 * s, s, 5);
	expect_period("process_cputime:10:2:20", SETTING_CLOCK_PROCESS_CPUTIME, 10 * s, 2 * s, 20);
	expect_period("10:1:3", SETTING_CLOCK_BOOTTIME, 10 * s, s, 3);
	expect_period("10", SETTING_CLOCK_BOOTTIME, 10 * s, 0, 1);
	expect_period("CLOCK_MONOTONIC:5", SETTING_CLOCK_MONOTONIC, 5 * s, 0, 1);
	expect_period("CLOCK_PROCESS_CPUTIME_ID:0:1", SETTING_CLOCK_PROCESS_CPUTIME, 0, s, 1);
	/* As the peer's code reads them: the clock at the end. */
	expect_period("10:1:3:cputime", SETTING_CLOCK_PROCESS_CPUTIME, 10 * s, s, 3);
	expect_period("10:1:realtime", SETTING_CLOCK_REALTIME, 10 * s, s, 1);
	expect_period("200ms:50ms:0", SETTING_CLOCK_BOOTTIME, s / 5, s / 20, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_not_equal(
			setting_parse_period(setting_slice_from_text(bad[i]), &defaults, &period),
			0);
}

/* The peer joins several specs with commas, which its own parser does not split; all separators
 * count here. */
static void window_lists(void **state)
{
	static const struct setting_collection_period_value defaults = {.cycles = 1};
	struct text_slice rest = setting_slice_from_text("1:2,3:4;5:6 7:8\n9:10"), spec;
	struct setting_collection_period_value period;
	enum setting_error_kind error;
	unsigned count = 0;

	(void)state;
	while (setting_parse_next_period(&rest, &defaults, &spec, &period, &error)) {
		assert_int_equal(error, SETTING_VALID);
		count++;
		assert_true(period.delay_ns == (int64_t)(2 * count - 1) * 1000000000);
	}
	assert_int_equal(count, 5);
}

/* kymo causal has options of its own for what other commands call the same (--duration); it takes
 * no settings of these kinds, and no other command takes its. */
static bool never_meet(const struct setting *one, const struct setting *other)
{
	static const char *const others[] = {"windows", "sampling", "regions", "wrappers",
					     "instrument"};
	const struct setting *not_causal = strcmp(one->category, "causal") ? one : other;

	if (!strcmp(one->category, "causal") == !strcmp(other->category, "causal"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		if (!strcmp(not_causal->category, others[i]))
			return true;
	}
	return false;
}

/* Names are unique, defaults are valid, options and letters do not collide. */
static void the_table(void **state)
{
	struct text_slice culprit;

	(void)state;
	for (unsigned i = 0; i < SETTING_COUNT; i++) {
		const struct setting *setting = &settings_table[i];

		assert_non_null(setting->name);
		assert_true(setting->help && *setting->help);
		assert_int_equal(setting->help[strlen(setting->help) - 1], '.');
		assert_int_equal(
			setting_check_value_text(setting, setting->default_value, &culprit), 0);
		for (unsigned j = 0; j < i; j++) {
			assert_string_not_equal(setting->name, settings_table[j].name);
			if (setting->short_option)
				assert_int_not_equal(setting->short_option,
						     settings_table[j].short_option);
			if (setting->long_option && settings_table[j].long_option &&
			    !never_meet(setting, &settings_table[j]))
				assert_string_not_equal(setting->long_option,
							settings_table[j].long_option);
		}
	}
}

static void ranges_of_settings(void **state)
{
	const struct setting *freq = &settings_table[SETTING_SAMPLING_FREQ];
	struct text_slice culprit;

	(void)state;
	assert_int_equal(setting_check_value_text(freq, "10000", &culprit), 0);
	assert_int_equal(setting_check_value_text(freq, "10001", &culprit), SETTING_TOO_LARGE);
	assert_int_equal(setting_check_value_text(freq, "0", &culprit), SETTING_TOO_SMALL);
	assert_int_equal(setting_check_value_text(freq, "-5", &culprit), SETTING_TOO_SMALL);
	assert_int_equal(setting_check_value_text(freq, "", &culprit), SETTING_EMPTY);
	assert_int_equal(setting_check_value_text(&settings_table[SETTING_OUTPUT_FORMATS],
						  "text,jsn", &culprit),
			 SETTING_NOT_CHOICE);
	assert_int_equal(culprit.length, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(booleans),
		cmocka_unit_test(integers),
		cmocka_unit_test(numbers),
		cmocka_unit_test(sizes),
		cmocka_unit_test(durations),
		cmocka_unit_test(thread_lists),
		cmocka_unit_test(choices),
		cmocka_unit_test(windows),
		cmocka_unit_test(window_lists),
		cmocka_unit_test(the_table),
		cmocka_unit_test(ranges_of_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
