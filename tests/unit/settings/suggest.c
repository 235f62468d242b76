/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which name was probably meant.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "settings/suggest.h"

static const char *best_of(const char *wanted, const char *list)
{
	static char text[64];
	struct suggestion suggestion;

	suggestion_init(&suggestion, wanted, strlen(wanted));
	suggestion_offer_list(&suggestion, list);
	return suggestion_format_hint(&suggestion, "", text, sizeof(text));
}

static void finds_the_nearest(void **state)
{
	(void)state;
	assert_string_equal(best_of("tmie", "text,time,json"), "; did you mean 'time'?");
	assert_string_equal(best_of("SAMPLING-FREK", "SAMPLING_FREQ,SAMPLING_TIDS"),
			    "; did you mean 'SAMPLING_FREQ'?");
	assert_string_equal(best_of("txt", "json,text"), "; did you mean 'text'?");
}

static void says_nothing_when_nothing_is_near(void **state)
{
	char longest[300];

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_string_equal(best_of("zebra", "text,json"), "");
	assert_string_equal(best_of("", "text,json"), "");
	assert_string_equal(best_of("x", "text,json"), "");
	assert_string_equal(best_of(longest, "text,json"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_nearest),
		cmocka_unit_test(says_nothing_when_nothing_is_near),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
