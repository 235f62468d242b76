/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Views agree with each other and with sums made by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/views.h"
#include "unit/analysis/spool_fixture.h"
#include "unit/analysis/test_directory.h"

/* Each function of this program is a module, so that unresolved code has names. */
static uint64_t function(unsigned number)
{
	return 0x10000 * (uint64_t)number + 0x100;
}

static void write_program(const char *directory)
{
	static const char *const names[] = {"/x/main", "/x/a", "/x/b"};
	const struct {
		unsigned depth, functions[5], thread, weight;
	} stacks[] = {
		{2, {1, 2}, 0, 10},         /* main a */
		{4, {1, 2, 2, 2}, 0, 100},  /* main a a a */
		{4, {1, 2, 3, 2}, 1, 1000}, /* main a b a */
		{2, {1, 3}, 1, 10000},      /* main b */
	};
	struct spool_fixture fixture;

	fixture_open_in(&fixture, directory, 1, 0);
	fixture.header.cpu_covered_ns = 1;
	for (unsigned i = 0; i < 3; i++)
		fixture_module(&fixture, FIXTURE_START, i, 0x10000 * (i + 1),
			       0x10000 * (i + 1) + 0x1000, 0, names[i]);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t stack[5];

		for (unsigned k = 0; k < stacks[i].depth; k++)
			stack[k] = function(stacks[i].functions[k]);
		fixture_span(&fixture, stacks[i].thread, 1 + stacks[i].thread, FIXTURE_START);
		fixture_sample(&fixture, &(struct fixture_sample){.ticks = FIXTURE_START,
								  .weight = stacks[i].weight,
								  .stack = stack,
								  .depth = stacks[i].depth});
	}
	fixture_thread_end(&fixture, FIXTURE_START + 1000, 1, 11005, 11000, 2);
	fixture_close(&fixture);
}

static void functions_count_recursion_once(void **state)
{
	static const struct {
		const char *name;
		uint64_t self, inclusive, samples;
	} expected[] = {{"[b]", 10000, 11000, 2},
			{"[a]", 1110, 1110, 3},
			{"[unsampled]", 5, 5, 0},
			{"[main]", 0, 11110, 4}};
	struct view_flat_profile_row *functions;
	size_t count;

	write_program(*state);
	struct session *session = test_session(*state, NULL);
	assert_int_equal(view_choose_default_measure(session), VIEW_MEASURE_CPU_TIME);
	assert_int_equal(
		view_build_flat_profile(session, VIEW_MEASURE_CPU_TIME, &functions, &count), 0);
	assert_int_equal(count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(session->frames[functions[i].frame].function, expected[i].name);
		assert_int_equal(functions[i].self, expected[i].self);
		assert_int_equal(functions[i].inclusive, expected[i].inclusive);
		assert_int_equal(functions[i].inclusive_samples, expected[i].samples);
	}
	free(functions);
	assert_int_equal(
		view_build_flat_profile(session, VIEW_MEASURE_COUNTER_EVENTS, &functions, &count),
		0);
	assert_int_equal(count, 0);
	free(functions);
	session_close(session);
}

static void inclusive_sums_add_up(void **state)
{
	uint64_t *weight, *samples, roots = 0, selves = 0;

	write_program(*state);
	struct session *session = test_session(*state, NULL);
	assert_int_equal(
		view_compute_inclusive_sums(session, VIEW_MEASURE_CPU_TIME, &weight, &samples), 0);
	for (uint32_t i = 0; i < session->node_count; i++) {
		selves += view_get_node_self_weight(&session->nodes[i], VIEW_MEASURE_CPU_TIME);
		if (session->nodes[i].parent == MODEL_ENTRY_INDEX_NONE)
			roots += weight[i];
	}
	assert_int_equal(roots, 11115);
	assert_int_equal(selves, 11115);
	free(weight);
	free(samples);
	session_close(session);
}

static void heaviest_paths_come_first(void **state)
{
	uint32_t *paths;
	size_t count;

	write_program(*state);
	struct session *session = test_session(*state, NULL);
	assert_int_equal(
		view_list_heaviest_paths(session, VIEW_MEASURE_CPU_TIME, 2, &paths, &count), 0);
	assert_int_equal(count, 2);
	assert_string_equal(test_path(session, paths[0]), "[main]+ff;[b]+100");
	assert_string_equal(test_path(session, paths[1]), "[main]+ff;[a]+ff;[b]+ff;[a]+100");
	free(paths);
	session_close(session);
}

static void thread_trees_add_up_to_the_whole(void **state)
{
	const struct view_thread_node_row *entries, *again;
	uint64_t by_thread[2] = {0};
	size_t count, count_again;

	write_program(*state);
	struct session *session = test_session(*state, NULL);
	uint64_t *by_node = calloc(session->node_count, sizeof(*by_node));

	assert_int_equal(view_sum_by_thread_and_node(session, &entries, &count), 0);
	for (size_t i = 0; i < count; i++) {
		assert_true(i == 0 || entries[i - 1].thread < entries[i].thread ||
			    entries[i - 1].node < entries[i].node);
		by_thread[entries[i].thread] += entries[i].self_weight[SPOOL_SOURCE_CPU];
		by_node[entries[i].node] += entries[i].self_weight[SPOOL_SOURCE_CPU];
	}
	assert_int_equal(by_thread[0], 110);
	assert_int_equal(by_thread[1], 11005);
	for (uint32_t i = 0; i < session->node_count; i++)
		assert_int_equal(by_node[i], session->nodes[i].self_weight[SPOOL_SOURCE_CPU]);
	assert_int_equal(view_sum_by_thread_and_node(session, &again, &count_again), 0);
	assert_ptr_equal(again, entries);
	free(by_node);
	session_close(session);
}

#define TEST(function)                                                                             \
	cmocka_unit_test_setup_teardown(function, test_directory_create, test_directory_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(functions_count_recursion_once),
		TEST(inclusive_sums_add_up),
		TEST(heaviest_paths_come_first),
		TEST(thread_trees_add_up_to_the_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
