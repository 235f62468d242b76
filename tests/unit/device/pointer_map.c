/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../assert_at.h"
#include <string.h>

#include "device/pointer_map.h"

static struct pointer_map map;

static const void *key(uintptr_t number)
{
	return (const void *)(number * 64 + 64);
}

static void values_are_found(void **state)
{
	(void)state;
	assert_int_equal(pointer_map_get(&map, key(1)), 0);
	for (uintptr_t i = 0; i < 5000; i++)
		assert_true(pointer_map_set(&map, key(i), i + 1));
	for (uintptr_t i = 0; i < 5000; i++)
		assert_int_equal_at(i, pointer_map_get(&map, key(i)), i + 1);
	assert_true(pointer_map_set(&map, key(7), 77));
	assert_int_equal(pointer_map_get(&map, key(7)), 77);
	pointer_map_clear(&map);
	assert_int_equal(pointer_map_get(&map, key(7)), 0);
	assert_true(pointer_map_set(&map, key(7), 78));
	assert_int_equal(pointer_map_get(&map, key(7)), 78);
}

static void a_full_table_says_so(void **state)
{
	uintptr_t i = 0;

	(void)state;
	memset((void *)&map, 0, sizeof(map));
	while (i < 2 * POINTER_MAP_SLOT_COUNT && pointer_map_set(&map, key(i), 1))
		i++;
	assert_int_equal(i, POINTER_MAP_SLOT_COUNT);
	assert_int_equal(pointer_map_get(&map, key(i)), 0);
	assert_true(pointer_map_set(&map, key(3), 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_found),
		cmocka_unit_test(a_full_table_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
