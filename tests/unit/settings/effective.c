/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which source counts, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "settings/effective.h"

static struct effective_settings settings;
static struct problem problem;

static int setup(void **state)
{
	(void)state;
	return effective_init(&settings, &problem);
}

static int teardown(void **state)
{
	(void)state;
	effective_deinit(&settings);
	return 0;
}

static void stronger_sources_win_in_any_order(void **state)
{
	static char *environment[] = {"KYMO_SAMPLING_FREQ=200", "ROCPROFSYS_SAMPLING_FREQ=150",
				      "OMNITRACE_SAMPLING_FREQ=120", NULL};

	(void)state;
	assert_int_equal(effective_set_if_not_overridden(&settings, SETTING_SAMPLING_FREQ, "300",
							 ORIGIN_OPTION, "--freq", &problem),
			 0);
	assert_int_equal(effective_read_environment(&settings, environment, &problem), 0);
	assert_int_equal(effective_set_if_not_overridden(&settings, SETTING_SAMPLING_FREQ, "100",
							 ORIGIN_CONFIG, "f:1:1", &problem),
			 0);
	assert_string_equal(effective_setting_text(&settings, SETTING_SAMPLING_FREQ), "300");
	assert_int_equal(settings.values[SETTING_SAMPLING_FREQ].origin, ORIGIN_OPTION);
}

static void own_variables_beat_aliases(void **state)
{
	static char *environment[] = {"KYMO_SAMPLING_FREQ=200", "ROCPROFSYS_SAMPLING_FREQ=150",
				      "ROCPROFSYS_SAMPLING_DELAY=2", "OMNITRACE_SAMPLING_DELAY=3",
				      NULL};

	(void)state;
	assert_int_equal(effective_read_environment(&settings, environment, &problem), 0);
	assert_string_equal(effective_setting_text(&settings, SETTING_SAMPLING_FREQ), "200");
	assert_string_equal(effective_setting_text(&settings, SETTING_SAMPLING_DELAY), "2");
	assert_string_equal(settings.values[SETTING_SAMPLING_DELAY].source,
			    "ROCPROFSYS_SAMPLING_DELAY");
}

/* Other tools' variables were not written for kymo: what it does not take is not an error. */
static void foreign_values_are_tolerated(void **state)
{
	static char *environment[] = {"ROCPROFSYS_SAMPLING_CPUTIME_FREQ=-1",
				      "ROCPROFSYS_MODE=trace", "ROCPROFSYS_TRACE=maybe", NULL};

	(void)state;
	assert_int_equal(effective_read_environment(&settings, environment, &problem), 0);
	assert_true(effective_setting_is_default(&settings, SETTING_SAMPLING_CPUTIME_FREQ));
	assert_true(effective_setting_bool(&settings, SETTING_TRACE));
}

static void unknown_own_variables_are_found_one_by_one(void **state)
{
	static char *environment[] = {
		"PATH=/bin", "KYMO_SAMPLING_FREK=200", "KYMO_SPOOL_DIRECTORY=/x",  "KYMO_",
		"KYMO_=1",   "KYMO_TRACE=on",          "KYMO_SITE_OF_THE_JOB=x=y", NULL};
	char **variable = environment;

	(void)state;
	assert_int_equal(effective_read_environment(&settings, environment, &problem), 0);
	assert_true(effective_find_next_unknown_variable(&variable, &problem));
	assert_non_null(strstr(problem.text, "'KYMO_SAMPLING_FREQ'"));
	assert_true(effective_find_next_unknown_variable(&variable, &problem));
	assert_non_null(strstr(problem.text, "unknown setting 'KYMO_'"));
	assert_true(effective_find_next_unknown_variable(&variable, &problem));
	assert_non_null(strstr(problem.text, "'KYMO_SITE_OF_THE_JOB'"));
	assert_false(effective_find_next_unknown_variable(&variable, &problem));
}

static void internal_and_empty_variables_are_ignored(void **state)
{
	static char *environment[] = {"KYMO_SPOOL_DIRECTORY=/x", "KYMO_TRACE=", NULL};

	(void)state;
	assert_int_equal(effective_read_environment(&settings, environment, &problem), 0);
	assert_true(effective_setting_bool(&settings, SETTING_TRACE));
	assert_true(effective_setting_is_default(&settings, SETTING_SPOOL_DIRECTORY));
	assert_int_equal(effective_find_setting("SPOOL_DIRECTORY", 15), SETTING_COUNT);
}

static void unset_settings_inherit(void **state)
{
	(void)state;
	assert_int_equal(effective_set_if_not_overridden(&settings, SETTING_SAMPLING_FREQ, "250",
							 ORIGIN_OPTION, "--freq", &problem),
			 0);
	assert_string_equal(effective_setting_text(&settings, SETTING_SAMPLING_REALTIME_FREQ),
			    "250");
}

static void bad_values_say_what_is_accepted(void **state)
{
	(void)state;
	assert_int_equal(effective_set_if_not_overridden(&settings, SETTING_SAMPLING_FREQ, "20000",
							 ORIGIN_OPTION, "--freq", &problem),
			 -EINVAL);
	assert_non_null(strstr(problem.text, "10000"));
	assert_int_equal(effective_set_if_not_overridden(&settings, SETTING_SAMPLING_SOURCE, "pref",
							 ORIGIN_OPTION, "--sampling-source",
							 &problem),
			 -EINVAL);
	assert_non_null(strstr(problem.text, "'perf'"));
	assert_int_equal(effective_set_if_not_overridden(&settings, SETTING_SAMPLING_OVERFLOW_EVENT,
							 "page-fualts", ORIGIN_OPTION,
							 "--sampling-overflow-event", &problem),
			 -EINVAL);
	assert_non_null(strstr(problem.text, "'page-faults'"));
	/* A value that would not count is checked as well. */
	assert_int_equal(effective_set_if_not_overridden(&settings, SETTING_TRACE, "perhaps",
							 ORIGIN_CONFIG, "f:1:1", &problem),
			 -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(stronger_sources_win_in_any_order, setup, teardown),
		cmocka_unit_test_setup_teardown(own_variables_beat_aliases, setup, teardown),
		cmocka_unit_test_setup_teardown(foreign_values_are_tolerated, setup, teardown),
		cmocka_unit_test_setup_teardown(unknown_own_variables_are_found_one_by_one, setup,
						teardown),
		cmocka_unit_test_setup_teardown(internal_and_empty_variables_are_ignored, setup,
						teardown),
		cmocka_unit_test_setup_teardown(unset_settings_inherit, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_values_say_what_is_accepted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
