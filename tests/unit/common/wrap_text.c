/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The text of WRAP: libraries, functions and types; and where it is wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/array.h"
#include "common/wrap_text.h"

static struct wrap_spec_function only(const char *text)
{
	struct text_slice rest = setting_slice_from_text(text);
	struct wrap_spec_problem problem = {text, "?"};
	struct wrap_spec_function item, second;

	if (wrap_spec_parse_next(&rest, &item, &problem) != 1)
		fail_msg("'%s': '%s' %s", text, problem.where, problem.what);
	assert_int_equal(wrap_spec_parse_next(&rest, &second, &problem), 0);
	return item;
}

static void expect_slice(struct text_slice slice, const char *text)
{
	assert_int_equal(slice.length, strlen(text));
	assert_memory_equal(slice.text, text, slice.length);
}

static void expect_type(const char *name, enum wrapped_value_type_kind kind, unsigned bytes)
{
	char text[100] = "*:f(";
	struct wrap_spec_function item;

	strcat(strcat(text, name), ")");
	item = only(text);
	assert_int_equal(item.argument_count, 1);
	assert_int_equal(item.argument[0].kind, kind);
	assert_int_equal(item.argument[0].bytes, bytes);
}

static void test_names(void **state)
{
	struct wrap_spec_function item = only(" libfoo.so:bar ");

	(void)state;
	expect_slice(item.library, "libfoo.so");
	expect_slice(item.function, "bar");
	assert_false(item.has_parameter_list);
	assert_int_equal(item.result.kind, WRAP_TYPE_NONE);
	item = only("*:_ZN1a1bEv()");
	expect_slice(item.library, "");
	expect_slice(item.function, "_ZN1a1bEv");
	assert_true(item.has_parameter_list);
	assert_int_equal(item.argument_count, 0);
}

static void test_results(void **state)
{
	struct wrap_spec_function item = only("double libm.so.6:pow(double, double)");

	(void)state;
	expect_slice(item.library, "libm.so.6");
	assert_int_equal(item.result.kind, WRAP_TYPE_REAL);
	assert_int_equal(item.argument_count, 2);
	item = only("const char *libx.so:name(void)");
	expect_slice(item.library, "libx.so");
	assert_int_equal(item.result.kind, WRAP_TYPE_TEXT);
	assert_int_equal(item.argument_count, 0);
	item = only("void ** *:f");
	expect_slice(item.library, "");
	assert_int_equal(item.result.kind, WRAP_TYPE_ADDRESS);
	item = only("long double *:f");
	assert_int_equal(item.result.kind, WRAP_TYPE_LONG_DOUBLE);
}

static void test_types(void **state)
{
	(void)state;
	expect_type("int", WRAP_TYPE_SIGNED, 4);
	expect_type("const int count", WRAP_TYPE_SIGNED, 4);
	expect_type("unsigned", WRAP_TYPE_UNSIGNED, 4);
	expect_type("unsigned n", WRAP_TYPE_UNSIGNED, 4);
	expect_type("signed char", WRAP_TYPE_SIGNED, 1);
	expect_type("unsigned char", WRAP_TYPE_UNSIGNED, 1);
	expect_type("short int", WRAP_TYPE_SIGNED, 2);
	expect_type("unsigned short", WRAP_TYPE_UNSIGNED, 2);
	expect_type("long", WRAP_TYPE_SIGNED, 8);
	expect_type("long int", WRAP_TYPE_SIGNED, 8);
	expect_type("unsigned long long", WRAP_TYPE_UNSIGNED, 8);
	expect_type("long double", WRAP_TYPE_LONG_DOUBLE, 16);
	expect_type("float", WRAP_TYPE_REAL, 4);
	expect_type("double", WRAP_TYPE_REAL, 8);
	expect_type("size_t size", WRAP_TYPE_UNSIGNED, 8);
	expect_type("uint16_t", WRAP_TYPE_UNSIGNED, 2);
	expect_type("bool", WRAP_TYPE_UNSIGNED, 1);
	expect_type("enum color c", WRAP_TYPE_SIGNED, 4);
	expect_type("char *", WRAP_TYPE_TEXT, 8);
	expect_type("const char *const name", WRAP_TYPE_TEXT, 8);
	expect_type("char**", WRAP_TYPE_ADDRESS, 8);
	expect_type("unsigned char *", WRAP_TYPE_ADDRESS, 8);
	expect_type("struct thing *", WRAP_TYPE_ADDRESS, 8);
	expect_type("FILE *stream", WRAP_TYPE_ADDRESS, 8);
	expect_type("void *", WRAP_TYPE_ADDRESS, 8);
}

static void test_lists(void **state)
{
	struct text_slice rest = setting_slice_from_text(";; a:f(int, ...) ;\n*:g;");
	struct wrap_spec_problem problem;
	struct wrap_spec_function item;

	(void)state;
	assert_int_equal(wrap_spec_parse_next(&rest, &item, &problem), 1);
	assert_true(item.variadic);
	assert_int_equal(item.argument_count, 1);
	assert_int_equal(wrap_spec_parse_next(&rest, &item, &problem), 1);
	expect_slice(item.function, "g");
	assert_int_equal(wrap_spec_parse_next(&rest, &item, &problem), 0);
	assert_true(wrap_spec_check("", &problem));
}

static void test_problems(void **state)
{
	static const struct {
		const char *text;
		size_t at;
	} cases[] = {
		{"x", 0},
		{":f", 0},
		{"a:", 2},
		{"a: (int)", 3},
		{"a:f g", 3},
		{"a:f(", 3},
		{"a:f(thing)", 4},
		{"a:f(int,,int)", 8},
		{"a:f(int", 3},
		{"a:f(int) x", 9},
		{"a:f(struct s)", 11},
		{"a:f(int[3])", 7},
		{"a:f(void, int)", 4},
		{"thing a:f", 0},
		{"a:f(int, ..., int)", 9},
		{"a:f;b", 4},
		{"*: setjmp(void *)", 3},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct wrap_spec_problem problem = {NULL, NULL};
		if (wrap_spec_check(cases[i].text, &problem))
			fail_msg("'%s' was accepted", cases[i].text);
		assert_non_null(problem.what);
		if (problem.where != cases[i].text + cases[i].at)
			fail_msg("'%s': at '%s'", cases[i].text, problem.where);
	}
}

static void test_limits(void **state)
{
	char text[4096] = "a:f(int";
	struct wrap_spec_problem problem;

	(void)state;
	for (int i = 1; i < WRAP_ARGUMENTS_MAX; i++)
		strcat(text, ",int");
	strcat(text, ")");
	assert_true(wrap_spec_check(text, &problem));
	text[strlen(text) - 1] = 0;
	strcat(text, ",int)");
	assert_false(wrap_spec_check(text, &problem));
	text[0] = 0;
	for (int i = 0; i < WRAP_FUNCTIONS_MAX; i++)
		strcat(text, "a:f;");
	assert_true(wrap_spec_check(text, &problem));
	strcat(text, "a:f");
	assert_false(wrap_spec_check(text, &problem));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),    cmocka_unit_test(test_results),
		cmocka_unit_test(test_types),    cmocka_unit_test(test_lists),
		cmocka_unit_test(test_problems), cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
