/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A job is the same, to the byte, in whatever order and grouping its ranks were merged, and its
 * figures are those of a direct count.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/array.h"
#include "common/splitmix64.h"
#include "job/part.h"
#include "job/results/late.h"
#include "job/results/results.h"
#include "unit/job/fixture.h"

#define RANKS 23

static void merge_rank(struct job *to, uint64_t seed, uint32_t rank)
{
	struct problem problem;
	struct job one;

	fixture_make_rank(&one, seed, rank, RANKS);
	assert_int_equal(job_merge(to, &one, &problem), 0);
	job_deinit(&one);
}

/* Ranks in a random order, each in one of `groups` groups, which are merged in a random order. */
static char *merge_in_groups(uint64_t seed, uint64_t order_seed, unsigned groups, size_t *ret_size)
{
	struct job group[8], all;
	uint32_t order[RANKS];
	uint64_t state = order_seed;
	struct problem problem;
	char *bytes;

	for (unsigned i = 0; i < groups; i++)
		job_init(&group[i]);
	for (uint32_t i = 0; i < RANKS; i++)
		order[i] = i;
	for (uint32_t i = RANKS - 1; i > 0; i--) {
		uint32_t other = (uint32_t)(splitmix64_next(&state) % (i + 1)), kept = order[i];

		order[i] = order[other];
		order[other] = kept;
	}
	for (uint32_t i = 0; i < RANKS; i++)
		merge_rank(&group[splitmix64_next(&state) % groups], seed, order[i]);
	job_init(&all);
	for (unsigned i = 0; i < groups; i++) {
		assert_int_equal(job_merge(&all, &group[(i + order_seed) % groups], &problem), 0);
		job_deinit(&group[(i + order_seed) % groups]);
	}
	bytes = fixture_write_part(&all, ret_size);
	job_deinit(&all);
	return bytes;
}

static void bytes_do_not_depend_on_order_or_grouping(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		size_t size, other_size;
		char *bytes = merge_in_groups(seed, 1, 1, &size);

		for (unsigned groups = 1; groups <= 8; groups++) {
			char *other =
				merge_in_groups(seed, seed * 31 + groups, groups, &other_size);

			assert_int_equal(size, other_size);
			assert_memory_equal(bytes, other, size);
			free(other);
		}
		free(bytes);
	}
}

static void reading_a_part_and_writing_it_gives_its_bytes(void **state)
{
	size_t size, other_size;
	char *bytes = merge_in_groups(7, 1, 3, &size), *other;
	struct problem problem;
	struct job job;

	(void)state;
	job_init(&job);
	assert_int_equal(job_part_read(&job, bytes, size, "part", &problem), 0);
	other = fixture_write_part(&job, &other_size);
	assert_int_equal(size, other_size);
	assert_memory_equal(bytes, other, size);
	free(other);
	free(bytes);
	job_deinit(&job);
}

static const struct job_row *find_function_row(const struct job *job, unsigned function)
{
	char file[32];

	snprintf(file, sizeof(file), "file_%u.c", function);
	for (uint32_t i = 0; i < job->name_count; i++) {
		if (!strcmp(job->names[i].file, file))
			return job_find_row(job, i, false, JOB_CPU_OUTSIDE_MPI);
	}
	return NULL;
}

static void check_function(const struct job *job, uint64_t seed, unsigned function)
{
	const struct job_row *row = find_function_row(job, function);
	uint64_t value[RANKS], sum_high = 0, lowest = UINT64_MAX, highest = 0;
	uint32_t lowest_rank = 0, highest_rank = 0, count = 0;
	struct job_statistics statistics;
	long double mean = 0, squares = 0;

	for (uint32_t i = 0; i < RANKS; i++) {
		value[i] = fixture_make_values(seed, i).cpu[function];
		count += value[i] > 0;
		sum_high += value[i];
		if (value[i] < lowest) {
			lowest = value[i];
			lowest_rank = i;
		}
		if (value[i] > highest) {
			highest = value[i];
			highest_rank = i;
		}
	}
	assert_non_null(row);
	statistics = job_moments_get_statistics(&row->moments, RANKS);
	mean = (long double)sum_high / RANKS; /* 23 times 2^53 fits 64 bits */
	for (uint32_t i = 0; i < RANKS; i++)
		squares += ((long double)value[i] - mean) * ((long double)value[i] - mean);
	assert_int_equal((uint64_t)row->moments.sum, sum_high);
	assert_int_equal(row->moments.count, count);
	assert_int_equal(statistics.minimum, lowest);
	assert_int_equal(statistics.minimum_rank, lowest_rank);
	assert_int_equal(statistics.maximum, highest);
	assert_int_equal(statistics.maximum_rank, highest_rank);
	assert_true(fabsl((long double)statistics.mean - mean) <= 0.5L);
	assert_true(fabsl((long double)statistics.deviation - sqrtl(squares / (RANKS - 1))) <=
		    1 + mean * 1e-9L);
	assert_int_equal(statistics.lost, highest - statistics.mean);
}

static void figures_are_those_of_a_direct_count(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct job job;

		job_init(&job);
		for (uint32_t i = RANKS; i-- > 0;)
			merge_rank(&job, seed, i);
		assert_int_equal(job_sort(&job), 0);
		assert_int_equal(job.rank_count, RANKS);
		for (unsigned i = 0; i < FIXTURE_FUNCTIONS; i++)
			check_function(&job, seed, i);
		job_deinit(&job);
	}
}

static void the_same_rank_twice_is_an_error(void **state)
{
	struct problem problem;
	struct job job, one;

	(void)state;
	job_init(&job);
	merge_rank(&job, 1, 3);
	fixture_make_rank(&one, 1, 3, RANKS);
	assert_int_equal(job_merge(&job, &one, &problem), -EEXIST);
	assert_string_equal(problem.text, "rank 3 is in '/results/3' and in '/results/3': name the "
					  "results of one run of one job");
	job_deinit(&one);
	job_deinit(&job);
}

static void ranks_of_jobs_of_other_sizes_are_an_error(void **state)
{
	struct problem problem;
	struct job job, one;

	(void)state;
	job_init(&job);
	merge_rank(&job, 1, 3);
	fixture_make_rank(&one, 1, 4, RANKS + 1);
	assert_int_equal(job_merge(&job, &one, &problem), -EINVAL);
	job_deinit(&one);
	job_deinit(&job);
}

static void missing_ranks_are_listed_as_ranges(void **state)
{
	static const uint32_t here[] = {0, 3, 4, 9, 21};
	static const struct job_rank_range missing[] = {{1, 2}, {5, 8}, {10, 20}, {22, 22}};
	struct job_rank_range range;
	uint32_t next = 0;
	struct job job;

	(void)state;
	job_init(&job);
	for (size_t i = 0; i < ARRAY_SIZE(here); i++)
		merge_rank(&job, 1, here[i]);
	assert_int_equal(job_sort(&job), 0);
	assert_int_equal(job_count_missing_ranks(&job), RANKS - ARRAY_SIZE(here));
	for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
		assert_true(job_next_missing_range(&job, &next, &range));
		assert_int_equal(range.first, missing[i].first);
		assert_int_equal(range.last, missing[i].last);
	}
	assert_false(job_next_missing_range(&job, &next, &range));
	job_deinit(&job);
}

/* ---- who is late ---- */

static void make_waiting_job(struct job *job, const uint64_t *waits_ms, uint32_t count,
			     uint32_t size)
{
	struct problem problem;

	job_init(job);
	for (uint32_t i = 0; i < count; i++) {
		struct job_rank rank = {.rank = i,
					.size = size,
					.flags = JOB_RANK_HAS_MPI | JOB_RANK_HAS_SAMPLES,
					.wall_ns = 10000000000,
					.cpu_ns = 9000000000 - waits_ms[i] * 1000000,
					.host = "",
					.directory = "",
					.command = ""};

		rank.mpi_ns[JOB_MPI_COLLECTIVE] = waits_ms[i] * 1000000;
		assert_int_equal(job_add_rank(job, &rank, &problem), 0);
	}
	assert_int_equal(job_sort(job), 0);
}

static void check_verdict(const uint64_t *waits_ms, uint32_t count, uint32_t size,
			  enum job_late_verdict verdict, uint32_t rank, uint32_t late_count)
{
	struct job_late late;
	struct job job;

	make_waiting_job(&job, waits_ms, count, size);
	assert_int_equal(job_find_late_rank(&job, &late), 0);
	assert_int_equal(late.verdict, verdict);
	if (verdict == JOB_LATE_FOUND) {
		assert_int_equal(job.ranks[late.rank].rank, rank);
		assert_int_equal(late.late_count, late_count);
		assert_true(job_late_is_explained_by_work(&late));
	}
	job_deinit(&job);
}

static void a_rank_is_late_if_most_others_wait_longer(void **state)
{
	static const uint64_t one_late[] = {2000, 2100, 10, 1900}, pair[] = {50, 3000},
			      two_late[] = {2000, 20, 2100, 10, 1900, 2050},
			      master[] = {5000, 100, 120, 90}, alike[] = {900, 1000, 950, 980};

	(void)state;
	check_verdict(one_late, 4, 4, JOB_LATE_FOUND, 2, 1);
	check_verdict(pair, 2, 2, JOB_LATE_FOUND, 0, 1);
	check_verdict(two_late, 6, 6, JOB_LATE_FOUND, 3, 2);
	check_verdict(master, 4, 4, JOB_LATE_NOBODY, 0, 0);
	check_verdict(alike, 4, 4, JOB_LATE_NOBODY, 0, 0);
	check_verdict(one_late, 1, 1, JOB_LATE_ONE_RANK, 0, 0);
	/* Rank 4 is not here: it may be the late one. */
	check_verdict(one_late, 4, 5, JOB_LATE_INCOMPLETE, 0, 0);
	/* How many there are is not known. */
	check_verdict(one_late, 4, 0, JOB_LATE_INCOMPLETE, 0, 0);
}

static void wide_numbers_have_all_their_digits(void **state)
{
	char text[JOB_WIDE_TEXT_BYTES];

	(void)state;
	assert_string_equal(job_wide_to_text(0, text), "0");
	assert_string_equal(job_wide_to_text(UINT64_MAX, text), "18446744073709551615");
	assert_string_equal(job_wide_to_text((job_wide)-1, text),
			    "340282366920938463463374607431768211455");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_do_not_depend_on_order_or_grouping),
		cmocka_unit_test(reading_a_part_and_writing_it_gives_its_bytes),
		cmocka_unit_test(figures_are_those_of_a_direct_count),
		cmocka_unit_test(the_same_rank_twice_is_an_error),
		cmocka_unit_test(ranks_of_jobs_of_other_sizes_are_an_error),
		cmocka_unit_test(missing_ranks_are_listed_as_ranges),
		cmocka_unit_test(a_rank_is_late_if_most_others_wait_longer),
		cmocka_unit_test(wide_numbers_have_all_their_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
