/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads of kymo's own: their stacks end where their mapping does, whatever lies behind them, and
 * none is ever taken for the program's.
 */
#include "core/own_thread.h"
#include "core/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 4

static atomic_ulong ran_at[THREADS]; /* an address on the stack of each */

static void note_stack(void *argument)
{
	volatile char here = 0;

	atomic_store((atomic_ulong *)argument, (unsigned long)&here);
}

/* Where the mapping ends that the address is in, and what is behind. */
static unsigned long end_of_mapping(unsigned long address, char *ret_next)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned long start, end = 0, found = 0;
	char line[512], permissions[8];

	assert_non_null(file);
	*ret_next = '\0';
	while (!*ret_next && fgets(line, sizeof(line), file)) {
		assert_int_equal(sscanf(line, "%lx-%lx %7s", &start, &end, permissions), 3);
		if (found && start == found)
			*ret_next = permissions[0];
		else if (address >= start && address < end)
			found = end;
	}
	fclose(file);
	return found;
}

/* Several in a row: the kernel puts each beside the one before. */
static void stacks_end(void **state)
{
	static struct own_thread threads[THREADS];
	char next;

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(own_thread_start(&threads[i], "kymo-test", note_stack, &ran_at[i]),
				 0);
		while (!atomic_load(&ran_at[i]))
			usleep(1000);
	}
	for (int i = 0; i < THREADS; i++) {
		unsigned long stack = atomic_load(&ran_at[i]);

		assert_true(end_of_mapping(stack, &next) - stack < 1ul << 20);
		assert_int_equal(next, '-');
	}
}

static struct threads registry;
static struct own_thread late;
static struct thread *block;
static atomic_int may_begin, has_begun;

static void begin_late(void *argument)
{
	(void)argument;
	while (!atomic_load(&may_begin))
		usleep(1000);
	own_thread_announce_registry_block(&late, &registry, block);
	atomic_store(&has_begun, late.tid);
}

/* Between its making and its first step it is one that is coming (live_threads.c), not one that was
 * found. */
static void is_never_unknown(void **state)
{
	int tid;

	(void)state;
	assert_int_equal(threads_init(&registry, 8), 0);
	block = threads_allocate_block(&registry, THREAD_ORIGIN_INTERNAL, THREADS_NO_PARENT);
	assert_non_null(block);
	assert_int_equal(own_thread_start_with_registry_block(&late, "kymo-test", begin_late, NULL,
							      &registry),
			 0);
	assert_int_equal(registry.not_yet_running_count, 1);
	atomic_store(&may_begin, 1);
	while (!(tid = atomic_load(&has_begun)))
		usleep(1000);
	assert_int_equal(registry.not_yet_running_count, 0);
	assert_ptr_equal(threads_find_by_tid(&registry, (uint32_t)tid), block);
	assert_ptr_equal(threads_take_announced(&registry), block);
	/* The kernel says when it has ended. */
	for (int i = 0; i < 5000 && !own_thread_is_gone(&late); i++)
		usleep(1000);
	assert_true(own_thread_is_gone(&late));
}

/* A thread of the program's does not start one: the helper does, when it next looks. */
static void is_started_by_the_helper(void **state)
{
	static struct own_thread asked;
	static atomic_ulong asked_ran_at;

	(void)state;
	own_thread_request_start(&asked, "kymo-test", note_stack, &asked_ran_at, &registry);
	assert_true(own_thread_is_gone(&asked));
	assert_int_equal(registry.not_yet_running_count, 1);
	assert_int_equal(atomic_load(&asked_ran_at), 0);
	own_threads_start_all_requested(&registry);
	for (int i = 0; i < 5000 && !atomic_load(&asked_ran_at); i++)
		usleep(1000);
	assert_int_not_equal(atomic_load(&asked_ran_at), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_end),
		cmocka_unit_test(is_never_unknown),
		cmocka_unit_test(is_started_by_the_helper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
