/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which kernels are counted, by name and launch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "device/kernel_filter.h"
#include "sink.h"

static void set(const char *include, const char *exclude, const char *range)
{
	setenv("KYMO_KERNEL_INCLUDE", include, 1);
	setenv("KYMO_KERNEL_EXCLUDE", exclude, 1);
	setenv("KYMO_KERNEL_RANGE", range, 1);
	sink_start();
	kernel_filter_read_environment();
}

static bool counts(const char *name, uint64_t launch)
{
	return kernel_filter_get_exclusion_reason(name, launch) == NULL;
}

static void everything_but_communication(void **state)
{
	(void)state;
	set("", "", "");
	assert_true(counts("gemm", 1));
	assert_true(counts("synccl_x", 1)); /* only at the beginning of a word */
	assert_false(counts("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1));
	assert_false(counts("void at::nccl_kernel<float>", 1));
	assert_false(counts("nvshmemi_barrier", 1));
	assert_false(counts("rcclGenericKernel", 1));
	assert_non_null(
		strstr(kernel_filter_get_exclusion_reason("ncclKernel", 1), "KYMO_KERNEL_INCLUDE"));
}

static void names(void **state)
{
	(void)state;
	set("gemm|nccl", "small$", "");
	assert_true(counts("sgemm_128", 1));
	assert_false(counts("gemm_small", 1));
	assert_false(counts("relu", 1));
	assert_true(counts("ncclDevKernel", 1)); /* by its name */
}

static void launches(void **state)
{
	(void)state;
	set("", "", "2-3,7,10-");
	assert_false(counts("a", 1));
	assert_true(counts("a", 2));
	assert_true(counts("a", 3));
	assert_false(counts("a", 4));
	assert_true(counts("a", 7));
	assert_false(counts("a", 9));
	assert_true(counts("a", 10));
	assert_true(counts("a", UINT64_MAX));
	set("", "", "[1-2, 4]"); /* as rocprofv3 writes it */
	assert_true(counts("a", 4));
	assert_false(counts("a", 3));
	set("", "", " 1;2,,4  6 "); /* as lists of other settings are written */
	assert_true(counts("a", 2));
	assert_true(counts("a", 6));
	assert_false(counts("a", 5));
}

static void many_launches(void **state)
{
	char range[4096];
	size_t length = 0;

	(void)state;
	for (unsigned i = 1; i < 1000; i += 2)
		length += (size_t)snprintf(range + length, sizeof(range) - length, "%u,", i);
	set("", "", range);
	assert_int_equal(told.said, 0);
	assert_true(counts("a", 1));
	assert_true(counts("a", 999));
	assert_false(counts("a", 998));
}

static void what_is_wrong_counts_nothing_and_is_said(void **state)
{
	static const char *const ranges[] = {"x",  "0", "5-2", "1-2-3",
					     "-4", ",", "[]",  "1-18446744073709551616"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		set("", "", ranges[i]);
		assert_false(counts("a", 1));
		assert_int_equal(told.said, 1);
		assert_non_null(strstr(told.last_said, "KYMO_KERNEL_RANGE"));
	}
	set("(", "", "");
	assert_false(counts("a", 1));
	assert_non_null(strstr(told.last_said, "KYMO_KERNEL_INCLUDE"));
	set("", "[", "");
	assert_false(counts("a", 1));
	set("", "((a{255}){255}){255}", ""); /* would take all memory of the program */
	assert_false(counts("a", 1));
	assert_non_null(strstr(told.last_said, "KYMO_KERNEL_EXCLUDE"));
	set("", "", "");
	assert_true(counts("a", 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_but_communication),
		cmocka_unit_test(names),
		cmocka_unit_test(launches),
		cmocka_unit_test(many_launches),
		cmocka_unit_test(what_is_wrong_counts_nothing_and_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
