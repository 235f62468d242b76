/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From the environment to options: what counts, in which order, and that no text whatever does
 * harm.
 */
#include "unit/core/core_test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/time_units.h"
#include "core/base/options.h"

/* The options of an environment of up to seven variables. */
#define OPTIONS(...) read_options((char *[8]){__VA_ARGS__})

static const struct options *read_options(char **environment)
{
	static struct options options;

	memset(&options, 0x5a, sizeof(options)); /* nothing may be left as it was */
	options_read_environment(&options, environment);
	return &options;
}

static void defaults_sample_cpu_time_at_1000_hz(void **state)
{
	const struct options *options = OPTIONS("PATH=/bin");

	(void)state;
	assert_true(options->enabled);
	assert_true(options->cpu.on);
	assert_false(options->wall.on);
	assert_false(options->overflow.on);
	assert_int_equal(options->cpu.period, SECOND_NS / 1000);
	assert_int_equal(options->max_depth, 512);
	assert_int_equal(options->collection_period_count, 0);
	assert_int_equal(options->signal, 0);
	assert_int_equal(options->source, OPTIONS_SOURCE_AUTO);
	assert_int_equal(options->spool_limit_bytes, UINT64_C(4) << 30);
	assert_int_equal(options->process_metrics_period_ns, SECOND_NS / 10);
	assert_string_equal(options->spool_directory, "");
	assert_true(options_thread_filter_allows(&options->cpu.tids, 12345));
}

static void no_environment_at_all_gives_the_defaults(void **state)
{
	const struct options *options = read_options(NULL);

	(void)state;
	assert_true(options->cpu.on);
	assert_string_equal(options->cache_directory, "");
}

static void own_names_win_over_the_peers_names(void **state)
{
	(void)state;
	assert_int_equal(OPTIONS("OMNITRACE_SAMPLING_FREQ=50", "ROCPROFSYS_SAMPLING_FREQ=100",
				 "KYMO_SAMPLING_FREQ=200")
				 ->cpu.period,
			 SECOND_NS / 200);
	assert_int_equal(
		OPTIONS("OMNITRACE_SAMPLING_FREQ=50", "ROCPROFSYS_SAMPLING_FREQ=100")->cpu.period,
		SECOND_NS / 100);
	assert_int_equal(OPTIONS("OMNITRACE_SAMPLING_FREQ=50")->cpu.period, SECOND_NS / 50);
}

static void a_name_of_ours_alone_has_no_alias(void **state)
{
	(void)state;
	assert_true(OPTIONS("ROCPROFSYS_FOLLOW_CHILDREN=off")->follow_children);
	assert_false(OPTIONS("KYMO_FOLLOW_CHILDREN=off")->follow_children);
}

static void names_match_whole(void **state)
{
	(void)state;
	assert_int_equal(OPTIONS("KYMO_SAMPLING_FREQUENCY=10", "XKYMO_SAMPLING_FREQ=10",
				 "KYMO_SAMPLING_FREQ")
				 ->cpu.period,
			 SECOND_NS / 1000);
}

static void samplers_inherit_the_general_setting(void **state)
{
	const struct options *options =
		OPTIONS("KYMO_SAMPLING_FREQ=250", "KYMO_SAMPLING_REALTIME_FREQ=20",
			"KYMO_SAMPLING_DELAY=2", "KYMO_SAMPLING_REALTIME_DELAY=3ms",
			"KYMO_SAMPLING_TIDS=1-2", "KYMO_SAMPLING_REALTIME_TIDS=0,7");

	(void)state;
	assert_int_equal(options->cpu.period, SECOND_NS / 250);
	assert_int_equal(options->wall.period, SECOND_NS / 20);
	assert_int_equal(options->cpu.window.delay_ns, 2ll * SECOND_NS);
	assert_int_equal(options->wall.window.delay_ns, 3000000);
	assert_int_equal(options->overflow.window.delay_ns, 2ll * SECOND_NS);
	assert_true(options_thread_filter_allows(&options->cpu.tids, 2));
	assert_false(options_thread_filter_allows(&options->cpu.tids, 7));
	assert_true(options_thread_filter_allows(&options->wall.tids, 7));
	assert_false(options_thread_filter_allows(&options->wall.tids, 2));
}

static void an_empty_value_counts_as_unset(void **state)
{
	(void)state;
	assert_int_equal(
		OPTIONS("KYMO_SAMPLING_CPUTIME_FREQ=", "KYMO_SAMPLING_FREQ=400")->cpu.period,
		SECOND_NS / 400);
}

static void cpu_time_is_off_by_itself_where_another_kind_is_on(void **state)
{
	(void)state;
	assert_false(OPTIONS("KYMO_SAMPLING_REALTIME=on")->cpu.on);
	assert_false(OPTIONS("KYMO_SAMPLING_OVERFLOW=on")->cpu.on);
	assert_true(OPTIONS("KYMO_SAMPLING_REALTIME=on", "KYMO_SAMPLING_CPUTIME=on")->cpu.on);
	assert_false(OPTIONS("KYMO_SAMPLING_CPUTIME=off")->cpu.on);
	assert_false(OPTIONS("KYMO_USE_SAMPLING=off", "KYMO_SAMPLING_CPUTIME=on")->cpu.on);
}

static void values_that_do_not_parse_count_as_unset(void **state)
{
	const struct options *options = OPTIONS(
		"KYMO_SAMPLING_FREQ=fast", "KYMO_ENABLED=perhaps", "KYMO_SAMPLING_MAX_DEPTH=deep",
		"KYMO_TRACE_DELAY=soon", "KYMO_SPOOL_LIMIT=much", "KYMO_SAMPLING_SIGNAL=SIGNAL");

	(void)state;
	assert_int_equal(options->cpu.period, SECOND_NS / 1000);
	assert_true(options->enabled);
	assert_int_equal(options->max_depth, 512);
	assert_int_equal(options->collection_period_count, 0);
	assert_int_equal(options->spool_limit_bytes, UINT64_C(4) << 30);
	assert_int_equal(options->signal, 0);
}

/* What is divided by, allocated by or armed with must be a number that this can be done with. */
static void values_out_of_range_do_no_harm(void **state)
{
	static char *const values[] = {"0", "-1", "-1e30", "1e30", "0.0000001", "nan", "inf", "99"};
	static const char *const names[] = {"SAMPLING_FREQ", "SAMPLING_OVERFLOW_FREQ",
					    "SAMPLING_ALLOCATOR_SIZE", "SAMPLING_MAX_DEPTH",
					    "PROCESS_SAMPLING_FREQ"};
	char texts[LENGTH(names)][80];

	(void)state;
	for (size_t i = 0; i < LENGTH(values); i++) {
		for (size_t j = 0; j < LENGTH(names); j++) {
			strcpy(texts[j], "KYMO_");
			strcat(strcat(strcat(texts[j], names[j]), "="), values[i]);
		}
		const struct options *options =
			OPTIONS(texts[0], texts[1], texts[2], texts[3], texts[4]);
		assert_in_range(options->cpu.period, SECOND_NS / 10000, 1000ull * SECOND_NS);
		assert_in_range(options->overflow.period, 1, 1000000000000000ull);
		assert_in_range(options->threads_per_allocator, 1, 1000000);
		assert_in_range(options->max_depth, 1, 4096);
		assert_in_range(options->process_metrics_period_ns, 1000000, 100ull * SECOND_NS);
	}
}

static void rates_above_the_maximum_are_lowered_to_it(void **state)
{
	(void)state;
	assert_int_equal(OPTIONS("KYMO_SAMPLING_FREQ=1000000")->cpu.period, SECOND_NS / 10000);
	assert_int_equal(OPTIONS("KYMO_SAMPLING_FREQ=10000")->cpu.period, SECOND_NS / 10000);
}

static void a_delay_or_duration_is_a_window(void **state)
{
	const struct options *options = OPTIONS("KYMO_TRACE_DELAY=1.5", "KYMO_TRACE_DURATION=200ms",
						"KYMO_TRACE_PERIOD_CLOCK_ID=process_cputime");

	(void)state;
	assert_int_equal(options->collection_period_count, 1);
	assert_int_equal(options->collection_periods[0].clock, CLOCK_PROCESS_CPUTIME_ID);
	assert_int_equal(options->collection_periods[0].delay_ns, 1500000000);
	assert_int_equal(options->collection_periods[0].duration_ns, 200000000);
	assert_int_equal(options->collection_periods[0].repeat_count, 1);
	assert_int_equal(OPTIONS("ROCPROFSYS_TRACE_DELAY=1")->collection_period_count, 1);
}

/* The peer joins with one separator and splits at others (defect A2): every one works here. */
static void periods_are_split_at_every_separator(void **state)
{
	const struct options *options = OPTIONS(
		"KYMO_TRACE_PERIODS=monotonic:1:2:3,0.5:0.25;boottime:0:1:0 10ms:20ms:2:realtime");

	(void)state;
	assert_int_equal(options->collection_period_count, 4);
	assert_int_equal(options->collection_periods[0].clock, CLOCK_MONOTONIC);
	assert_int_equal(options->collection_periods[0].repeat_count, 3);
	assert_int_equal(options->collection_periods[1].clock, CLOCK_REALTIME);
	assert_int_equal(options->collection_periods[1].delay_ns, 500000000);
	assert_int_equal(options->collection_periods[1].duration_ns, 250000000);
	assert_int_equal(options->collection_periods[1].repeat_count, 1);
	assert_int_equal(options->collection_periods[2].repeat_count, 0);
	assert_int_equal(options->collection_periods[3].clock, CLOCK_REALTIME);
	assert_int_equal(options->collection_periods[3].repeat_count, 2);
}

static void bad_periods_are_left_out_and_too_many_cut(void **state)
{
	char text[1024] = "KYMO_TRACE_PERIODS=moon:1:2 1:2:3:4:5 -1:1 ";

	(void)state;
	assert_int_equal(OPTIONS(text)->collection_period_count, 0);
	for (int i = 0; i < 40; i++)
		strcat(text, "1:1:1 ");
	assert_int_equal(OPTIONS(text)->collection_period_count, OPTIONS_COLLECTION_PERIODS_MAX);
}

static void signals_by_name_with_and_without_sig(void **state)
{
	(void)state;
	assert_int_equal(OPTIONS("KYMO_SAMPLING_SIGNAL=SIGPROF")->signal, SIGPROF);
	assert_int_equal(OPTIONS("KYMO_SAMPLING_SIGNAL=usr2")->signal, SIGUSR2);
	assert_int_equal(OPTIONS("KYMO_SAMPLING_SIGNAL=auto")->signal, 0);
	assert_int_equal(OPTIONS("KYMO_SAMPLING_SIGNAL=SIGKILL")->signal, 0);
}

static void sources_by_name(void **state)
{
	(void)state;
	assert_int_equal(OPTIONS("KYMO_SAMPLING_SOURCE=perf")->source, OPTIONS_SOURCE_PERF);
	assert_int_equal(OPTIONS("KYMO_SAMPLING_SOURCE=TIMER")->source, OPTIONS_SOURCE_TIMER);
	assert_int_equal(OPTIONS("KYMO_SAMPLING_SOURCE=sundial")->source, OPTIONS_SOURCE_AUTO);
}

static void the_cache_follows_the_xdg_specification(void **state)
{
	(void)state;
	assert_string_equal(OPTIONS("HOME=/home/u")->cache_directory, "/home/u/.cache/kymo/unwind");
	assert_string_equal(OPTIONS("HOME=/home/u", "XDG_CACHE_HOME=/c")->cache_directory,
			    "/c/kymo/unwind");
	assert_string_equal(OPTIONS("HOME=/home/u", "XDG_CACHE_HOME=relative")->cache_directory,
			    "/home/u/.cache/kymo/unwind");
	assert_string_equal(OPTIONS("HOME=/home/u", "KYMO_UNWIND_CACHE=none")->cache_directory, "");
	assert_string_equal(OPTIONS("HOME=/home/u", "KYMO_UNWIND_CACHE=/x")->cache_directory, "/x");
	assert_string_equal(OPTIONS("HOME=home")->cache_directory, "");
}

static void paths_too_long_are_no_paths(void **state)
{
	static char directory[OPTIONS_PATH_SIZE + 64] = "KYMO_SPOOL_DIRECTORY=/";
	static char home[OPTIONS_PATH_SIZE + 64] = "HOME=/";
	const struct options *options;

	(void)state;
	memset(directory + strlen(directory), 'd', OPTIONS_PATH_SIZE);
	memset(home + strlen(home), 'h', OPTIONS_PATH_SIZE - 20);
	options = OPTIONS(directory, home);
	assert_string_equal(options->spool_directory, "");
	assert_string_equal(options->cache_directory, "");
	directory[strlen("KYMO_SPOOL_DIRECTORY=") + OPTIONS_PATH_SIZE - 1] = 0;
	assert_int_equal(strlen(OPTIONS(directory)->spool_directory), OPTIONS_PATH_SIZE - 1);
}

static void thread_ranges_are_inclusive(void **state)
{
	const struct options *options = OPTIONS("KYMO_SAMPLING_TIDS=0 3-5,9");
	static const bool expected[] = {true,  false, false, true, true, true,
					false, false, false, true, false};

	(void)state;
	for (size_t i = 0; i < LENGTH(expected); i++)
		assert_int_equal(options_thread_filter_allows(&options->cpu.tids, i), expected[i]);
}

static void a_list_of_threads_that_does_not_parse_allows_all(void **state)
{
	(void)state;
	assert_true(
		options_thread_filter_allows(&OPTIONS("KYMO_SAMPLING_TIDS=1,two")->cpu.tids, 9));
	assert_true(options_thread_filter_allows(&OPTIONS("KYMO_SAMPLING_TIDS=5-3")->cpu.tids, 9));
}

static void a_long_list_of_threads_is_kept_whole(void **state)
{
	static char text[4096] = "KYMO_SAMPLING_TIDS=0";
	const struct options *options;

	(void)state;
	for (int i = 2; i < 200; i += 2) {
		char item[16];
		snprintf(item, sizeof(item), ",%d", i);
		strcat(text, item);
	}
	options = OPTIONS(text);
	for (uint64_t i = 0; i < 200; i++)
		assert_int_equal(options_thread_filter_allows(&options->cpu.tids, i), i % 2 == 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_sample_cpu_time_at_1000_hz),
		cmocka_unit_test(no_environment_at_all_gives_the_defaults),
		cmocka_unit_test(own_names_win_over_the_peers_names),
		cmocka_unit_test(a_name_of_ours_alone_has_no_alias),
		cmocka_unit_test(names_match_whole),
		cmocka_unit_test(samplers_inherit_the_general_setting),
		cmocka_unit_test(an_empty_value_counts_as_unset),
		cmocka_unit_test(cpu_time_is_off_by_itself_where_another_kind_is_on),
		cmocka_unit_test(values_that_do_not_parse_count_as_unset),
		cmocka_unit_test(values_out_of_range_do_no_harm),
		cmocka_unit_test(rates_above_the_maximum_are_lowered_to_it),
		cmocka_unit_test(a_delay_or_duration_is_a_window),
		cmocka_unit_test(periods_are_split_at_every_separator),
		cmocka_unit_test(bad_periods_are_left_out_and_too_many_cut),
		cmocka_unit_test(signals_by_name_with_and_without_sig),
		cmocka_unit_test(sources_by_name),
		cmocka_unit_test(the_cache_follows_the_xdg_specification),
		cmocka_unit_test(paths_too_long_are_no_paths),
		cmocka_unit_test(thread_ranges_are_inclusive),
		cmocka_unit_test(a_list_of_threads_that_does_not_parse_allows_all),
		cmocka_unit_test(a_long_list_of_threads_is_kept_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
