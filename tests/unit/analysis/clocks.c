/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analysis/clocks.h"

static struct clock_map make(uint64_t hz, size_t count, const uint64_t (*points)[2])
{
	struct clock_map map = {0};

	for (size_t i = 0; i < count; i++) {
		struct clock_map_point point = {points[i][0], points[i][1], points[i][1] - 10,
						points[i][1] + 1000};
		assert_int_equal(clock_map_add_point(&map, &point), 0);
	}
	clock_map_sort_and_set_rate(&map, hz);
	return map;
}

static void without_points_the_rate_counts(void **state)
{
	struct clock_map map = make(2000000000, 0, NULL);

	(void)state;
	assert_int_equal(clock_map_ticks_to_boottime(&map, 2000), 1000);
	assert_int_equal(clock_map_get_realtime_minus_boottime(&map), 0);
	clock_map_deinit(&map);
}

static void one_point_is_extended_both_ways(void **state)
{
	static const uint64_t points[][2] = {{1000000, 5000000}};
	struct clock_map map = make(500000000, 1, points);

	(void)state;
	assert_int_equal(clock_map_ticks_to_boottime(&map, 1000000), 5000000);
	assert_int_equal(clock_map_ticks_to_boottime(&map, 1000100), 5000200);
	assert_int_equal(clock_map_ticks_to_boottime(&map, 999900), 4999800);
	assert_int_equal(clock_map_get_realtime_minus_boottime(&map), 1000);
	assert_int_equal(clock_map_get_monotonic_minus_boottime(&map), -10);
	assert_int_equal(clock_map_ticks_to_duration_ns(&map, 50), 100);
	clock_map_deinit(&map);
}

static void segments_have_their_own_rates(void **state)
{
	/* Out of order, as another thread may have written them. */
	static const uint64_t points[][2] = {{3000, 5000}, {1000, 1000}, {2000, 2000}};
	struct clock_map map = make(0, 3, points);

	(void)state;
	assert_int_equal(clock_map_ticks_to_boottime(&map, 1500), 1500);
	assert_int_equal(clock_map_ticks_to_boottime(&map, 2500), 3500);
	assert_int_equal(clock_map_ticks_to_boottime(&map, 1001), 1001);
	assert_int_equal(clock_map_ticks_to_boottime(&map, 2999), 4997);
	/* Beyond the last point: the mean rate, 4000 / 2000. */
	assert_int_equal(clock_map_ticks_to_boottime(&map, 4000), 7000);
	clock_map_deinit(&map);
}

static void contradictions_are_dropped(void **state)
{
	static const uint64_t points[][2] = {{1000, 1000}, {2000, 500}, {3000, 3000}, {1000, 1000}};
	struct clock_map map = make(1000000000, 4, points);
	uint64_t last = 0;

	(void)state;
	assert_int_equal(map.dropped, 1);
	assert_int_equal(map.count, 2);
	for (uint64_t ticks = 0; ticks < 5000; ticks += 7) {
		uint64_t now = clock_map_ticks_to_boottime(&map, ticks);

		assert_true(now >= last);
		last = now;
	}
	clock_map_deinit(&map);
}

static void nonsense_is_clamped(void **state)
{
	static const uint64_t points[][2] = {{1000, 1000}, {UINT64_MAX, UINT64_MAX}};
	struct clock_map map = make(1, 2, points);

	(void)state;
	(void)clock_map_ticks_to_boottime(&map, UINT64_MAX);
	assert_int_equal(clock_map_ticks_to_boottime(&map, 0), 0);
	(void)clock_map_ticks_to_duration_ns(&map, UINT64_MAX);
	clock_map_deinit(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_points_the_rate_counts),
		cmocka_unit_test(one_point_is_extended_both_ways),
		cmocka_unit_test(segments_have_their_own_rates),
		cmocka_unit_test(contradictions_are_dropped),
		cmocka_unit_test(nonsense_is_clamped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
