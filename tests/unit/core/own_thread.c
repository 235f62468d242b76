/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads of kymo's own: their stacks end where their mapping does, whatever lies behind them.
 */
#include "core/own_thread.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
