/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Configuration files: what they say, and where they are wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "console/message.h"
#include "settings/config.h"

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

static int read_text(const char *text)
{
	return config_read_text(&settings, "f.conf", text, strlen(text), &problem);
}

static int read_json(const char *text)
{
	return config_read_json(&settings, "f.json", text, strlen(text), &problem);
}

static void text_is_understood(void **state)
{
	(void)state;
	setenv("CONFIG_TEST", "from-env", 1);
	assert_int_equal(read_text("# comment\n"
				   "\n"
				   "  sampling_freq=250   # trailing\n"
				   "KYMO_TRACE = off\r\n"
				   "output-prefix = \"a # b \"\n"
				   "DEBUG_PATH = '$env:CONFIG_TEST'\n"
				   "OUTPUT_PATH = x/$env:CONFIG_TEST/y\n"
				   "OUTPUT_FORMATS = text, json"),
			 0);
	assert_string_equal(effective_setting_text(&settings, SETTING_SAMPLING_FREQ), "250");
	assert_false(effective_setting_bool(&settings, SETTING_TRACE));
	assert_string_equal(effective_setting_text(&settings, SETTING_OUTPUT_PREFIX), "a # b ");
	assert_string_equal(effective_setting_text(&settings, SETTING_DEBUG_PATH),
			    "$env:CONFIG_TEST");
	assert_string_equal(effective_setting_text(&settings, SETTING_OUTPUT_PATH), "x/from-env/y");
	assert_string_equal(effective_setting_text(&settings, SETTING_OUTPUT_FORMATS),
			    "text, json");
	assert_string_equal(settings.values[SETTING_SAMPLING_FREQ].source, "f.conf:3:3");
}

static void text_errors_say_where(void **state)
{
	static const struct {
		const char *text, *where;
	} cases[] = {
		{"TRACE = on\nTRACE\n", "f.conf:2:6: expected NAME = value"},
		{"\n\n  = 5\n", "f.conf:3:3: expected NAME = value"},
		{"SAMPLING_FREK = 5\n", "f.conf:1:1: unknown setting"},
		{"SAMPLING_FREQ = 5x\n", "f.conf:1:1: '5x' is not valid"},
		{"OUTPUT_PATH = \"abc\n", "f.conf:1:15: this quote is never closed"},
		{"TRACE =\n", "f.conf:1:1: needs a value"},
		{"SPOOL_DIRECTORY = /x\n", "f.conf:1:1: unknown setting"},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(read_text(cases[i].text), -EINVAL);
		assert_memory_equal(problem.text, cases[i].where, strlen(cases[i].where));
	}
	assert_int_equal(config_read_text(&settings, "f.conf", "TR\0ACE", 6, &problem), -EINVAL);
}

static void unknown_settings_may_be_tolerated(void **state)
{
	(void)state;
	message_set_verbosity(-1);
	assert_int_equal(read_text("STRICT_CONFIG = off\nNO_SUCH_THING = 1\nTRACE = off\n"), 0);
	assert_false(effective_setting_bool(&settings, SETTING_TRACE));
}

static void json_is_understood(void **state)
{
	(void)state;
	assert_int_equal(
		read_json("{\"SAMPLING_FREQ\": 250, \"kymo_trace\": false,"
			  " \"OUTPUT_FORMATS\": [\"text\", \"json\"], \"TRACE_DELAY\": 1.5,"
			  " \"OUTPUT_PATH\": {\"value\": \"x\"}}"),
		0);
	assert_string_equal(effective_setting_text(&settings, SETTING_SAMPLING_FREQ), "250");
	assert_false(effective_setting_bool(&settings, SETTING_TRACE));
	assert_string_equal(effective_setting_text(&settings, SETTING_OUTPUT_FORMATS), "text,json");
	assert_string_equal(effective_setting_text(&settings, SETTING_OUTPUT_PATH), "x");
	assert_int_equal(read_json("{\"kymo\": {\"settings\": {\"SAMPLING_FREQ\": \"300\"}}}"), 0);
	assert_string_equal(effective_setting_text(&settings, SETTING_SAMPLING_FREQ), "300");
}

static void json_errors_say_where(void **state)
{
	static const struct {
		const char *text, *where;
	} cases[] = {
		{"{\"TRACE\": on}", "f.json:1:"},
		{"[1]", "f.json:1:1: expected {\"NAME\""},
		{"{\n \"TRACE\": {}\n}", "f.json:2:2: TRACE: expected a string"},
		{"{\n\n \"TRAEC\": 1\n}",
		 "f.json:3:2: unknown setting 'TRAEC'; did you mean 'TRACE'"},
		{"{\"SAMPLING_FREQ\": -4}", "f.json:1:2: '-4' is too small"},
		{"{\"kymo\": 5}", "f.json:1:1: expected"},
		{"{\"TRACE\": 1, \"TRACE\": 0}", "f.json:1:"},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(read_json(cases[i].text), -EINVAL);
		assert_memory_equal(problem.text, cases[i].where, strlen(cases[i].where));
	}
}

static void missing_files_are_errors(void **state)
{
	(void)state;
	assert_int_equal(effective_set_if_not_overridden(&settings, SETTING_CONFIG_FILE,
							 "/nonexistent/a.conf", ORIGIN_OPTION,
							 "--config", &problem),
			 0);
	assert_int_equal(config_read_all_files(&settings, &problem), -ENOENT);
	assert_non_null(strstr(problem.text, "/nonexistent/a.conf"));
	assert_int_equal(config_read_file(&settings, "/", &problem), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(text_is_understood, setup, teardown),
		cmocka_unit_test_setup_teardown(text_errors_say_where, setup, teardown),
		cmocka_unit_test_setup_teardown(unknown_settings_may_be_tolerated, setup, teardown),
		cmocka_unit_test_setup_teardown(json_is_understood, setup, teardown),
		cmocka_unit_test_setup_teardown(json_errors_say_where, setup, teardown),
		cmocka_unit_test_setup_teardown(missing_files_are_errors, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
