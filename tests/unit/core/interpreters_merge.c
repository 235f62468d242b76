/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Frames of interpreted code in the places of native ones. An interpreter of the test's own gives
 * the items; its evaluation loop is the code at 0x1000.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "core/interpreters/list.h"

#define EVALUATE 0x1000u
#define FRAMES   8u

static const uint64_t *items_to_give;
static uint32_t items_to_give_count;
static bool fails;

static bool collect_given(struct interpreted_walk *walk)
{
	for (uint32_t i = 0; i < items_to_give_count; i++) {
		if (!interpreted_walk_append(walk, items_to_give[i]))
			return true;
	}
	walk->merge->lost_frame_walks += fails;
	return true;
}

static const struct interpreter_kind kind = {
	.name = "test", .symbols = {"run"}, .collect = collect_given};

static uint64_t items[2 * FRAMES], frames[FRAMES];

static struct interpreted_merge merge_stack(const uint64_t *native, const uint64_t *pointers,
					    uint32_t count, bool complete, uint32_t *ret)
{
	struct native_stack stack = {.frames = native,
				     .stack_pointers = pointers,
				     .count = count,
				     .is_complete = complete};
	struct interpreted_merge merge = {.items = items, .frames = frames, .maximum = FRAMES};

	interpreter_list[0] = (struct interpreter){
		.kind = &kind, .symbols = {EVALUATE}, .symbol_sizes = {0x100}, .is_present = 1};
	interpreter_list_count = 1;
	*ret = interpreters_merge_frames(&stack, &merge);
	return merge;
}

static uint64_t f(uint64_t id)
{
	return SPOOL_INTERPRETED_FRAME_BIT | id << SPOOL_INTERPRETED_POSITION_BITS;
}

static uint64_t boundary(uint64_t address)
{
	return INTERPRETED_BOUNDARY_BIT | address;
}

#define GIVE(...)                                                                                  \
	const uint64_t given[] = {__VA_ARGS__};                                                    \
	items_to_give = given;                                                                     \
	items_to_give_count = sizeof(given) / sizeof(*given)

#define EXPECT(...)                                                                                \
	do {                                                                                       \
		const uint64_t expected[] = {__VA_ARGS__};                                         \
		assert_int_equal(count, sizeof(expected) / sizeof(*expected));                     \
		assert_memory_equal(frames, expected, sizeof(expected));                           \
	} while (0)

/* library < loop < callback < loop < main; the outer loop runs two functions. */
static const uint64_t native[] = {0x5000, 0x1010, 0x6000, 0x1020, 0x7000};
static const uint64_t pointers[] = {100, 200, 300, 400, 500};

static void runs_take_the_places_of_their_calls(void **state)
{
	uint32_t count;

	(void)state;
	GIVE(f(1), boundary(250), f(2), f(3), boundary(480));
	assert_int_equal(merge_stack(native, pointers, 5, true, &count).lost_frame_walks, 0);
	EXPECT(0x5000, f(1), 0x6000, f(2), f(3), 0x7000);
}

static void a_call_without_frames_stays(void **state)
{
	uint32_t count;

	(void)state;
	GIVE(boundary(210), f(2), boundary(400));
	merge_stack(native, pointers, 5, true, &count);
	EXPECT(0x5000, 0x1010, 0x6000, f(2), 0x7000);
}

static void a_call_that_begins_is_left_out_of_the_count(void **state)
{
	uint32_t count;

	(void)state;
	GIVE(f(2), boundary(0));
	merge_stack(native, pointers, 5, true, &count);
	EXPECT(0x5000, 0x1010, 0x6000, f(2), 0x7000);
}

static void calls_are_counted_where_they_are_not_known(void **state)
{
	uint32_t count;

	(void)state;
	GIVE(f(1), boundary(0), f(2), boundary(0));
	merge_stack(native, pointers, 5, true, &count);
	EXPECT(0x5000, f(1), 0x6000, f(2), 0x7000);
}

static void what_finds_no_place_is_outside(void **state)
{
	uint32_t count;

	(void)state;
	GIVE(f(1), boundary(250), f(2), boundary(480), f(3), boundary(900));
	merge_stack(native, pointers, 3, false, &count);
	EXPECT(0x5000, f(1), 0x6000, f(2), f(3));
}

static void a_chain_that_breaks_keeps_what_it_has(void **state)
{
	uint32_t count;

	(void)state;
	fails = true;
	GIVE(f(1), boundary(250), f(2));
	assert_int_equal(merge_stack(native, pointers, 5, true, &count).lost_frame_walks, 1);
	fails = false;
	EXPECT(0x5000, f(1), 0x6000, f(2), 0x7000);
}

static void too_many_frames_are_cut_at_the_outer_end(void **state)
{
	uint32_t count;

	(void)state;
	GIVE(f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), boundary(250));
	assert_true(merge_stack(native, pointers, 5, true, &count).is_cut);
	EXPECT(0x5000, f(1), f(2), f(3), f(4), f(5), f(6), f(7));
	{
		uint64_t many[3 * FRAMES];

		for (uint32_t i = 0; i < 3 * FRAMES; i++)
			many[i] = f(i + 1);
		items_to_give = many;
		items_to_give_count = 3 * FRAMES;
		assert_true(merge_stack(native, pointers, 5, true, &count).is_cut);
		EXPECT(0x5000, f(1), f(2), f(3), f(4), f(5), f(6), f(7));
	}
}

static void hashes_and_innermost_frames_need_no_native_stack(void **state)
{
	struct native_stack stack = {.frames = native, .stack_pointers = pointers, .count = 1};
	struct interpreted_merge merge = {.items = items, .frames = frames, .maximum = FRAMES};
	static const uint64_t one[] = {INTERPRETED_BOUNDARY_BIT | 210,
				       SPOOL_INTERPRETED_FRAME_BIT | 5, INTERPRETED_BOUNDARY_BIT};
	uint64_t other[3], hash;
	uint32_t count;

	(void)state;
	items_to_give = one;
	items_to_give_count = 3;
	merge_stack(native, pointers, 5, true, &count);
	hash = interpreters_hash_frames(&stack, &merge);
	assert_int_not_equal(hash, 0);
	assert_int_equal(interpreters_find_innermost_frame(&stack, &merge),
			 SPOOL_INTERPRETED_FRAME_BIT | 5);
	memcpy(other, one, sizeof(other));
	other[1]++;
	items_to_give = other;
	assert_int_not_equal(interpreters_hash_frames(&stack, &merge), hash);
	items_to_give_count = 1;
	assert_int_equal(interpreters_find_innermost_frame(&stack, &merge), 0);
	items_to_give_count = 0;
	assert_int_equal(interpreters_hash_frames(&stack, &merge), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_take_the_places_of_their_calls),
		cmocka_unit_test(a_call_without_frames_stays),
		cmocka_unit_test(a_call_that_begins_is_left_out_of_the_count),
		cmocka_unit_test(calls_are_counted_where_they_are_not_known),
		cmocka_unit_test(what_finds_no_place_is_outside),
		cmocka_unit_test(a_chain_that_breaks_keeps_what_it_has),
		cmocka_unit_test(too_many_frames_are_cut_at_the_outer_end),
		cmocka_unit_test(hashes_and_innermost_frames_need_no_native_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
