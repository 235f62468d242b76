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

#include "common/wrap_text.h"

static struct wrap_item only(const char *text)
{
	struct setting_slice rest = setting_slice(text);
	struct wrap_problem problem = {text, "?"};
	struct wrap_item item, second;

	if (wrap_next(&rest, &item, &problem) != 1)
		fail_msg("'%s': '%s' %s", text, problem.where, problem.what);
	assert_int_equal(wrap_next(&rest, &second, &problem), 0);
	return item;
}

static void expect_slice(struct setting_slice slice, const char *text)
{
	assert_int_equal(slice.length, strlen(text));
	assert_memory_equal(slice.text, text, slice.length);
}

static void expect_type(const char *name, enum wrap_kind kind, unsigned bytes)
{
	char text[100] = "*:f(";
	struct wrap_item item;

	strcat(strcat(text, name), ")");
	item = only(text);
	assert_int_equal(item.arguments, 1);
	assert_int_equal(item.argument[0].kind, kind);
	assert_int_equal(item.argument[0].bytes, bytes);
}

static void test_names(void **state)
{
	struct wrap_item item = only(" libfoo.so:bar ");

	(void)state;
	expect_slice(item.library, "libfoo.so");
	expect_slice(item.function, "bar");
	assert_false(item.typed);
	assert_int_equal(item.result.kind, WRAP_NONE);
	item = only("*:_ZN1a1bEv()");
	expect_slice(item.library, "");
	expect_slice(item.function, "_ZN1a1bEv");
	assert_true(item.typed);
	assert_int_equal(item.arguments, 0);
}

static void test_results(void **state)
{
	struct wrap_item item = only("double libm.so.6:pow(double, double)");

	(void)state;
	expect_slice(item.library, "libm.so.6");
	assert_int_equal(item.result.kind, WRAP_REAL);
	assert_int_equal(item.arguments, 2);
	item = only("const char *libx.so:name(void)");
	expect_slice(item.library, "libx.so");
	assert_int_equal(item.result.kind, WRAP_TEXT);
	assert_int_equal(item.arguments, 0);
	item = only("void ** *:f");
	expect_slice(item.library, "");
	assert_int_equal(item.result.kind, WRAP_ADDRESS);
	item = only("long double *:f");
	assert_int_equal(item.result.kind, WRAP_LONG_DOUBLE);
}

static void test_types(void **state)
{
	(void)state;
	expect_type("int", WRAP_SIGNED, 4);
	expect_type("const int count", WRAP_SIGNED, 4);
	expect_type("unsigned", WRAP_UNSIGNED, 4);
	expect_type("unsigned n", WRAP_UNSIGNED, 4);
	expect_type("signed char", WRAP_SIGNED, 1);
	expect_type("unsigned char", WRAP_UNSIGNED, 1);
	expect_type("short int", WRAP_SIGNED, 2);
	expect_type("unsigned short", WRAP_UNSIGNED, 2);
	expect_type("long", WRAP_SIGNED, 8);
	expect_type("long int", WRAP_SIGNED, 8);
	expect_type("unsigned long long", WRAP_UNSIGNED, 8);
	expect_type("long double", WRAP_LONG_DOUBLE, 16);
	expect_type("float", WRAP_REAL, 4);
	expect_type("double", WRAP_REAL, 8);
	expect_type("size_t size", WRAP_UNSIGNED, 8);
	expect_type("uint16_t", WRAP_UNSIGNED, 2);
	expect_type("bool", WRAP_UNSIGNED, 1);
	expect_type("enum color c", WRAP_SIGNED, 4);
	expect_type("char *", WRAP_TEXT, 8);
	expect_type("const char *const name", WRAP_TEXT, 8);
	expect_type("char**", WRAP_ADDRESS, 8);
	expect_type("unsigned char *", WRAP_ADDRESS, 8);
	expect_type("struct thing *", WRAP_ADDRESS, 8);
	expect_type("FILE *stream", WRAP_ADDRESS, 8);
	expect_type("void *", WRAP_ADDRESS, 8);
}

static void test_lists(void **state)
{
	struct setting_slice rest = setting_slice(";; a:f(int, ...) ;\n*:g;");
	struct wrap_problem problem;
	struct wrap_item item;

	(void)state;
	assert_int_equal(wrap_next(&rest, &item, &problem), 1);
	assert_true(item.variadic);
	assert_int_equal(item.arguments, 1);
	assert_int_equal(wrap_next(&rest, &item, &problem), 1);
	expect_slice(item.function, "g");
	assert_int_equal(wrap_next(&rest, &item, &problem), 0);
	assert_true(wrap_check("", &problem));
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
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wrap_problem problem = {NULL, NULL};
		if (wrap_check(cases[i].text, &problem))
			fail_msg("'%s' was accepted", cases[i].text);
		assert_non_null(problem.what);
		if (problem.where != cases[i].text + cases[i].at)
			fail_msg("'%s': at '%s'", cases[i].text, problem.where);
	}
}

static void test_limits(void **state)
{
	char text[4096] = "a:f(int";
	struct wrap_problem problem;

	(void)state;
	for (int i = 1; i < WRAP_ARGUMENTS; i++)
		strcat(text, ",int");
	strcat(text, ")");
	assert_true(wrap_check(text, &problem));
	text[strlen(text) - 1] = 0;
	strcat(text, ",int)");
	assert_false(wrap_check(text, &problem));
	text[0] = 0;
	for (int i = 0; i < WRAP_FUNCTIONS; i++)
		strcat(text, "a:f;");
	assert_true(wrap_check(text, &problem));
	strcat(text, "a:f");
	assert_false(wrap_check(text, &problem));
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
