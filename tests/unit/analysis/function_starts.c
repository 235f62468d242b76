/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Function starts from the unwind table, checked on this very program, which knows where its own
 * functions are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <link.h>

#include "analysis/symbols/function_starts.h"

__attribute__((noinline)) static int one_function(int x)
{
	return x * 3 + 1;
}

static uint64_t load_address(void)
{
	struct link_map *map = NULL;
	void *program = dlopen(NULL, RTLD_NOW);

	assert_non_null(program);
	assert_int_equal(dlinfo(program, RTLD_DI_LINKMAP, &map), 0);
	return map->l_addr;
}

static void own_functions_are_found(void **state)
{
	int (*volatile function)(int) = one_function;
	uint64_t start = (uint64_t)(uintptr_t)function - load_address();
	struct function_starts starts;

	(void)state;
	assert_int_equal(function(1), 4);
	function_starts_read(&starts, "/proc/self/exe", NULL, 0);
	assert_true(starts.count > 3);
	assert_int_equal(function_starts_find_by_address(&starts, start), start);
	assert_int_equal(function_starts_find_by_address(&starts, start + 1), start);
	assert_true(function_starts_find_by_address(&starts, start - 1) < start);
	assert_int_equal(function_starts_find_by_address(&starts, 0), 0);
	function_starts_deinit(&starts);
}

static void another_file_counts_as_none(void **state)
{
	static const uint8_t build_id[20] = {1};
	struct function_starts starts;

	(void)state;
	function_starts_read(&starts, "/proc/self/exe", build_id, sizeof(build_id));
	assert_int_equal(starts.count, 0);
	assert_int_equal(function_starts_find_by_address(&starts, 0x1000), 0);
	function_starts_deinit(&starts);
	function_starts_read(&starts, "/nowhere/at/all", NULL, 0);
	assert_int_equal(starts.count, 0);
	function_starts_read(&starts, "/proc/self/status", NULL, 0);
	assert_int_equal(starts.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_functions_are_found),
		cmocka_unit_test(another_file_counts_as_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
