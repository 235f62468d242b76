/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What folded stacks and the flame graph page make of the session's tree: merging, sums by thread,
 * names that would break the format, and the limit on nodes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/array.h"
#include "output/output.h"
#include "output/strings.h"
#include "output/web/page_tree.h"
#include "session_fixture.h"

#define MS UINT64_C(1000000)

extern const struct output_format output_format_folded, output_format_perfetto, output_format_pprof,
	output_format_html;

static void expect_folded(struct output_options options, const char *expected)
{
	struct problem problem = {""};
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	assert_non_null(stream);
	assert_int_equal(output_format_folded.write(fixture_session(), &options, stream, &problem),
			 0);
	fclose(stream);
	assert_string_equal(text, expected);
	free(text);
}

#define WORKER "worker:\xef\xbf\xbd<img src=x onerror=alert(1)>"

static void test_folded(void **state)
{
	(void)state;
	expect_folded((struct output_options){0},
		      "work;main 5000000\n"
		      "work;main;compute(int, char const*);hot 25000000\n"
		      "work;main;poll 70000000\n" /* waited for */
		      "work;" WORKER " 20000000\n"
		      "work;" WORKER ";" WORKER " 10000000\n"
		      "work;[stack cut: no unwind information];poll 10000000\n"
		      "</script>;</script><script>alert(1)</script> 20000000\n");
}

static void test_folded_threads(void **state)
{
	(void)state;
	expect_folded((struct output_options){.per_thread = true,
					      .is_measure_given = true,
					      .measure = VIEW_MEASURE_REAL_TIME},
		      "work;main-1000;main 5000000\n"
		      "work;main-1000;main;compute(int, char const*);hot 25000000\n"
		      "work;main-1000;main;poll 70000000\n"
		      "work;main-1000;[stack cut: no unwind information];poll 10000000\n"
		      "work;pool: 1-1001;" WORKER " 20000000\n"
		      "work;pool: 1-1001;" WORKER ";" WORKER " 10000000\n"
		      "</script>;other-2000;</script><script>alert(1)</script> 20000000\n");
}

/* Two source lines of main are one function; a recursive call is not merged with its caller. */
static void test_function_tree(void **state)
{
	struct session *session = fixture_session();
	struct function_tree tree;

	(void)state;
	assert_int_equal(function_tree_build_per_process(&tree, session), 0);
	assert_int_equal(tree.count, session->node_count - 1);
	assert_int_equal(tree.of_node[0], tree.of_node[3]);
	assert_int_not_equal(tree.of_node[5], tree.of_node[6]);
	for (uint32_t i = 0; i < tree.count; i++) {
		if (tree.nodes[i].parent != MODEL_ENTRY_INDEX_NONE)
			assert_true(tree.nodes[i].parent < i);
	}
	function_tree_deinit(&tree);
}

static uint64_t sum_samples(const uint64_t *columns)
{
	uint64_t sum = 0;

	for (int source = 0; source < SPOOL_SOURCE_COUNT; source++)
		sum += columns[2 * source + 1];
	return sum;
}

static void test_page_tree(void **state)
{
	struct page_tree tree;

	(void)state;
	/* Whatever the limit, no weight is lost. */
	for (uint32_t limit = 0; limit < 12; limit++) {
		uint64_t samples_of_main = 0;
		assert_int_equal(page_tree_init(&tree, fixture_session(), limit), 0);
		assert_int_equal(tree.column_totals[2 * SPOOL_SOURCE_CPU], 90 * MS);
		assert_int_equal(tree.column_totals[2 * SPOOL_SOURCE_WALL], 60 * MS);
		assert_int_equal(tree.column_totals[2 * SPOOL_SOURCE_RUNNABLE], 10 * MS);
		assert_int_equal(tree.column_totals[2 * SPOOL_SOURCE_OVERFLOW], 2000);
		assert_int_equal(sum_samples(tree.column_totals), FIXTURE_CPU_SAMPLES +
									  FIXTURE_WALL_SAMPLES +
									  FIXTURE_OVERFLOW_SAMPLES);
		for (size_t i = 0; i < tree.row_count; i++) {
			assert_true(tree.rows[i].node < tree.node_count);
			if (tree.rows[i].thread == 1)
				samples_of_main += sum_samples(tree.rows[i].values);
		}
		for (uint32_t i = 0; i < tree.node_count; i++) {
			if (tree.nodes[i].parent != MODEL_ENTRY_INDEX_NONE)
				assert_true(tree.nodes[i].parent < i);
		}
		assert_int_equal(samples_of_main, 8);
		assert_true(limit < 9 || tree.node_count == 9);
		page_tree_deinit(&tree);
	}
}

static void test_strings(void **state)
{
	struct string_table strings;
	static char texts[5000][8];

	(void)state;
	strings_init(&strings);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 5000; i++) {
			uint32_t number = UINT32_MAX;
			snprintf(texts[i], sizeof(texts[i]), "%u", i);
			assert_int_equal(strings_find_or_add(&strings, texts[i], &number), 0);
			assert_int_equal(number, i);
		}
	}
	assert_int_equal(strings.count, 5000);
	strings_deinit(&strings);
}

/* A full disk is an error with a reason, whatever the format. */
static void test_full_disk(void **state)
{
	const struct output_format *const formats[] = {&output_format_folded,
						       &output_format_perfetto,
						       &output_format_pprof, &output_format_html};
	struct output_options options = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		struct problem problem = {""};
		FILE *full = fopen("/dev/full", "w");
		if (full == NULL)
			skip();
		assert_int_equal(formats[i]->write(fixture_session(), &options, full, &problem),
				 -ENOSPC);
		assert_non_null(strstr(problem.text, "No space left"));
		fclose(full);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded),        cmocka_unit_test(test_folded_threads),
		cmocka_unit_test(test_function_tree), cmocka_unit_test(test_page_tree),
		cmocka_unit_test(test_strings),       cmocka_unit_test(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
