/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regions at the edges: overlaps, missing ends, and collection windows. Times of a region and times
 * of its own, as totals show them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/regions/regions.h"
#include "unit/analysis/spool_fixture.h"
#include "unit/analysis/test_directory.h"

#define MS UINT64_C(1000000)

enum { A = 1, B, C };

static const uint64_t start = FIXTURE_START;

static void open_small(struct spool_fixture *fixture, const char *directory)
{
	static const char *const names[] = {"A", "B", "C"};

	fixture_open_in(fixture, directory, 100, 0);
	fixture_clock(fixture, start);
	fixture_thread_start(fixture, start, 0, 100, 0, "", 0);
	for (uint64_t i = 0; i < 3; i++)
		fixture_region(fixture, A + i, "test", names[i]);
	fixture->header.end_ticks = start + 20 * MS;
}

static void begin_span(struct spool_fixture *fixture)
{
	fixture_end_chunk(fixture);
	fixture_region_span(fixture, 0, 100, start, NULL, 0);
}

static void begin_at(struct spool_fixture *fixture, uint64_t ms, uint64_t region)
{
	fixture_begin(fixture, start + ms * MS, region);
}

static void end_at(struct spool_fixture *fixture, uint64_t ms)
{
	fixture_end(fixture, start + ms * MS);
}

static void end_other_at(struct spool_fixture *fixture, uint64_t ms, uint64_t region)
{
	fixture_end_other(fixture, start + ms * MS, region, SPOOL_REGION_END_ALONE);
}

static double get_self_ms(const struct model_regions *regions, uint32_t index)
{
	double self = regions->statistics[(size_t)index * regions->component_count].sum +
		      regions->nodes[index].self_correction;

	for (uint32_t i = 0; i < regions->node_count; i++) {
		if (regions->nodes[i].parent == index)
			self -= regions->statistics[(size_t)i * regions->component_count].sum;
	}
	return self / (double)MS;
}

static void write_node(const struct model_regions *regions, uint32_t index, FILE *stream)
{
	const struct model_region_node *node = &regions->nodes[index];

	if (node->parent != MODEL_ENTRY_INDEX_NONE)
		fprintf(stream, "%s/", regions->regions[regions->nodes[node->parent].region].name);
	fprintf(stream, "%s %llu+%llu %g %g, ", regions->regions[node->region].name,
		(unsigned long long)node->count, (unsigned long long)node->open,
		regions->statistics[(size_t)index * regions->component_count].sum / (double)MS,
		get_self_ms(regions, index));
}

/* "parent/region calls+open sum self, ", in the order of first calls. */
static void expect_nodes(struct session *session, const char *expected)
{
	const struct model_regions *regions = session_get_regions(session);
	size_t size;
	char *text;
	FILE *stream = open_memstream(&text, &size);

	for (uint32_t i = 0; i < regions->node_count; i++)
		write_node(regions, i, stream);
	fclose(stream);
	assert_string_equal(text, expected);
	free(text);
}

static void own_time_of_overlapping_regions(void **state)
{
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	begin_span(&fixture);
	begin_at(&fixture, 0, C);
	begin_at(&fixture, 1, A);
	begin_at(&fixture, 3, B);
	end_other_at(&fixture, 5, A);
	end_at(&fixture, 9);
	end_at(&fixture, 12);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	/* Nothing is open but C from 0 to 1 and from 9 on; A is alone from 1 to 3. */
	expect_nodes(session, "C 1+0 12 4, C/A 1+0 4 2, A/B 1+0 6 6, ");
	assert_int_equal(session_get_regions(session)->unbalanced_region_count, 0);
	session_close(session);
}

static void a_missing_end_is_that_of_the_region_around(void **state)
{
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	begin_span(&fixture);
	begin_at(&fixture, 0, C);
	for (uint64_t i = 0; i < 3; i++) {
		begin_at(&fixture, 1 + 3 * i, A);
		begin_at(&fixture, 2 + 3 * i, B);
		end_other_at(&fixture, 4 + 3 * i, A);
	}
	end_other_at(&fixture, 12, C);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_nodes(session, "C 1+0 12 3, C/A 3+0 9 3, A/B 3+0 6 6, ");
	assert_int_equal(session_get_regions(session)->unbalanced_region_count, 3);
	session_close(session);
}

/* B goes on; C, which began in it, has no end and lasts as long as B. */
static void a_missing_end_in_an_overlapping_region(void **state)
{
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	begin_span(&fixture);
	begin_at(&fixture, 0, A);
	begin_at(&fixture, 1, B);
	begin_at(&fixture, 2, C);
	end_other_at(&fixture, 4, A);
	end_other_at(&fixture, 7, B);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_nodes(session, "A 1+0 4 1, A/B 1+0 6 1, B/C 1+0 5 5, ");
	session_close(session);
}

/* The process waits for so many ends and no more. */
static void a_region_that_was_given_up(void **state)
{
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	begin_span(&fixture);
	begin_at(&fixture, 0, A);
	begin_at(&fixture, 1, B);
	end_other_at(&fixture, 4, A);
	fixture_end_other(&fixture, start + 5 * MS, B, SPOOL_REGION_END_GIVEN_UP);
	begin_at(&fixture, 6, C);
	end_at(&fixture, 8);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_nodes(session, "A 1+0 4 1, A/B 1+0 3 3, C 1+0 2 2, ");
	session_close(session);
}

static void windows_cut_what_lies_across_their_edges(void **state)
{
	static const struct fixture_open open[] = {{A, 3 * MS}};
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	fixture_window(&fixture, start, 0);
	fixture_window(&fixture, start + 2 * MS, 1);
	fixture_window(&fixture, start + 6 * MS, 0);
	fixture_window(&fixture, start + 10 * MS, 1);
	fixture_window(&fixture, start + 12 * MS, 0);
	fixture_end_chunk(&fixture);
	/* A began at 0, which the first event in the window tells. */
	fixture_region_span(&fixture, 0, 100, start + 3 * MS, open, 1);
	end_at(&fixture, 3);
	begin_at(&fixture, 5, B); /* goes on through both windows */
	begin_at(&fixture, 5, C); /* ends between them */
	end_at(&fixture, 7);
	end_at(&fixture, 13);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_nodes(session, "A 1+0 1 1, B 0+1 3 2, B/C 0+1 1 1, ");
	session_close(session);
}

static void a_call_of_two_windows_is_one(void **state)
{
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	fixture_window(&fixture, start, 1);
	fixture_window(&fixture, start + 2 * MS, 0);
	fixture_window(&fixture, start + 10 * MS, 1);
	begin_span(&fixture);
	begin_at(&fixture, 1, A);
	end_at(&fixture, 13);
	fixture_whole(&fixture, start + 15 * MS, MS, B);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_nodes(session, "A 1+0 4 4, B 1+0 1 1, ");
	assert_true(session_get_regions(session)->statistics[0].minimum == 4e6);
	session_close(session);
}

static void a_process_without_an_open_window(void **state)
{
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	fixture_window(&fixture, start, 0);
	begin_span(&fixture);
	begin_at(&fixture, 1, A);
	end_at(&fixture, 13);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_nodes(session, "");
	session_close(session);
}

/* Of A's calls one goes on, one ended with its thread, one was left by a region around it. */
static void open_calls_of_a_profile_of_its_own(void **state)
{
	static const struct fixture_component wall_clock = {"wall_clock", "ns",
							    SPOOL_COMPONENT_PHASE, 0};
	static const struct spool_profile_open none,
		of_b = {.self_ticks = -MS},
		of_a = {.begin_ticks_sum = FIXTURE_START + 5 * MS,
			.stopped = 1,
			.stopped_ticks = 4 * MS,
			.left = 1,
			.left_ticks = 2 * MS,
			.self_ticks = MS};
	static const struct fixture_node nodes[] = {
		{.node = {0, 0, 0, 0}, .open = &none},
		{.node = {A, 0, 1, 3},
		 .values = {{3 * MS, 3 * MS, 3 * MS, 9 * MS * MS, 0}},
		 .open = &of_a},
		{.node = {B, 1, 1, 0}, .values = {{MS, MS, MS, MS * MS, 0}}, .open = &of_b},
	};
	const struct model_component_statistics *statistics;
	struct spool_fixture fixture;
	struct session *session;

	open_small(&fixture, *state);
	fixture_components(&fixture, &wall_clock, 1);
	fixture_profile(&fixture,
			&(struct spool_profile_part){.tree = 1, .tid = 100, .node_count = 3}, nodes,
			1);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_nodes(session, "A 2+2 24 24, A/B 1+0 1 0, ");
	statistics = session_get_regions(session)->statistics;
	assert_true(statistics->unfinished_sum == 19e6);
	assert_true(statistics->minimum == 2e6 && statistics->maximum == 3e6);
	session_close(session);
}

int main(void)
{
#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, test_directory_create, test_directory_remove)
	const struct CMUnitTest tests[] = {
		TEST(own_time_of_overlapping_regions),
		TEST(a_missing_end_is_that_of_the_region_around),
		TEST(a_missing_end_in_an_overlapping_region),
		TEST(a_region_that_was_given_up),
		TEST(windows_cut_what_lies_across_their_edges),
		TEST(a_call_of_two_windows_is_one),
		TEST(a_process_without_an_open_window),
		TEST(open_calls_of_a_profile_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
