/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../assert_at.h"
#include "analysis/module_map.h"

static void add(struct module_map *map, uint64_t start, uint64_t end, uint64_t loaded,
		uint64_t unloaded, uint32_t module)
{
	struct module_instance instance = {start, end, loaded, unloaded, module};

	assert_int_equal(module_map_add_instance(map, &instance), 0);
}

static void empty_map_knows_nothing(void **state)
{
	struct module_map map = {0};

	(void)state;
	assert_int_equal(module_map_sort_instances(&map), 0);
	assert_int_equal(module_map_find_module(&map, 42, 0), MODULE_MAP_NO_MODULE);
	module_map_deinit(&map);
}

static void without_overlaps_time_does_not_matter(void **state)
{
	struct module_map map = {0};

	(void)state;
	add(&map, 0x3000, 0x4000, 500, UINT64_MAX, 3);
	add(&map, 0x1000, 0x2000, 0, 400, 1);
	assert_int_equal(module_map_sort_instances(&map), 0);
	assert_false(map.overlaps);
	assert_int_equal(module_map_find_module(&map, 0x1000, 900), 1);
	assert_int_equal(module_map_find_module(&map, 0x1fff, 0), 1);
	assert_int_equal(module_map_find_module(&map, 0x2000, 0), MODULE_MAP_NO_MODULE);
	assert_int_equal(module_map_find_module(&map, 0x3fff, 0), 3);
	assert_int_equal(module_map_find_module(&map, 0xfff, 0), MODULE_MAP_NO_MODULE);
	assert_int_equal(module_map_find_module(&map, UINT64_MAX, 0), MODULE_MAP_NO_MODULE);
	module_map_deinit(&map);
}

static void the_one_loaded_then_counts(void **state)
{
	struct module_map map = {0};

	(void)state;
	add(&map, 0x1000, 0x9000, 100, 200, 1);
	add(&map, 0x1000, 0x2000, 200, 300, 2);
	add(&map, 0x0800, 0x1800, 300, UINT64_MAX, 3);
	assert_int_equal(module_map_sort_instances(&map), 0);
	assert_true(map.overlaps);
	assert_int_equal(module_map_find_module(&map, 0x1400, 150), 1);
	assert_int_equal(module_map_find_module(&map, 0x1400, 250), 2);
	assert_int_equal(module_map_find_module(&map, 0x1400, 350), 3);
	assert_int_equal(module_map_find_module(&map, 0x8000, 150), 1);
	/* Between loads and before the first, the likeliest one. */
	assert_int_equal(module_map_find_module(&map, 0x1400, 50), 1);
	assert_int_equal(module_map_find_module(&map, 0x900, 50), 3);
	module_map_deinit(&map);
}

static void epochs_change_with_loads(void **state)
{
	struct module_map map = {0};

	(void)state;
	add(&map, 0x1000, 0x2000, 100, 200, 1);
	add(&map, 0x1000, 0x2000, 250, UINT64_MAX, 2);
	assert_int_equal(module_map_sort_instances(&map), 0);
	assert_true(module_map_move_to_epoch_of_time(&map, 120));
	assert_false(module_map_move_to_epoch_of_time(&map, 150));
	assert_true(module_map_move_to_epoch_of_time(&map, 220));
	assert_true(module_map_move_to_epoch_of_time(&map, 260));
	assert_false(module_map_move_to_epoch_of_time(&map, 1000));
	assert_true(module_map_move_to_epoch_of_time(&map, 120));
	module_map_deinit(&map);
}

static void many_loads_at_one_place(void **state)
{
	struct module_map map = {0};

	(void)state;
	for (uint64_t i = 0; i < 10000; i++)
		add(&map, 0x1000, 0x2000, i * 10, i * 10 + 10, (uint32_t)(i % 2));
	assert_int_equal(module_map_sort_instances(&map), 0);
	for (uint64_t i = 0; i < 10000; i++)
		assert_int_equal_at(i, module_map_find_module(&map, 0x1800, i * 10 + 5), i % 2);
	module_map_deinit(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_map_knows_nothing),
		cmocka_unit_test(without_overlaps_time_does_not_matter),
		cmocka_unit_test(the_one_loaded_then_counts),
		cmocka_unit_test(epochs_change_with_loads),
		cmocka_unit_test(many_loads_at_one_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
