/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The option parser on the grammar of kymo sample, and on one with operands in between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "cmd/commands.h"
#include "common/array.h"

static struct effective_settings settings;
static struct problem problem;
static struct parsed_command_line result;

static int setup(void **state)
{
	(void)state;
	result = (struct parsed_command_line){.settings = &settings};
	return effective_init(&settings, &problem);
}

static int teardown(void **state)
{
	(void)state;
	effective_deinit(&settings);
	return 0;
}

/* Arguments separated by blanks. */
static int parse(const struct options_grammar *grammar, const char *line)
{
	static char copy[512], *arguments[32];
	size_t count = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		arguments[count++] = word;
	arguments[count] = NULL;
	return options_parse_arguments(grammar, arguments, count, &result, &problem);
}

static int sample(const char *line)
{
	return parse(sample_command_description.grammar, line);
}

static const char *value(enum setting_id id)
{
	return effective_setting_text(&settings, id);
}

static void values_follow_or_are_attached(void **state)
{
	(void)state;
	assert_int_equal(sample("--freq 100 -d5 --wait=2 -o out --sampling-max-depth=7 prog -f 9"),
			 0);
	assert_string_equal(value(SETTING_SAMPLING_FREQ), "100");
	assert_string_equal(value(SETTING_TRACE_DURATION), "5");
	assert_string_equal(value(SETTING_TRACE_DELAY), "2");
	assert_string_equal(value(SETTING_OUTPUT_PATH), "out");
	assert_string_equal(value(SETTING_SAMPLING_MAX_DEPTH), "7");
	assert_int_equal(result.operand_count, 3);
	assert_string_equal(result.operands[0], "prog");
	assert_string_equal(result.operands[1], "-f");
}

static void names_of_settings_work_as_options(void **state)
{
	(void)state;
	assert_int_equal(sample("--sampling-freq=50 --SAMPLING_DELAY=3 -- prog"), 0);
	assert_string_equal(value(SETTING_SAMPLING_FREQ), "50");
	assert_string_equal(value(SETTING_SAMPLING_DELAY), "3");
}

static void booleans_need_no_value(void **state)
{
	(void)state;
	assert_int_equal(
		sample("--no-trace --profile=off --cpu-freq-enabled --host off -F -- prog"), 0);
	assert_false(effective_setting_bool(&settings, SETTING_TRACE));
	assert_false(effective_setting_bool(&settings, SETTING_PROFILE));
	assert_true(effective_setting_bool(&settings, SETTING_CPU_FREQ_ENABLED));
	assert_false(effective_setting_bool(&settings, SETTING_USE_PROCESS_SAMPLING));
	assert_true(effective_setting_bool(&settings, SETTING_FLAT_PROFILE));
	assert_string_equal(result.operands[0], "prog");
}

/* A program whose name is no on or off is not taken for a value. */
static void a_boolean_leaves_the_program_alone(void **state)
{
	(void)state;
	assert_int_equal(sample("--trace yes"), 0);
	assert_int_equal(result.operand_count, 1);
	assert_string_equal(result.operands[0], "yes");
}

static void clocks_take_a_rate_when_one_follows(void **state)
{
	(void)state;
	assert_int_equal(sample("--realtime 50 --cputime prog 7"), 0);
	assert_string_equal(value(SETTING_SAMPLING_REALTIME), "on");
	assert_string_equal(value(SETTING_SAMPLING_REALTIME_FREQ), "50");
	assert_string_equal(value(SETTING_SAMPLING_CPUTIME), "on");
	assert_true(effective_setting_is_default(&settings, SETTING_SAMPLING_CPUTIME_FREQ));
	assert_string_equal(result.operands[0], "prog");
	assert_int_equal(sample("--cputime=off --realtime off prog"), 0);
	assert_string_equal(value(SETTING_SAMPLING_CPUTIME), "off");
	assert_string_equal(value(SETTING_SAMPLING_REALTIME), "off");
	assert_string_equal(result.operands[0], "prog");
}

static void windows_take_all_that_follow(void **state)
{
	(void)state;
	assert_int_equal(sample("--periods realtime:10:1:5 process_cputime:10:2:20 --freq 5 -- p"),
			 0);
	assert_string_equal(value(SETTING_TRACE_PERIODS),
			    "realtime:10:1:5 process_cputime:10:2:20");
	assert_string_equal(value(SETTING_SAMPLING_FREQ), "5");
}

static void lists_add_up(void **state)
{
	(void)state;
	assert_int_equal(sample("--format text --format json -t 0 -t 2-3 -c a -c b -- p"), 0);
	assert_string_equal(value(SETTING_OUTPUT_FORMATS), "text,json");
	assert_string_equal(value(SETTING_SAMPLING_TIDS), "0,2-3");
	assert_string_equal(value(SETTING_CONFIG_FILE), "a:b");
}

/* Those that are lists of their own kind. */
static void ranges_and_files_add_up(void **state)
{
	(void)state;
	assert_int_equal(sample("--kernel-range 1-3 --kernel-range=10- --counter-defs a "
				"--counter-defs b:c --wrap libm:sin --wrap libm:cos "
				"--kernel-include gemm --kernel-include conv -- p"),
			 0);
	assert_string_equal(value(SETTING_KERNEL_RANGE), "1-3,10-");
	assert_string_equal(value(SETTING_COUNTER_DEFS), "a:b:c");
	assert_string_equal(value(SETTING_WRAP), "libm:sin;libm:cos");
	assert_string_equal(value(SETTING_KERNEL_INCLUDE), "gemm|conv");
}

static void one_text_is_not_replaced_by_another(void **state)
{
	const char *input = NULL;
	struct extra_option option = {.name = "input", .metavar = "FILE", .apply = option_set_text};

	(void)state;
	result.context = &input;
	assert_int_equal(option_set_text(&result, &option, "A", &problem), 0);
	assert_int_equal(option_set_text(&result, &option, "A", &problem), 0);
	assert_int_equal(option_set_text(&result, &option, "B", &problem), -EINVAL);
	assert_string_equal(problem.text, "--input takes one FILE, not both 'A' and 'B'");
	assert_string_equal(input, "A");
}

static void letters_combine(void **state)
{
	(void)state;
	assert_int_equal(sample("-vvTf 20 p"), 0);
	assert_string_equal(value(SETTING_VERBOSE), "2");
	assert_true(settings.values[SETTING_TRACE].origin == ORIGIN_OPTION);
	assert_string_equal(value(SETTING_SAMPLING_FREQ), "20");
	assert_int_equal(sample("-q p"), 0);
	assert_string_equal(value(SETTING_VERBOSE), "-1");
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{"--fre 5 p", "'--freq'"},
		{"--smapling-delay 5 p", "'--sampling-delay'"},
		{"--freq", "needs a value"},
		{"--freq -- p", "needs a value"},
		{"--freq= p", "needs a value"},
		{"--sampling-fresq 5 p", "'--sampling-freq'"},
		{"--quiet=1 p", "takes no value"},
		{"--no-trace=on p", "takes no value"},
		{"--no-freq p", "unknown option"},
		{"-z p", "unknown option '-z'"},
		{"--spool-directory=/x p", "unknown option"},
		{"--freq 1e6 p", "too large"},
		{"--format html,txt p", "'text'"},
		{"--realtime=fast p", "'fast'"},
		{"--periods 1:2:3:4 p", "windows such as"},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(sample(cases[i].line), -EINVAL);
		if (!strstr(problem.text, cases[i].says))
			fail_msg("%s: %s", cases[i].line, problem.text);
	}
}

static void help_ends_with_its_topic(void **state)
{
	(void)state;
	assert_int_equal(sample("--help=windows"), 0);
	assert_string_equal(result.help_topic, "windows");
	assert_int_equal(sample("-h"), 0);
	assert_string_equal(result.help_topic, "");
}

static bool accepts_color(enum setting_id id)
{
	return id == SETTING_COLOR;
}

static void operands_may_stand_anywhere(void **state)
{
	static const struct options_grammar grammar = {.command = "x",
						       .accepts_setting = accepts_color};

	(void)state;
	assert_int_equal(parse(&grammar, "a --color never b - -- --c"), 0);
	assert_int_equal(result.operand_count, 4);
	assert_string_equal(result.operands[0], "a");
	assert_string_equal(result.operands[1], "b");
	assert_string_equal(result.operands[2], "-");
	assert_string_equal(result.operands[3], "--c");
	assert_string_equal(value(SETTING_COLOR), "never");
	assert_int_equal(parse(&grammar, "--trace"), -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(values_follow_or_are_attached),
		TEST(names_of_settings_work_as_options),
		TEST(booleans_need_no_value),
		TEST(a_boolean_leaves_the_program_alone),
		TEST(clocks_take_a_rate_when_one_follows),
		TEST(windows_take_all_that_follow),
		TEST(lists_add_up),
		TEST(ranges_and_files_add_up),
		TEST(one_text_is_not_replaced_by_another),
		TEST(letters_combine),
		TEST(mistakes_are_named),
		TEST(help_ends_with_its_topic),
		TEST(operands_may_stand_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
