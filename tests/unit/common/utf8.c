/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What stands for text of programs and users where people read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/utf8.h"

static const char *printable(const char *text, size_t size)
{
	static char ret[64];
	size_t written = utf8_copy_printable(text, strlen(text), ret, size);

	assert_true(written < size);
	assert_int_equal(written, strlen(ret));
	return ret;
}

static void text_stays(void **state)
{
	(void)state;
	assert_string_equal(printable("", 64), "");
	assert_string_equal(printable("a counter, \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 64),
			    "a counter, \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	assert_string_equal(printable("\xc2\xa0", 64), "\xc2\xa0"); /* the first behind C1 */
}

static void nothing_moves_a_terminal(void **state)
{
	(void)state;
	assert_string_equal(printable("\033[31mred\033[0m", 64), "?[31mred?[0m");
	assert_string_equal(printable("a\nkymo: error: b\r\t\a\x7f", 64), "a?kymo: error: b????");
	assert_string_equal(printable("\xc2\x9b"
				      "31m\xc2\x80",
				      64),
			    "?31m?"); /* CSI of C1 */
}

static void nothing_turns_a_line_around(void **state)
{
	(void)state;
	assert_string_equal(printable("a\xe2\x80\xae"
				      "b\xe2\x81\xa6"
				      "c\xe2\x80\xa8\xe2\x80\x8f",
				      64),
			    "a?b?c??");
	/* Their neighbours: a zero-width joiner, an en dash, a narrow space, a word joiner. */
	assert_string_equal(printable("\xe2\x80\x8d\xe2\x80\x93\xe2\x80\xaf\xe2\x81\xa0", 64),
			    "\xe2\x80\x8d\xe2\x80\x93\xe2\x80\xaf\xe2\x81\xa0");
}

static void what_is_no_text_is_replaced(void **state)
{
	(void)state;
	assert_string_equal(printable("a\xff"
				      "b\x9b"
				      "c",
				      64),
			    "a" UTF8_REPLACEMENT "b" UTF8_REPLACEMENT "c");
	assert_string_equal(printable("\xe2\x82", 64), UTF8_REPLACEMENT UTF8_REPLACEMENT);
	assert_string_equal(printable("\xed\xa0\x80", 64),
			    UTF8_REPLACEMENT UTF8_REPLACEMENT UTF8_REPLACEMENT);
}

static void no_character_is_cut(void **state)
{
	(void)state;
	assert_string_equal(printable("ab\xe2\x82\xac", 5), "ab");
	assert_string_equal(printable("ab\xe2\x82\xac", 6), "ab\xe2\x82\xac");
	assert_string_equal(printable("a\xff", 4), "a");
	assert_string_equal(printable("abc", 1), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_stays),
		cmocka_unit_test(nothing_moves_a_terminal),
		cmocka_unit_test(nothing_turns_a_line_around),
		cmocka_unit_test(what_is_no_text_is_replaced),
		cmocka_unit_test(no_character_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
