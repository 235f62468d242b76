/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Files that say what to count in which runs: rocprofv3's forms, and where they are wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "common/array.h"
#include "console/message.h"
#include "counting/input.h"
#include "counting/request.h"

static struct problem problem;

static int parse(const char *path, const char *text, struct counter_input_file *input)
{
	return counter_input_file_parse(path, text, strlen(text), input, &problem);
}

static void wrong(const char *path, const char *text, const char *where)
{
	struct counter_input_file input;

	assert_int_equal(parse(path, text, &input), -EINVAL);
	if (!strstr(problem.text, where))
		fail_msg("'%s' does not say '%s'", problem.text, where);
}

static void test_text(void **state)
{
	struct counter_input_file input;

	(void)state;
	assert_int_equal(
		parse("a.txt", "# pmc: NOT THIS\n\npmc: A B,C # D\r\n  pmc:D\ngpu: 0\n", &input),
		0);
	assert_int_equal(input.count, 2);
	assert_true(input.is_text_format);
	assert_string_equal(input.passes[0].counters, "A,B,C");
	assert_string_equal(input.passes[1].counters, "D");
	counter_input_file_deinit(&input);
}

static void test_text_mistakes(void **state)
{
	(void)state;
	wrong("a.txt", "pmc: A\nA B\n", "a.txt:2:1:");
	wrong("a.txt", "pmc: A\npmc:\n", "a.txt:2:1: 'pmc:' without");
	wrong("a.txt", "# nothing\n", "names no counters");
	wrong("a.txt", "", "names no counters");
}

static void test_windows(void **state)
{
	struct counter_input_file input;

	(void)state;
	assert_int_equal(parse("a.txt", "\xef\xbb\xbfpmc: A\r\n\r\npmc: B\r\n", &input), 0);
	assert_int_equal(input.count, 2);
	assert_string_equal(input.passes[0].counters, "A");
	assert_int_equal(input.passes[1].line, 3);
	counter_input_file_deinit(&input);
}

static void test_too_many(void **state)
{
	char text[1001 * 7 + 1];

	(void)state;
	for (unsigned i = 0; i < 1001; i++)
		memcpy(text + i * 7, "pmc: A\n", 8);
	wrong("a.txt", text, "a.txt:1001:1: more than 1000 runs");
}

static void test_zero_bytes(void **state)
{
	static const char text[] = "pmc: \0A\n";
	struct counter_input_file input;

	(void)state;
	assert_int_equal(
		counter_input_file_parse("a.txt", text, sizeof(text) - 1, &input, &problem),
		-EINVAL);
	assert_non_null(strstr(problem.text, "a.txt:1:1: a zero byte"));
	/* YAML's own: no text can hold one. */
	wrong("a.yaml", "jobs:\n  - pmc: [\"\\0A\"]\n", "a.yaml:2:13: an unsupported escape");
}

static const char yaml[] = "jobs:\n"
			   "  - pmc: [A, B]\n"
			   "    kernel_include_regex: \"add.*\"\n"
			   "    kernel_exclude_regex: sub\n"
			   "    kernel_iteration_range: \"[1,[3-4]]\"\n"
			   "    output_format: [csv]\n"
			   "  - pmc:\n"
			   "      - C\n";

static void test_yaml(void **state)
{
	struct counter_input_file input;

	(void)state;
	assert_int_equal(parse("a.yaml", yaml, &input), 0);
	assert_int_equal(input.count, 2);
	assert_false(input.is_text_format);
	assert_string_equal(input.passes[0].counters, "A,B");
	assert_string_equal(input.passes[0].kernel_include_regex, "add.*");
	assert_string_equal(input.passes[0].kernel_exclude_regex, "sub");
	assert_string_equal(input.passes[0].kernel_iteration_range, "1,3-4");
	assert_string_equal(input.passes[1].counters, "C");
	assert_null(input.passes[1].kernel_include_regex);
	counter_input_file_deinit(&input);
}

static void test_json(void **state)
{
	struct counter_input_file input;

	(void)state;
	assert_int_equal(
		parse("a.json",
		      "{\"jobs\": [{\"pmc\": [\"A\"], \"kernel_iteration_range\": [\"1-2\", [5]],\n"
		      " \"truncate_kernels\": true}]}\n",
		      &input),
		0);
	assert_int_equal(input.count, 1);
	assert_string_equal(input.passes[0].counters, "A");
	assert_string_equal(input.passes[0].kernel_iteration_range, "1-2,5");
	counter_input_file_deinit(&input);
}

/* White space and escapes of JSON's own, which YAML does not have. */
static void test_json_is_not_yaml(void **state)
{
	struct counter_input_file input;

	(void)state;
	assert_int_equal(parse("a.json",
			       "\xef\xbb\xbf{\r\n\t\"jobs\":\t[\r\n\t\t{\t\"pmc\"\t:[\t\"A\",\n"
			       "\t\"B\"\t]\t,\n\t\"kernel_include_regex\":"
			       "\"a\\tb\\u00e9\\ud83d\\ude00\\/\\b\\f\\\\d\",\n"
			       "\t\"kernel_exclude_regex\": null}\n\t]\n}\n",
			       &input),
			 0);
	assert_int_equal(input.count, 1);
	assert_string_equal(input.passes[0].counters, "A,B");
	assert_string_equal(input.passes[0].kernel_include_regex,
			    "a\tb\xc3\xa9\xf0\x9f\x98\x80/\b\f\\d");
	assert_null(input.passes[0].kernel_exclude_regex);
	assert_int_equal(input.passes[0].line, 3);
	counter_input_file_deinit(&input);
}

static void test_json_mistakes(void **state)
{
	(void)state;
	wrong("a.json", "{\"jobs\": [\n\t{\"pmc\": [\"A\",]}]}", "a.json:2:15: unexpected token");
	wrong("a.json", "{\"jobs\": [{\"pmc\": ['A']}]}", "a.json:1:20: invalid token near");
	wrong("a.json", "jobs:\n  - pmc: [A]\n", "a.json:1:4: '[' or '{' expected");
	wrong("a.json", "{\"jobs\": [], \"jobs\": []}", "duplicate object key");
	wrong("a.json", "{\"jobs\": [{\"pmc\": [\"A\tB\"]}]}", "a.json:1:");
	wrong("a.json", "{\"jobs\": [{\"pmc\": [\"\\ud800\"]}]}", "a.json:1:");
	wrong("a.json", "{} # text", "a.json:1:4:");
	wrong("a.json", "", "a.json:1:1: '[' or '{' expected");
	wrong("a.json", "{\"jobs\": [\n\t{\t\"pcm\": [\"A\"]}]}", "a.json:2:4: unknown key 'pcm'");
	wrong("a.json", "{\"jobs\": [\n\t{\"pmc\":\t{\"A\": 1}}]}",
	      "a.json:2:10: expected a list of counters");
}

static void test_groups_are_runs(void **state)
{
	struct counter_input_file input;

	(void)state;
	assert_int_equal(parse("a.yml",
			       "jobs:\n  - pmc_groups: [[A, B], [C]]\n    pmc_group_interval: 5\n"
			       "    kernel_include_regex: x\n",
			       &input),
			 0);
	assert_int_equal(input.count, 2);
	assert_string_equal(input.passes[0].counters, "A,B");
	assert_string_equal(input.passes[0].kernel_include_regex, "x");
	assert_string_equal(input.passes[1].counters, "C");
	assert_string_equal(input.passes[1].kernel_include_regex, "x");
	counter_input_file_deinit(&input);
}

static void test_yaml_mistakes(void **state)
{
	(void)state;
	wrong("a.yaml", "jobs: A\n", "a.yaml:1:7: 'jobs' is not a list");
	wrong("a.yaml", "job: [A]\n", "there is no list 'jobs'");
	wrong("a.yaml", "jobs:\n  - pcm: [A]\n",
	      "a.yaml:2:5: unknown key 'pcm'; did you mean 'pmc'");
	wrong("a.yaml", "jobs:\n  - kernel_include_regex: a\n", "a.yaml:2:5: a job without 'pmc'");
	wrong("a.yaml", "jobs:\n  - A\n", "a.yaml:2:5: expected a job with");
	wrong("a.yaml", "jobs:\n  - pmc: {A: 1}\n", "a.yaml:2:10:");
	wrong("a.yaml", "jobs:\n  - pmc: [[A]]\n", "the name of a counter");
	wrong("a.yaml", "jobs:\n  - pmc_groups: [[]]\n", "a group without a counter");
	wrong("a.yaml", "jobs:\n  - pmc: [A]\n    kernel_iteration_range: [{a: 1}]\n",
	      "a.yaml:3:30: expected the number of a launch");
	wrong("a.yaml", "jobs:\n  - pmc: [A\n", "a.yaml:");
	wrong("a.json", "{\"jobs\": []}", "names no counters");
}

static void test_ranges(void **state)
{
	static const char *const right[] = {"", "3", "2-5", "1,8-12", "4-"};
	static const char *const wrong_ones[] = {"x", "0", "5-3", "1-2-3", "-3", "1.5"};
	struct effective_settings settings;

	(void)state;
	assert_int_equal(effective_init(&settings, &problem), 0);
	for (size_t i = 0; i < ARRAY_SIZE(right); i++) {
		assert_int_equal(effective_set_if_not_overridden(&settings, SETTING_KERNEL_RANGE,
								 right[i], ORIGIN_OPTION,
								 "--kernel-range", &problem),
				 0);
		assert_int_equal(counters_request_check_kernel_range(&settings, &problem), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong_ones); i++) {
		assert_int_equal(effective_set_if_not_overridden(&settings, SETTING_KERNEL_RANGE,
								 wrong_ones[i], ORIGIN_OPTION,
								 "--kernel-range", &problem),
				 0);
		assert_int_equal(counters_request_check_kernel_range(&settings, &problem), -EINVAL);
		assert_non_null(strstr(problem.text, "--kernel-range"));
	}
	effective_deinit(&settings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),          cmocka_unit_test(test_text_mistakes),
		cmocka_unit_test(test_windows),       cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_zero_bytes),    cmocka_unit_test(test_yaml),
		cmocka_unit_test(test_json),          cmocka_unit_test(test_json_is_not_yaml),
		cmocka_unit_test(test_json_mistakes), cmocka_unit_test(test_groups_are_runs),
		cmocka_unit_test(test_yaml_mistakes), cmocka_unit_test(test_ranges),
	};

	message_set_verbosity(-1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
