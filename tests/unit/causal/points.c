/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Progress points: one a name whoever asks first, and visits that readers can rely on.
 */
#include "fake.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define THREADS 8
#define VISITS  20000

static void test_names(void **state)
{
	uint32_t requests =
		causal_find_or_add_point("requests", CAUSAL_POINT_PROGRESS, CAUSAL_ORIGIN_USER);
	char long_name[2 * CAUSAL_NAME_SIZE];
	uint32_t index;

	(void)state;
	assert_int_equal(
		causal_find_or_add_point("requests", CAUSAL_POINT_PROGRESS, CAUSAL_ORIGIN_NAMED),
		requests);
	assert_int_not_equal(
		causal_find_or_add_point("requests", CAUSAL_POINT_BEGIN, CAUSAL_ORIGIN_USER),
		requests);
	assert_int_not_equal(
		causal_find_or_add_point("request", CAUSAL_POINT_PROGRESS, CAUSAL_ORIGIN_USER),
		requests);
	assert_string_equal(fake_control->points[requests].name, "requests");
	assert_int_equal(fake_control->points[requests].origin, CAUSAL_ORIGIN_USER);
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = 0;
	index = causal_find_or_add_point(long_name, CAUSAL_POINT_PROGRESS, CAUSAL_ORIGIN_USER);
	assert_int_equal(strlen(fake_control->points[index].name), CAUSAL_NAME_SIZE - 1);
	assert_int_equal(
		causal_find_or_add_point(long_name, CAUSAL_POINT_PROGRESS, CAUSAL_ORIGIN_USER),
		index);
}

static void test_no_room(void **state)
{
	char name[32];

	(void)state;
	for (unsigned i = 0; i < CAUSAL_POINTS; i++) {
		snprintf(name, sizeof(name), "point %u", i);
		assert_int_equal(
			causal_find_or_add_point(name, CAUSAL_POINT_PROGRESS, CAUSAL_ORIGIN_USER),
			i);
	}
	assert_int_equal(
		causal_find_or_add_point("one more", CAUSAL_POINT_PROGRESS, CAUSAL_ORIGIN_USER),
		UINT32_MAX);
	assert_int_equal(fake_control->points_lost, 1);
	causal_record_visit(UINT32_MAX);
	assert_int_equal(fake_control->visits_lost, 1);
	assert_int_equal(
		causal_find_or_add_point("point 7", CAUSAL_POINT_PROGRESS, CAUSAL_ORIGIN_USER), 7);
}

static void test_visits_by_name(void **state)
{
	char name[] = "first";

	(void)state;
	for (int i = 0; i < 3; i++)
		causal_record_visit_by_name(name, CAUSAL_POINT_PROGRESS, CAUSAL_ORIGIN_USER);
	memcpy(name, "other", sizeof(name)); /* at the same address */
	causal_record_visit_by_name(name, CAUSAL_POINT_PROGRESS, CAUSAL_ORIGIN_USER);
	causal_record_visit_by_name(name, CAUSAL_POINT_END, CAUSAL_ORIGIN_USER);
	assert_string_equal(fake_control->points[0].name, "first");
	assert_int_equal(fake_control->points[0].visits, 3);
	assert_string_equal(fake_control->points[1].name, "other");
	assert_int_equal(fake_control->points[1].visits, 1);
	assert_int_equal(fake_control->points[2].kind, CAUSAL_POINT_END);
	assert_int_equal(fake_control->points[2].visits, 1);
}

/* Real time less the pauses. */
static void test_virtual_time(void **state)
{
	struct causal_visit *ring = fake_control->points[0].ring;
	uint64_t before, after, between;

	(void)state;
	before = ticks_now();
	causal_record_visit(0);
	assert_in_range(ring[1].time, before, ticks_now()); /* outside of epochs */
	fake_experiment(1, 500);
	before = ticks_now();
	causal_record_visit(0);
	fake_owe(200 * MS);
	causal_pay_delay();
	causal_record_visit(0);
	after = ticks_now();
	between = ring[3].time - ring[2].time;
	assert_true(causal_ticks_to_ns(after - before) >= 200 * MS);
	assert_true(causal_ticks_to_ns(between) + 199 * MS < causal_ticks_to_ns(after - before));
	/* What it earns is time that the target would not have taken. */
	fake_sample(1, 100 * MS);
	fake_release();
	causal_record_visit(0);
	between = ring[4].time - ring[3].time;
	assert_true((int64_t)between < 0);
	assert_int_equal(fake_control->points[0].time_sum,
			 ring[1].time + ring[2].time + ring[3].time + ring[4].time);
}

/* ---- many at once ---- */

static void *visit(void *argument)
{
	uint32_t point;

	fake_thread();
	point = causal_find_or_add_point(argument, CAUSAL_POINT_PROGRESS, CAUSAL_ORIGIN_USER);
	assert_int_equal(point, 0);
	for (int i = 0; i < VISITS; i++)
		causal_record_visit(point);
	return NULL;
}

/* As the controller does. */
static uint64_t read_visit(const struct causal_visit *visit, uint64_t *ret_time)
{
	uint64_t count = atomic_load_explicit(&visit->count, memory_order_acquire);

	*ret_time = atomic_load_explicit(&visit->time, memory_order_acquire);
	return atomic_load_explicit(&visit->count, memory_order_relaxed) == count ? count : 0;
}

static void test_a_ring_under_many(void **state)
{
	const struct causal_point *point = &fake_control->points[0];
	uint64_t first = ticks_now(), time, count, last = 0, last_time = 0;
	pthread_t threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, visit, "p"), 0);
	while (point->visits < (uint64_t)THREADS * VISITS) {
		for (unsigned i = 0; i < CAUSAL_RING; i++) {
			count = read_visit(&point->ring[i], &time);
			if (!count)
				continue;
			assert_int_equal(count % CAUSAL_RING, i);
			/* Without a fence the processor may read its counter before the ring. */
			_mm_lfence();
			assert_in_range(time, first, ticks_now());
			if (count == last)
				assert_int_equal(time, last_time);
			last = count;
			last_time = time;
		}
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(point->visits, THREADS * VISITS);
	for (unsigned i = 0; i < CAUSAL_RING; i++)
		assert_true(read_visit(&point->ring[i], &time) > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_begin, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(test_names),        TEST(test_no_room),           TEST(test_visits_by_name),
		TEST(test_virtual_time), TEST(test_a_ring_under_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
