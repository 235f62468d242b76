/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Expressions of users: those that people write are compiled, those that would take all memory or
 * the stack are refused before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/array.h"
#include "common/pattern.h"

static char why[128];

static void expect_good(const char *text)
{
	regex_t compiled;

	if (pattern_compile(&compiled, text, 0, why, sizeof(why)))
		fail_msg("'%.60s': %s", text, why);
	regfree(&compiled);
}

static void expect_excess(const char *text, const char *says)
{
	regex_t compiled;

	assert_int_equal(pattern_compile(&compiled, text, 0, why, sizeof(why)), PATTERN_REFUSED);
	if (!strstr(why, says))
		fail_msg("'%.60s': %s", text, why);
	assert_int_equal(pattern_compile(&compiled, text, 0, NULL, 0), PATTERN_REFUSED);
}

/* `text` so many times; the caller's to free. */
static char *times(size_t count, const char *text)
{
	char *ret = calloc(count, strlen(text) + 1);

	assert_non_null(ret);
	for (size_t i = 0; i < count; i++)
		memcpy(ret + i * strlen(text), text, strlen(text));
	return ret;
}

static void what_people_write_is_compiled(void **state)
{
	static const char *const good[] = {
		"gemm",
		"^(void )?cutlass::.*<(float|half)>\\(",
		"a{3}",
		"x{0,255}y",
		"[a-z_]{1,40}+",
		"((foo|bar)+baz){2,20}",
		"[]{}(+]{9}",
		"[^][:alpha:](]",
		"\\({3}",
		"a{,5}",
		"{",
		"a{,",
		"(a{1,9}){1,9}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		regex_t compiled;
		int error = pattern_compile(&compiled, good[i], 0, why, sizeof(why));

		if (error == PATTERN_REFUSED)
			fail_msg("'%s': %s", good[i], why);
		if (!error)
			regfree(&compiled);
	}
	expect_good("^(void )?cutlass::.*<(float|half)>\\(");
	expect_good("((foo|bar)+baz){2,20}");
	expect_good("[]{}(+]{9}");
}

static void a_long_list_of_names_is_compiled(void **state)
{
	char *names = times(2000, "a_name_of_a_function|");

	(void)state;
	expect_good(names);
	free(names);
}

static void repetitions_of_repetitions_are_refused(void **state)
{
	static const char *const bad[] = {
		"((a{1,255}){1,255}){1,255}",
		"(((a{255}){255}){255}){255}",
		"((a{99,}){99,}){99,}",
		"a*{9999}",
		"([[:alpha:]]{200}){200}",
		"((\\({60}){60}){60}",
		"(a|b{0,3000})",
		"((((((((((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+",
		"((a{65535}){65535}){65535}{65535}{65535}{65535}",
		"a++++++++++++++++++++++++++++++++++",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_excess(bad[i], "repetitions");
}

static void deep_nesting_is_refused(void **state)
{
	char *open = times(100000, "("), *hundred = times(100, "(");
	char text[512];

	(void)state;
	expect_excess(open, "nested");
	snprintf(text, sizeof(text), "%sa%.100s", hundred,
		 "))))))))))))))))))))))))))))))))))))))))))))))))))"
		 "))))))))))))))))))))))))))))))))))))))))))))))))))");
	expect_good(text);
	free(open);
	free(hundred);
}

static void more_alternatives_than_memory_are_refused(void **state)
{
	char *letters = times(60000, "a|");

	(void)state;
	expect_excess(letters, "alternatives");
	free(letters);
}

/* (a*)(a*)(a*)\3\2\1b takes hours for 200 letters. */
static void back_references_are_refused(void **state)
{
	(void)state;
	expect_excess("(a*)(a*)(a*)\\3\\2\\1b", "back-references");
	expect_excess("(.)\\1", "back-references");
	expect_good("a\\\\1[\\1]");
}

static void mistakes_are_those_of_regcomp(void **state)
{
	regex_t compiled;

	(void)state;
	assert_int_equal(pattern_compile(&compiled, "(a", 0, why, sizeof(why)), REG_EPAREN);
	assert_true(why[0]);
	assert_int_equal(pattern_compile(&compiled, "[a", 0, NULL, 0), REG_EBRACK);
	assert_int_equal(pattern_compile(&compiled, "[[:a", 0, why, sizeof(why)), REG_EBRACK);
	assert_int_equal(pattern_compile(&compiled, "A", REG_ICASE, NULL, 0), 0);
	assert_int_equal(regexec(&compiled, "a", 0, NULL, 0), 0);
	regfree(&compiled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_people_write_is_compiled),
		cmocka_unit_test(a_long_list_of_names_is_compiled),
		cmocka_unit_test(repetitions_of_repetitions_are_refused),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(more_alternatives_than_memory_are_refused),
		cmocka_unit_test(back_references_are_refused),
		cmocka_unit_test(mistakes_are_those_of_regcomp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
