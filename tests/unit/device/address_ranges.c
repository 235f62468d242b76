/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "device/address_ranges.h"

static struct address_ranges ranges = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const void *at(uintptr_t address)
{
	return (const void *)address; // NOLINT: nothing is read there
}

static int forget(void **state)
{
	(void)state;
	address_ranges_reset_forked(&ranges);
	return 0;
}

static void every_address_of_a_range_is_in_it(void **state)
{
	(void)state;
	assert_false(address_ranges_contain(&ranges, at(4096)));
	assert_true(address_ranges_add(&ranges, at(4096), 100));
	assert_true(address_ranges_add(&ranges, at(1000), 50));
	assert_true(address_ranges_add(&ranges, at(9000), 1));
	assert_false(address_ranges_contain(&ranges, at(4095)));
	assert_true(address_ranges_contain(&ranges, at(4096)));
	assert_true(address_ranges_contain(&ranges, at(4195)));
	assert_false(address_ranges_contain(&ranges, at(4196)));
	assert_true(address_ranges_contain(&ranges, at(1049)));
	assert_false(address_ranges_contain(&ranges, at(1050)));
	assert_true(address_ranges_contain(&ranges, at(9000)));
	assert_false(address_ranges_contain(&ranges, NULL));
}

static void only_the_begin_removes(void **state)
{
	(void)state;
	assert_true(address_ranges_add(&ranges, at(4096), 100));
	assert_int_equal(address_ranges_remove(&ranges, at(4097)), 0);
	assert_int_equal(address_ranges_remove(&ranges, NULL), 0);
	assert_int_equal(address_ranges_remove(&ranges, at(4096)), 100);
	assert_int_equal(address_ranges_remove(&ranges, at(4096)), 0);
	assert_false(address_ranges_contain(&ranges, at(4096)));
}

static void what_is_added_takes_the_place_of_what_was(void **state)
{
	(void)state;
	for (uintptr_t i = 0; i < 10; i++)
		assert_true(address_ranges_add(&ranges, at(1000 + i * 100), 100));
	assert_true(address_ranges_add(&ranges, at(1150), 300));
	assert_false(address_ranges_contain(&ranges, at(1149)));
	assert_false(address_ranges_contain(&ranges, at(1499)));
	assert_true(address_ranges_contain(&ranges, at(1500)));
	assert_true(address_ranges_contain(&ranges, at(1099)));
	assert_int_equal(address_ranges_remove(&ranges, at(1150)), 300);
	assert_int_equal(address_ranges_remove(&ranges, at(1200)), 0);
	assert_int_equal(address_ranges_remove(&ranges, at(1900)), 100);
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	assert_false(address_ranges_add(&ranges, NULL, 10));
	assert_false(address_ranges_add(&ranges, at(10), 0));
	assert_false(address_ranges_add(&ranges, at(10), SIZE_MAX));
	assert_false(address_ranges_contain(&ranges, at(10)));
}

static void many_in_any_order(void **state)
{
	(void)state;
	for (uintptr_t i = 0; i < 10000; i++)
		assert_true(address_ranges_add(&ranges, at(4096 + i * 7919 % 10000 * 64), 32));
	for (uintptr_t i = 0; i < 10000; i++) {
		assert_true(address_ranges_contain(&ranges, at(4096 + i * 64 + 31)));
		assert_false(address_ranges_contain(&ranges, at(4096 + i * 64 + 32)));
	}
	for (uintptr_t i = 0; i < 10000; i++)
		assert_int_equal(address_ranges_remove(&ranges, at(4096 + i * 64)), 32);
	assert_int_equal(ranges.count, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, forget)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_address_of_a_range_is_in_it),
		TEST(only_the_begin_removes),
		TEST(what_is_added_takes_the_place_of_what_was),
		TEST(nonsense_is_refused),
		TEST(many_in_any_order),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(ranges.sorted);
	return failed;
}
