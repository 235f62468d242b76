/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The table of live blocks against a plain array, alone and with many threads, and in a forked
 * child, where it is empty.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wrappers/memory/private.h"

enum { ADDRESSES = 50000, STEPS = 400000, THREADS = 8 };

static uint64_t draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

/* Addresses of its own, close to each other as those of an allocator are. */
static void random_steps(uint64_t base, uint64_t seed)
{
	uint32_t *sizes = calloc(ADDRESSES, sizeof(*sizes));

	assert_non_null(sizes);
	for (int i = 0; i < STEPS; i++) {
		uint64_t which = draw(&seed) % ADDRESSES;
		struct memory_block block = {.address = base + which * 8}, previous;

		if (draw(&seed) % 2) {
			block.size = (draw(&seed) % 1000 + 1) & MEMORY_BLOCK_SIZE_MASK;
			block.site = which % 1000 & MEMORY_BLOCK_SITE_MASK;
			assert_true(memory_block_add(&block, &previous));
			assert_int_equal(previous.address != 0, sizes[which] != 0);
			assert_int_equal(previous.size, sizes[which]);
			sizes[which] = (uint32_t)block.size;
		} else {
			bool known = memory_block_remove(block.address, &block);

			assert_int_equal(known, sizes[which] != 0);
			if (known) {
				assert_int_equal(block.size, sizes[which]);
				assert_int_equal(block.site, which % 1000);
			}
			sizes[which] = 0;
		}
	}
	for (uint64_t which = 0; which < ADDRESSES; which++) {
		struct memory_block block;

		assert_int_equal(memory_block_remove(base + which * 8, &block), sizes[which] != 0);
	}
	free(sizes);
}

static void blocks_are_found_until_removed(void **state)
{
	(void)state;
	random_steps(0x555500000000, 1);
}

static void *one_thread(void *argument)
{
	uint64_t number = (uintptr_t)argument;

	random_steps(0x7f0000000000 + number * 0x10000000, number + 2);
	return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
	pthread_t ids[THREADS];

	(void)state;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&ids[i], NULL, one_thread, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
}

static void a_child_begins_with_nothing(void **state)
{
	struct memory_block block = {.address = 0x1230, .size = 7, .site = 1}, previous;
	pid_t child;
	int status = -1;

	(void)state;
	assert_true(memory_block_add(&block, &previous));
	child = fork();
	if (!child) {
		bool known = memory_block_remove(0x1230, &block);

		random_steps(0x1000, 99);
		_exit(known ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(memory_block_remove(0x1230, &block));
	assert_int_equal(block.size, 7);
}

static int setup(void **state)
{
	(void)state;
	return memory_blocks_init();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_found_until_removed),
		cmocka_unit_test(threads_do_not_disturb_each_other),
		cmocka_unit_test(a_child_begins_with_nothing),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
