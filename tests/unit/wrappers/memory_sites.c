/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sites: one number a stack, whichever thread asks; sums and peaks; a full table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "wrappers/memory/private.h"

enum { DEPTH = 8, THREADS = 8, STACKS = 1000 };

static void stack(uint64_t number, uint64_t *frames)
{
	for (uint64_t i = 0; i < DEPTH; i++)
		frames[i] = 0x400000 + number * 16 + i;
}

static void equal_stacks_have_one_site(void **state)
{
	uint64_t frames[DEPTH];
	uint32_t first, shorter, other;

	(void)state;
	stack(1, frames);
	first = memory_find_or_add_site(frames, DEPTH);
	assert_int_not_equal(first, MEMORY_SITE_NONE);
	assert_int_equal(memory_find_or_add_site(frames, DEPTH), first);
	shorter = memory_find_or_add_site(frames, DEPTH - 1);
	assert_int_not_equal(shorter, first);
	frames[DEPTH - 1]++;
	other = memory_find_or_add_site(frames, DEPTH);
	assert_int_not_equal(other, first);
	assert_int_equal(memory_get_site(first)->frame_count, DEPTH);
	assert_int_equal(memory_site_get_frames(memory_get_site(other))[DEPTH - 1],
			 frames[DEPTH - 1]);
}

static void peak_is_the_most_at_one_time(void **state)
{
	uint64_t frames[] = {42};
	uint32_t site = memory_find_or_add_site(frames, 1);
	const struct memory_site *it = memory_get_site(site);

	(void)state;
	memory_count_allocated_block(site, 100);
	memory_count_allocated_block(site, 50);
	memory_count_freed_block(site, 100, true);
	memory_count_allocated_block(site, 60);
	assert_int_equal(it->allocation_count, 3);
	assert_int_equal(it->free_count, 1);
	assert_int_equal(it->allocated_bytes, 210);
	assert_int_equal(it->freed_bytes, 100);
	assert_int_equal(it->peak_bytes, 150);
	assert_int_equal(it->temporary_count, 1);
	memory_count_freed_block(site, 110, false);
}

static uint64_t get_bytes_at_peak(uint32_t site)
{
	return memory_site_get_bytes_at_peak(memory_get_site(site),
					     memory_get_process_counts()->peak_number);
}

/* The peaks of the two sites are at other times than that of the process. */
static void process_peak_knows_who_held_what(void **state)
{
	uint64_t frames[] = {43, 44};
	uint32_t one = memory_find_or_add_site(&frames[0], 1);
	uint32_t other = memory_find_or_add_site(&frames[1], 1);
	const struct memory_process_counts *process = memory_get_process_counts();

	(void)state;
	memory_count_allocated_block(one, 6000);
	assert_int_equal(process->peak_bytes, 6000);
	assert_int_equal(get_bytes_at_peak(one), 6000);
	memory_count_freed_block(one, 6000, true);
	assert_int_equal(get_bytes_at_peak(one), 6000);
	memory_count_allocated_block(other, 5000);
	memory_count_allocated_block(one, 3000);
	memory_count_freed_block(other, 5000, false);
	memory_count_allocated_block(other, 4000);
	memory_count_freed_block(one, 3000, false);
	memory_count_freed_block(other, 4000, true);
	assert_int_equal(process->live_bytes, 0);
	assert_int_equal(process->peak_bytes, 8000);
	assert_int_equal(get_bytes_at_peak(one), 3000);
	assert_int_equal(get_bytes_at_peak(other), 5000);
}

static uint32_t seen[THREADS][STACKS];

static void *all_stacks(void *argument)
{
	uintptr_t thread = (uintptr_t)argument;
	uint64_t frames[DEPTH];

	for (uint64_t i = 0; i < STACKS; i++) {
		stack(10000 + i, frames);
		seen[thread][i] = memory_find_or_add_site(frames, DEPTH);
		memory_count_allocated_block(seen[thread][i], 1);
	}
	return NULL;
}

static void threads_agree(void **state)
{
	pthread_t ids[THREADS];

	(void)state;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&ids[i], NULL, all_stacks, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	for (int i = 0; i < STACKS; i++) {
		for (int thread = 1; thread < THREADS; thread++)
			assert_int_equal(seen[thread][i], seen[0][i]);
		assert_int_equal(memory_get_site(seen[0][i])->allocation_count, THREADS);
	}
}

/* The last test: afterwards there is no room. */
static void a_full_table_says_so(void **state)
{
	uint64_t frames[DEPTH];
	uint32_t none = 0, site;

	(void)state;
	for (uint64_t i = 0; i < MEMORY_SITES_MAX + 100; i++) {
		stack(1000000 + i, frames);
		site = memory_find_or_add_site(frames, DEPTH);
		none += site == MEMORY_SITE_NONE;
		/* the last ones are told apart by their caller alone */
		if (i > MEMORY_DEEP_SITES_MAX && site)
			assert_int_equal(memory_get_site(site)->frame_count, 1);
	}
	assert_true(none >= 100);
	assert_int_equal(memory_get_site_count(), MEMORY_SITES_MAX);
	stack(1, frames);
	assert_int_not_equal(memory_find_or_add_site(frames, DEPTH), MEMORY_SITE_NONE);
}

static int setup(void **state)
{
	(void)state;
	static const bool is_attached;

	kymo_memory.is_attached = &is_attached;
	return memory_sites_init(DEPTH) || memory_counts_init();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_stacks_have_one_site),
		cmocka_unit_test(peak_is_the_most_at_one_time),
		cmocka_unit_test(process_peak_knows_who_held_what),
		cmocka_unit_test(threads_agree),
		cmocka_unit_test(a_full_table_says_so),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
