/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * kymo's own declarations of OpenCL beside those of Khronos: places in the loaders' table and
 * numbers. Both declare the same names, so kymo's come as numbers from opencl_numbers.c.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../assert_at.h"
#include "common/array.h"
#include "opencl_numbers.h"

static void functions_are_in_their_places(void **state)
{
	(void)state;
#define OPENCL_CALL_ROW(number, type, name, parameters, arguments, addresses)                      \
	assert_int_equal(offsetof(cl_icd_dispatch, name), (number) * sizeof(void *));
#define OPENCL_HOOKED_CALL_ROW OPENCL_CALL_ROW
#define OPENCL_VOID_CALL_ROW(number, name, parameters, arguments, addresses)                       \
	assert_int_equal(offsetof(cl_icd_dispatch, name), (number) * sizeof(void *));
#define OPENCL_HOOKED_VOID_CALL_ROW OPENCL_VOID_CALL_ROW
#define OPENCL_ABSENT_ROW(number, name)                                                            \
	assert_int_equal(offsetof(cl_icd_dispatch, name), (number) * sizeof(void *));
#include "device/opencl/calls_table.h"
	assert_int_equal(sizeof(cl_icd_dispatch), opencl_number_calls * sizeof(void *));
}

static void numbers_are_theirs(void **state)
{
	const struct {
		long ours, theirs;
	} numbers[] = {
#define X(ours, theirs) {opencl_number_##ours, theirs},
		OPENCL_NUMBERS(X)
#undef X
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		assert_int_equal_at(i, numbers[i].ours, numbers[i].theirs);
}

static void types_have_their_sizes(void **state)
{
	(void)state;
	assert_int_equal(opencl_size_properties, sizeof(cl_command_queue_properties));
	assert_int_equal(opencl_size_queue_properties, sizeof(cl_queue_properties));
	assert_int_equal(opencl_size_context_properties, sizeof(cl_context_properties));
	assert_int_equal(opencl_size_mem_flags, sizeof(cl_mem_flags));
	assert_int_equal(opencl_size_bool, sizeof(cl_bool));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_in_their_places),
		cmocka_unit_test(numbers_are_theirs),
		cmocka_unit_test(types_have_their_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
