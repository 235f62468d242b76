/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The engine that rewrites global offset tables, on libraries linked in every way: bound late and
 * at load with read-only tables, without procedure linkage table, with pointers in data, with a
 * definition of their own, opened later, closed and opened again.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../assert_at.h"
#include "wrappers/got/engine.h"
#include "wrappers/got/got.h"

int got_sample_answer(int argument);
int got_lazy(int argument);
int got_now(int argument);
int got_without_plt(int argument);
int got_own(int argument);
int (**got_pointer(void))(int);
int (*const *got_constant(void))(int);

static _Atomic(void *) answer, answer_again, missing;
static int calls, calls_again;

static int replacement(int argument)
{
	calls++;
	return ((int (*)(int))atomic_load(&answer))(argument);
}

static int replacement_again(int argument)
{
	calls_again++;
	return ((int (*)(int))atomic_load(&answer_again))(argument);
}

static int replacement_elsewhere(int argument)
{
	(void)argument;
	abort();
}

static struct got_wrapper wrappers[] = {
	{.symbol = "got_sample_answer", .replacement = (void *)replacement, .original = &answer},
	{.symbol = "got_sample_answer",
	 .replacement = (void *)replacement_elsewhere,
	 .original = &missing,
	 .library = "libelsewhere"},
};
static struct got_wrapper again = {.symbol = "got_sample_answer",
				   .replacement = (void *)replacement_again,
				   .original = &answer_again,
				   .library = "libgot_defines"};

static void expect_calls(int wrapped, int (*function)(int))
{
	calls = 0;
	assert_int_equal(function(1), 2);
	assert_int_equal(calls, wrapped);
}

/* No page of the library's is both writable now and was not before. */
static char protection_of(const void *address)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long low, high;
	char line[4096], protection[8] = "";

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s", &low, &high, protection) == 3 &&
		    (unsigned long)address >= low && (unsigned long)address < high)
			break;
	}
	fclose(maps);
	return protection[1];
}

static void test_calls_between_libraries(void **state)
{
	(void)state;
	assert_int_equal(got_add_wrappers(wrappers, 2), 0);
	expect_calls(0, got_lazy);
	got_scan_and_rewrite();
	expect_calls(1, got_lazy);
	expect_calls(1, got_now);
	expect_calls(1, got_without_plt);
	expect_calls(1, got_sample_answer);
	expect_calls(1, *got_pointer());
	expect_calls(1, *got_constant());
	assert_true(wrappers[0].rewritten_slot_count >= 5);
	assert_int_equal(wrappers[1].rewritten_slot_count, 0);
}

static void test_read_only_again(void **state)
{
	(void)state;
	assert_int_equal(protection_of((const void *)got_constant()), '-');
	assert_int_equal(protection_of((const void *)got_pointer()), 'w');
}

/* A library linked with -Bsymbolic that has the function itself. */
static void test_own_definition(void **state)
{
	(void)state;
	calls = 0;
	assert_int_equal(got_own(1), 1001);
	assert_int_equal(calls, 0);
}

static void test_second_scan(void **state)
{
	uint32_t before = wrappers[0].rewritten_slot_count;

	(void)state;
	got_scan_and_rewrite();
	assert_int_equal(wrappers[0].rewritten_slot_count, before);
}

static void *open_plugin(void)
{
	void *handle = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		fail_msg("%s", dlerror());
	return handle;
}

static void test_opened_later(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		void *handle = open_plugin();
		int (*function)(int) = (int (*)(int))dlsym(handle, "got_plugin");
		assert_non_null(function);
		expect_calls(0, function);
		got_scan_and_rewrite();
		expect_calls(1, function);
		dlclose(handle);
	}
}

/* Scans beside a thread that opens and closes. */
static void *open_and_close(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED)) {
		void *handle = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
		if (!handle)
			return stop;
		((int (*)(int))dlsym(handle, "got_plugin"))(1);
		dlclose(handle);
	}
	return NULL;
}

static void test_scans_beside_loads(void **state)
{
	pthread_t threads[2];
	int stop = 0;

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal_at(i, pthread_create(&threads[i], NULL, open_and_close, &stop), 0);
	for (int i = 0; i < 2000; i++)
		got_scan_and_rewrite();
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++) {
		void *problem;
		pthread_join(threads[i], &problem);
		assert_null(problem);
	}
	got_scan_and_rewrite();
	expect_calls(1, got_lazy);
}

static void test_two_wrappers(void **state)
{
	(void)state;
	assert_int_equal(got_add_wrappers(&again, 1), 0);
	got_scan_and_rewrite();
	calls_again = 0;
	expect_calls(1, got_lazy);
	expect_calls(1, got_now);
	assert_int_equal(calls_again, 2);
}

static void test_found_by_name(void **state)
{
	void *function = dlsym(RTLD_DEFAULT, "got_sample_answer");

	(void)state;
	assert_true(got_name_is_wrapped("got_sample_answer"));
	assert_false(got_name_is_wrapped("got_sample_other"));
	assert_ptr_equal(got_find_replacement("got_sample_answer", function), replacement_again);
	assert_ptr_equal(got_find_replacement("got_sample_answer", function + 1), function + 1);
}

static void test_restore(void **state)
{
	(void)state;
	got_restore_originals();
	calls_again = 0;
	expect_calls(0, got_lazy);
	expect_calls(0, got_now);
	expect_calls(0, got_without_plt);
	expect_calls(0, *got_pointer());
	expect_calls(0, *got_constant());
	assert_int_equal(calls_again, 0);
	assert_int_equal(protection_of((const void *)got_constant()), '-');
}

/* Who left comes again. */
static void test_resume(void **state)
{
	(void)state;
	got_scan_and_rewrite();
	expect_calls(0, got_lazy);
	got_allow_rewriting_again();
	expect_calls(0, got_lazy);
	got_scan_and_rewrite();
	expect_calls(1, got_lazy);
	expect_calls(1, got_now);
	expect_calls(1, *got_constant());
	assert_false(got_thread_is_at_lock());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls_between_libraries),
		cmocka_unit_test(test_read_only_again),
		cmocka_unit_test(test_own_definition),
		cmocka_unit_test(test_second_scan),
		cmocka_unit_test(test_opened_later),
		cmocka_unit_test(test_scans_beside_loads),
		cmocka_unit_test(test_two_wrappers),
		cmocka_unit_test(test_found_by_name),
		cmocka_unit_test(test_restore),
		cmocka_unit_test(test_resume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
