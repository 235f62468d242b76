/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Defects that a profiler of the same kind has, by the numbers of our notes on it: that kymo does
 * not have them. Others are A9 (unit/common/perf_events.c) and A13 (unit/core/windows.c,
 * e2e/control.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "analysis/session.h"
#include "cmd/commands.h"
#include "common/region_categories.h"
#include "common/settings_check.h"
#include "launch/launch.h"

static struct effective_settings settings;
static struct problem problem;
static char **environment;

static int setup(void **state)
{
	(void)state;
	environment = NULL;
	return effective_init(&settings, &problem);
}

static int teardown(void **state)
{
	(void)state;
	launch_environment_destroy(environment);
	effective_deinit(&settings);
	return 0;
}

static void parse(char **arguments)
{
	struct parsed_command_line result = {.settings = &settings};
	size_t count = 0;

	while (arguments[count])
		count++;
	assert_int_equal(options_parse_arguments(sample_command_description.grammar, arguments,
						 count, &result, &problem),
			 0);
}

/* What the program gets for a name; NULL: nothing. */
static const char *given(const char *name, char **before)
{
	struct launch launch = {.settings = &settings, .session = (char *)"/nowhere"};
	size_t length = strlen(name);

	launch_environment_destroy(environment);
	environment = NULL;
	assert_int_equal(launch_environment_create(&launch, "/lib/libkymo.so", before, &environment,
						   &problem),
			 0);
	for (char **entry = environment; *entry; entry++) {
		if (!strncmp(*entry, name, length) && (*entry)[length] == '=')
			return *entry + length + 1;
	}
	return NULL;
}

/* A1: the command offers a choice that the setting does not have. */
static void a1_every_choice_is_taken(void **state)
{
	(void)state;
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		const struct setting *setting = &settings_table[id];
		struct text_slice rest, word, culprit;
		char value[128];

		if (!setting->choices)
			continue;
		rest = setting_slice_from_text(setting->choices);
		while (setting_next_list_word(&rest, &word)) {
			snprintf(value, sizeof(value), "%.*s", (int)word.length, word.text);
			if (setting_check_value_text(setting, value, &culprit))
				fail_msg("%s does not take %s", setting->name, value);
		}
		if (setting_check_value_text(setting, setting->default_value, &culprit))
			fail_msg("%s does not take its default", setting->name);
	}
}

/* A2: several windows on the command line are joined by something that is no separator. */
static void a2_windows_of_several_options_are_all_read(void **state)
{
	char *arguments[] = {"--periods", "realtime:1:2:3", "boottime:4:5:6", "--periods=7:8",
			     NULL};
	static const struct setting_collection_period_value defaults = {.cycles = 1};
	struct text_slice rest, spec;
	struct setting_collection_period_value period;
	enum setting_error_kind error;
	unsigned count = 0;

	(void)state;
	parse(arguments);
	rest = setting_slice_from_text(effective_setting_text(&settings, SETTING_TRACE_PERIODS));
	for (; setting_parse_next_period(&rest, &defaults, &spec, &period, &error); count++) {
		assert_int_equal(error, SETTING_VALID);
		assert_int_equal(period.delay_ns, (1 + 3 * count) * 1000000000ll);
	}
	assert_int_equal(count, 3);
}

/* A3: options set variables that nothing reads. */
static void a3_options_set_variables_that_are_read(void **state)
{
	char *arguments[] = {"--process-sampling-delay=2", "--process-sampling-duration=3",
			     "--process-freq=4", "--wait=5", NULL};
	char *nothing[] = {NULL};

	(void)state;
	parse(arguments);
	assert_string_equal(given("KYMO_PROCESS_SAMPLING_DELAY", nothing), "2");
	for (char **entry = environment; *entry; entry++) {
		bool read = strncmp(*entry, "KYMO_", 5) != 0;

		for (unsigned id = 0; id < SETTING_COUNT; id++) {
			size_t length = strlen(settings_table[id].name);

			read = read || (!strncmp(*entry + 5, settings_table[id].name, length) &&
					(*entry)[5 + length] == '=');
		}
		if (!read)
			fail_msg("nothing reads %s", *entry);
	}
	assert_string_equal(given("KYMO_PROCESS_SAMPLING_DURATION", nothing), "3");
	assert_string_equal(given("KYMO_PROCESS_SAMPLING_FREQ", nothing), "4");
	assert_string_equal(given("KYMO_TRACE_DELAY", nothing), "5");
}

/* A14: the category of one metric has the name of another. */
static void a14_names_are_told_apart(void **state)
{
	(void)state;
	for (unsigned i = 0; i < REGION_CATEGORY_COUNT; i++) {
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(region_categories[i].name,
						region_categories[j].name);
	}
	for (uint32_t i = SPOOL_PROCESS_RSS_BYTES; i <= SPOOL_HOST_CPU_TOTAL_NS; i++) {
		for (uint32_t j = SPOOL_PROCESS_RSS_BYTES; j < i; j++) {
			const char *unit;

			assert_string_not_equal(spool_process_metric_get_name(i, &unit),
						spool_process_metric_get_name(j, &unit));
		}
	}
}

/* A16: what is to be put in front goes to the end. */
static void a16_the_library_goes_in_front(void **state)
{
	char *before[] = {"LD_PRELOAD=libtheirs.so:/opt/other.so", "OTHER=1", NULL};
	const char *preload = given("LD_PRELOAD", before);
	const char *theirs = preload ? strstr(preload, "libtheirs.so:/opt/other.so") : NULL;

	(void)state;
	assert_non_null(theirs);
	assert_int_equal(strncmp(preload, "/lib/libkymo.so:", 16), 0);
	assert_string_equal(theirs, "libtheirs.so:/opt/other.so");
	assert_string_equal(given("OTHER", before), "1");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a1_every_choice_is_taken),
		cmocka_unit_test_setup_teardown(a2_windows_of_several_options_are_all_read, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a3_options_set_variables_that_are_read, setup,
						teardown),
		cmocka_unit_test(a14_names_are_told_apart),
		cmocka_unit_test_setup_teardown(a16_the_library_goes_in_front, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
