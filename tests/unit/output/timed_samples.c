/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Samples in order of time keep their sums, however few of them may stand for themselves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "output/timed_samples.h"
#include "session_fixture.h"

#define MS      UINT64_C(1000000)
#define THREADS 4
#define NODES   10

struct sums {
	uint64_t weight[THREADS][NODES][MODEL_SOURCE_COUNT], count;
};

static void sum_samples(const struct timed_samples *samples, struct sums *sums)
{
	memset(sums, 0, sizeof(*sums));
	for (size_t i = 0; i < samples->count; i++) {
		const struct timed_sample *sample = &samples->samples[i];
		assert_in_range(sample->group, 0, THREADS - 1);
		sums->weight[sample->group][sample->node][sample->source] += sample->weight;
		sums->count += sample->count;
	}
}

static void expect_order(const struct timed_samples *samples)
{
	for (size_t i = 1; i < samples->count; i++) {
		const struct timed_sample *before = &samples->samples[i - 1],
					  *sample = &samples->samples[i];
		assert_true(before->group < sample->group ||
			    (before->group == sample->group && before->time_ns <= sample->time_ns));
	}
}

static void each_sample_stands_for_itself(void **state)
{
	struct problem problem = {""};
	struct timed_samples samples;
	struct sums sums;

	(void)state;
	assert_int_equal(timed_samples_init(&samples, fixture_session(), VIEW_MEASURE_REAL_TIME,
					    1000, &problem),
			 0);
	assert_int_equal(samples.count, FIXTURE_CPU_SAMPLES + FIXTURE_WALL_SAMPLES);
	assert_int_equal(samples.span_ns, 0);
	expect_order(&samples);
	sum_samples(&samples, &sums);
	assert_int_equal(sums.weight[1][2][SPOOL_SOURCE_CPU], 25 * MS);
	assert_int_equal(sums.weight[1][4][SPOOL_SOURCE_WALL], 60 * MS);
	assert_int_equal(sums.weight[1][4][SPOOL_SOURCE_RUNNABLE], 10 * MS);
	assert_int_equal(sums.weight[3][9][SPOOL_SOURCE_OVERFLOW], 0);
	timed_samples_deinit(&samples);
}

static void events_are_a_measure_of_their_own(void **state)
{
	struct problem problem = {""};
	struct timed_samples samples;

	(void)state;
	assert_int_equal(timed_samples_init(&samples, fixture_session(),
					    VIEW_MEASURE_COUNTER_EVENTS, 1000, &problem),
			 0);
	assert_int_equal(samples.count, FIXTURE_OVERFLOW_SAMPLES);
	assert_int_equal(samples.samples[0].weight + samples.samples[1].weight, 2000);
	timed_samples_deinit(&samples);
}

/* 140,000 samples over 10 ms and more, with room for `limit`. */
static void expect_sums_are_kept(size_t limit)
{
	struct problem problem = {""};
	struct timed_samples all, few;
	struct sums wanted, found;
	struct session *session = fixture_session();

	fixture_repeat_samples(140000);
	assert_int_equal(
		timed_samples_init(&all, session, VIEW_MEASURE_REAL_TIME, 1000000, &problem), 0);
	assert_int_equal(all.span_ns, 0);
	assert_int_equal(timed_samples_init(&few, session, VIEW_MEASURE_REAL_TIME, limit, &problem),
			 0);
	assert_true(few.span_ns > 0);
	assert_in_range(few.count, 1, limit > 100 ? limit : 100);
	expect_order(&few);
	sum_samples(&all, &wanted);
	sum_samples(&few, &found);
	assert_memory_equal(&wanted, &found, sizeof(wanted));
	timed_samples_deinit(&all);
	timed_samples_deinit(&few);
	fixture_repeat_samples(0);
}

static void sums_are_kept(void **state)
{
	(void)state;
	for (size_t limit = 2; limit < 100000; limit = limit * 3 + 1)
		expect_sums_are_kept(limit);
}

static void nothing_is_nothing(void **state)
{
	struct problem problem = {""};
	struct timed_samples samples;

	(void)state;
	assert_int_equal(timed_samples_init(&samples, fixture_empty_session(),
					    VIEW_MEASURE_CPU_TIME, 10, &problem),
			 0);
	assert_int_equal(samples.count, 0);
	timed_samples_deinit(&samples);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sample_stands_for_itself),
		cmocka_unit_test(events_are_a_measure_of_their_own),
		cmocka_unit_test(sums_are_kept),
		cmocka_unit_test(nothing_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
