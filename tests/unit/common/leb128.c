/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * LEB128 and zigzag: round trips, known bytes, and input that is no number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/leb128.h"

static void round_trip(uint64_t value)
{
	uint8_t bytes[LEB128_BYTES_MAX + 1];
	uint8_t *end = leb128_write(bytes, value);
	const uint8_t *at = bytes;
	uint64_t back;

	assert_in_range(end - bytes, 1, LEB128_BYTES_MAX);
	assert_true(leb128_read(&at, end, &back));
	assert_int_equal(back, value);
	assert_ptr_equal(at, end);
	assert_int_equal(zigzag_decode(zigzag_encode((int64_t)value)), (int64_t)value);
	for (const uint8_t *cut = bytes; cut < end; cut++) {
		at = bytes;
		assert_false(leb128_read(&at, cut, &back));
		assert_ptr_equal(at, bytes); /* errors take nothing */
	}
}

static void every_length_comes_back(void **state)
{
	(void)state;
	for (unsigned shift = 0; shift < 64; shift++) {
		round_trip(1ull << shift);
		round_trip((1ull << shift) - 1);
		round_trip(~(1ull << shift));
	}
	round_trip(UINT64_MAX);
}

static void bytes_are_as_dwarf_has_them(void **state)
{
	uint8_t bytes[LEB128_BYTES_MAX];

	(void)state;
	assert_int_equal(leb128_write(bytes, 127) - bytes, 1);
	assert_memory_equal(bytes, "\x7f", 1);
	assert_int_equal(leb128_write(bytes, 128) - bytes, 2);
	assert_memory_equal(bytes, "\x80\x01", 2);
	assert_int_equal(leb128_write(bytes, 624485) - bytes, 3);
	assert_memory_equal(bytes, "\xe5\x8e\x26", 3);
	assert_int_equal(leb128_write(bytes, 16383) - bytes, 2);
	assert_int_equal(leb128_write(bytes, 16384) - bytes, 3);
}

static void small_differences_of_either_sign_are_short(void **state)
{
	uint8_t bytes[LEB128_BYTES_MAX];

	(void)state;
	assert_int_equal(zigzag_encode(0), 0);
	assert_int_equal(zigzag_encode(-1), 1);
	assert_int_equal(zigzag_encode(1), 2);
	assert_true(zigzag_encode(INT64_MIN) == UINT64_MAX);
	assert_int_equal(leb128_write_zigzag(bytes, -64) - bytes, 1);
	assert_int_equal(leb128_write_zigzag(bytes, 63) - bytes, 1);
	assert_int_equal(leb128_write_zigzag(bytes, 64) - bytes, 2);
}

static void more_than_64_bits_are_refused(void **state)
{
	static const uint8_t too_large[] = {0xff, 0xff, 0xff, 0xff, 0xff,
					    0xff, 0xff, 0xff, 0xff, 0x02};
	static const uint8_t too_long[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
					   0x80, 0x80, 0x80, 0x80, 0x00};
	const uint8_t *at = too_large;
	uint64_t value;

	(void)state;
	assert_false(leb128_read(&at, at + sizeof(too_large), &value));
	at = too_long;
	assert_false(leb128_read(&at, at + sizeof(too_long), &value));
}

static void padding_with_zeros_is_accepted(void **state)
{
	static const uint8_t padded[] = {0x81, 0x80, 0x00};
	const uint8_t *at = padded;
	uint64_t value;

	(void)state;
	assert_true(leb128_read(&at, at + sizeof(padded), &value));
	assert_int_equal(value, 1);
}

static void fixed_numbers_are_little_endian(void **state)
{
	uint8_t bytes[8];

	(void)state;
	assert_int_equal(write_fixed64_little_endian(bytes, 0x0123456789abcdef) - bytes, 8);
	assert_memory_equal(bytes, "\xef\xcd\xab\x89\x67\x45\x23\x01", 8);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_comes_back),
		cmocka_unit_test(bytes_are_as_dwarf_has_them),
		cmocka_unit_test(small_differences_of_either_sign_are_short),
		cmocka_unit_test(more_than_64_bits_are_refused),
		cmocka_unit_test(padding_with_zeros_is_accepted),
		cmocka_unit_test(fixed_numbers_are_little_endian),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
