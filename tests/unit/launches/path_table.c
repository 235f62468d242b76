/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Numbers of launch paths: each path has one, however many threads add at once, and a child begins
 * with none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launches/path_table.h"

static struct path_identity identify(uint64_t outer, uint64_t inner, uint64_t variant)
{
	uint64_t frames[3] = {inner, outer, 0x1000};

	return path_identity_of_frames(frames, 3, variant);
}

static uint32_t add(struct path_identity path)
{
	uint32_t number = path_table_allocate_number();

	assert_int_not_equal(number, 0);
	path_table_add(path, number);
	return number;
}

static void test_a_path_keeps_its_number(void **state)
{
	uint32_t numbers[1000];

	(void)state;
	assert_true(path_table_create());
	path_table_clear();
	for (uint64_t i = 0; i < 1000; i++) {
		assert_int_equal(path_table_find(identify(i, 7, 0)), 0);
		numbers[i] = add(identify(i, 7, 0));
	}
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(path_table_find(identify(i, 7, 0)), numbers[i]);
	assert_int_equal(numbers[0], 1);
	assert_int_equal(numbers[999], 1000);
}

static void test_order_depth_and_variant_count(void **state)
{
	uint64_t frames[3] = {1, 2, 3};

	(void)state;
	assert_true(path_table_create());
	path_table_clear();
	add(identify(1, 2, 0));
	assert_int_equal(path_table_find(identify(2, 1, 0)), 0);
	assert_int_equal(path_table_find(identify(1, 2, 1)), 0);
	add(path_identity_of_frames(frames, 2, 0));
	assert_int_equal(path_table_find(path_identity_of_frames(frames, 3, 0)), 0);
	assert_int_equal(path_table_find(path_identity_of_frames(frames, 2, 0)), 2);
}

static void test_a_full_table_gives_no_more_numbers(void **state)
{
	uint32_t count = 0;

	(void)state;
	assert_true(path_table_create());
	path_table_clear();
	while (path_table_allocate_number())
		count++;
	assert_int_equal(count, PATH_TABLE_PATHS_MAX);
	path_table_clear();
	assert_int_equal(path_table_allocate_number(), 1);
}

static void test_a_child_begins_with_none(void **state)
{
	int status;
	pid_t child;

	(void)state;
	assert_true(path_table_create());
	path_table_clear();
	add(identify(1, 2, 0));
	child = fork();
	if (child == 0)
		_exit(path_table_find(identify(1, 2, 0)) != 0 || path_table_allocate_number() != 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(path_table_find(identify(1, 2, 0)), 1);
}

/* ---- threads ---- */

#define THREADS 4
#define PATHS   5000

static _Atomic uint32_t found_wrong;

static void *add_all(void *unused)
{
	uint32_t own[PATHS];

	for (uint64_t i = 0; i < PATHS; i++) {
		struct path_identity path = identify(i, i * 3, 0);

		own[i] = path_table_find(path);
		if (!own[i])
			own[i] = add(path);
	}
	for (uint64_t i = 0; i < PATHS; i++)
		found_wrong += path_table_find(identify(i, i * 3, 0)) == 0;
	return unused;
}

static void test_threads_add_at_once(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	assert_true(path_table_create());
	path_table_clear();
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_all, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(found_wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_path_keeps_its_number),
		cmocka_unit_test(test_order_depth_and_variant_count),
		cmocka_unit_test(test_a_full_table_gives_no_more_numbers),
		cmocka_unit_test(test_a_child_begins_with_none),
		cmocka_unit_test(test_threads_add_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
