/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Text without stdio.
 */
#include "unit/core/core_test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"

static void numbers_are_written_as_printf_would(void **state)
{
	static const uint64_t values[] = {
		0,          1,          9,         10,         99,
		100,        15,         16,        255,        4096,
		UINT32_MAX, 1ull << 32, INT64_MAX, UINT64_MAX, 10000000000000000000ull};

	(void)state;
	for (size_t i = 0; i < LENGTH(values); i++) {
		char buffer[64], expected[64];
		struct text_buffer text = text_buffer_init(buffer, sizeof(buffer));

		text_append_unsigned(&text, values[i]);
		text_append_character(&text, ' ');
		text_append_hex(&text, values[i]);
		snprintf(expected, sizeof(expected), "%" PRIu64 " %" PRIx64, values[i], values[i]);
		assert_string_equal(buffer, expected);
		assert_int_equal(text.length, strlen(expected));
	}
}

static void parts_are_appended(void **state)
{
	char buffer[64];
	struct text_buffer text = text_buffer_init(buffer, sizeof(buffer));

	(void)state;
	assert_string_equal(buffer, "");
	text_append_string(&text, "/proc/");
	text_append_unsigned(&text, 42);
	text_append_string(&text, NULL);
	text_append_string(&text, "/maps");
	assert_string_equal(buffer, "/proc/42/maps");
}

static void a_full_buffer_is_cut_and_terminated(void **state)
{
	char buffer[9];
	struct text_buffer text = text_buffer_init(buffer, 8);

	(void)state;
	buffer[8] = 'x';
	text_append_string(&text, "abc");
	text_append_unsigned(&text, 1234567890);
	text_append_hex(&text, 0xffff);
	assert_string_equal(buffer, "abc1234");
	assert_int_equal(buffer[8], 'x');
}

static void a_buffer_of_one_byte_stays_empty(void **state)
{
	char buffer[2] = "x";
	struct text_buffer text = text_buffer_init(buffer, 1);

	(void)state;
	text_append_string(&text, "abc");
	assert_string_equal(buffer, "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_written_as_printf_would),
		cmocka_unit_test(parts_are_appended),
		cmocka_unit_test(a_full_buffer_is_cut_and_terminated),
		cmocka_unit_test(a_buffer_of_one_byte_stays_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
