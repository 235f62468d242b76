/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 */
#include "binary/demangle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_readable(const char *name, const char *expected)
{
	char *readable = demangle(name);
	assert_non_null(readable);
	assert_string_equal(readable, expected);
	free(readable);
}

static void languages(void **state)
{
	(void)state;
	assert_readable("_ZN1a1bIiE1cEv", "a::b<int>::c()");
	assert_readable("_ZN1aC4Ev", "a::a()");
	assert_readable("_Z3foov.part.0", "foo() [clone .part.0]");
	assert_readable("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
	assert_readable("_RNvCs1234_7mycrate3foo", "mycrate::foo");
}

static void what_is_not_mangled(void **state)
{
	(void)state;
	assert_null(demangle("main"));
	assert_null(demangle(""));
	assert_null(demangle("_"));
	assert_null(demangle("_start"));
	assert_null(demangle("_Zebra crossing"));
	assert_null(demangle("_RedZone"));
}

/* f(pair<int, int>, pair<that, that>, …): each argument is twice as long as the one before, 2^36
 * names if nobody stopped it. */
static void output_is_bounded(void **state)
{
	(void)state;
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[512] = "_Z1fSt4pairIiiE";
	size_t at = strlen(name);
	for (const char *digit = digits; *digit; digit++)
		at += (size_t)snprintf(name + at, sizeof(name) - at, "S_IS%c_S%c_E", *digit,
				       *digit);
	char *readable = demangle(name);
	assert_non_null(readable);
	size_t length = strlen(readable);
	assert_true(length > DEMANGLED_NAME_BYTES_MAX && length < DEMANGLED_NAME_BYTES_MAX + 8);
	assert_string_equal(readable + length - 3, "\xe2\x80\xa6");
	free(readable);
}

static void depth_is_bounded(void **state)
{
	(void)state;
	static char deep[15000], absurd[1 << 20];
	memset(deep, 'P', sizeof(deep));
	memcpy(deep, "_Z1f", 4);
	memcpy(deep + sizeof(deep) - 2, "i", 2);
	free(demangle(deep));
	memset(absurd, 'P', sizeof(absurd) - 1);
	memcpy(absurd, "_Z1f", 4);
	assert_null(demangle(absurd));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(languages),
		cmocka_unit_test(what_is_not_mangled),
		cmocka_unit_test(output_is_bounded),
		cmocka_unit_test(depth_is_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
