/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regions in text, JSON and the summary, on small recordings. Tables are compared with their blanks
 * squeezed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "output/formats/formats.h"
#include "output/json/metadata.h"
#include "output/output.h"
#include "output/summary/summary.h"
#include "unit/analysis/spool_fixture.h"
#include "unit/analysis/test_directory.h"

#define MS UINT64_C(1000000)

/* ---- text ---- */

static void squeeze(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (*from == ' ' && (from[1] == ' ' || from[1] == '\n'))
			continue;
		*to++ = *from;
	}
	*to = 0;
}

static char *made(struct session *session, const char *format, const struct output_options *options)
{
	struct problem problem = {""};
	size_t size;
	char *text;
	FILE *stream = open_memstream(&text, &size);
	int result;

	if (format)
		result = output_find_format(format)->write(session, options, stream, &problem);
	else
		result = output_write_summary(session, options, stream, false, &problem);
	if (result != 0)
		fail_msg("%s", problem.text);
	fclose(stream);
	return text;
}

/* The text profile from the first "REGIONS" to the next one. */
static void expect_table(struct session *session, const struct output_options *options,
			 const char *expected)
{
	char *text = made(session, "text", options), *table = strstr(text, "REGIONS"), *end;

	assert_non_null(table);
	end = strstr(table + 1, "REGIONS");
	if (end)
		*end = 0;
	squeeze(table);
	assert_string_equal(table, expected);
	free(text);
}

#define COLUMNS "LABEL COUNT DEPTH METRIC UNITS SUM MEAN MIN MAX STDDEV %SELF\n"
#define TREE                                                                                       \
	"REGIONS: wall_clock\nreal time; each region is below the one it began in, the heaviest "  \
	"first; "                                                                                  \
	"SUM includes everything inside.\n\n" COLUMNS
#define FLAT                                                                                       \
	"REGIONS: wall_clock\nreal time; one row per region, sorted by self time; SUM counts "     \
	"recursive calls once.\n\n" COLUMNS
#define OPEN                                                                                       \
	"(1 call was still open at the end of the data: SUM includes the time until then, the "    \
	"other columns do not)\n\n"
#define WALL " wall_clock s 0.0"

static void call_tree(void **state)
{
	struct session *session;

	fixture_write_regions(*state);
	session = test_session(*state, NULL);
	expect_table(session, &(struct output_options){0},
		     TREE
		     "regions [100] 3 0" WALL "17000000 - - - - -\n"
		     " main 1 1" WALL "10000000 0.010000000 0.010000000 0.010000000 0.000000000 "
		     "40.00\n"
		     " compute 2 2" WALL "05000000 0.002500000 0.002000000 0.003000000 0.000707107 "
		     "80.00\n"
		     " compute 1 3" WALL "01000000 0.001000000 0.001000000 0.001000000 0.000000000 "
		     "100.00\n"
		     " pthread_mutex_lock 1 2" WALL
		     "01000000 0.001000000 0.001000000 0.001000000 0.000000000 100.00\n"
		     " task 2 1" WALL "06000000 0.003000000 0.002000000 0.004000000 0.001414214 "
		     "91.67\n"
		     " pthread_mutex_lock 1 2" WALL
		     "00500000 0.000500000 0.000500000 0.000500000 0.000000000 100.00\n"
		     " late 0 1" WALL "01000000 - - - - 100.00\n" OPEN);
	session_close(session);
}

static void threads_apart(void **state)
{
	struct session *session;

	fixture_write_regions(*state);
	session = test_session(*state, NULL);
	expect_table(session, &(struct output_options){.per_thread = true, .minimum_percent = 25},
		     TREE "regions [100] 3 0" WALL "17000000 - - - - -\n"
			  " regions [100] 1 1" WALL "11000000 - - - - -\n"
			  " main 1 2" WALL "10000000 0.010000000 0.010000000 0.010000000 "
			  "0.000000000 40.00\n"
			  " compute 2 3" WALL "05000000 0.002500000 0.002000000 0.003000000 "
			  "0.000707107 80.00\n"
			  " worker [101] 2 1" WALL "06000000 - - - - -\n"
			  " task 2 2" WALL "06000000 0.003000000 0.002000000 0.004000000 "
			  "0.001414214 91.67\n" OPEN);
	session_close(session);
}

/* A lock's calls are those of both threads; a call in a call of the same region is counted, and its
 * time is not counted twice. */
static void flat(void **state)
{
	struct session *session;

	fixture_write_regions(*state);
	session = test_session(*state, NULL);
	expect_table(session, &(struct output_options){.flat = true, .top = 4},
		     FLAT "regions [100] 3 0" WALL "17000000 - - - - -\n"
			  " task 2 1" WALL "06000000 0.003000000 0.002000000 0.004000000 "
			  "0.001414214 91.67\n"
			  " compute 3 1" WALL "05000000 0.002000000 0.001000000 0.003000000 "
			  "0.001000000 100.00\n"
			  " main 1 1" WALL "10000000 0.010000000 0.010000000 0.010000000 "
			  "0.000000000 40.00\n"
			  " pthread_mutex_lock 2 1" WALL "01500000 0.000750000 0.000500000 "
			  "0.001000000 0.000353553 100.00\n"
			  "(1 more)\n" OPEN);
	session_close(session);
}

/* A call that never ended holds the calls in it, but is in no mean and no extreme. */
static void flat_and_killed(void **state)
{
	struct spool_fixture fixture;
	struct session *session;

	fixture_open_in(&fixture, *state, 100, 0);
	fixture_process(&fixture, "/bin/killed", "killed", 6);
	fixture_region(&fixture, 1, "user", "again");
	fixture_region_span(&fixture, 0, 100, FIXTURE_START, NULL, 0);
	fixture_begin(&fixture, FIXTURE_START, 1);
	fixture_begin(&fixture, FIXTURE_START + MS, 1);
	fixture_begin(&fixture, FIXTURE_START + 2 * MS, 1);
	fixture_end(&fixture, FIXTURE_START + 3 * MS);
	fixture_end(&fixture, FIXTURE_START + 4 * MS);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	expect_table(session, &(struct output_options){.flat = true},
		     FLAT "killed [100] 0 0" WALL "04000000 - - - - -\n"
			  " again 2 1" WALL "04000000 0.002000000 0.001000000 0.003000000 "
			  "0.001414214 100.00\n" OPEN);
	session_close(session);
}

/* The same region of two processes, with another number in each. */
static void write_process(const char *directory, uint32_t pid, uint64_t region, uint64_t ms)
{
	struct spool_fixture fixture;

	fixture_open_in(&fixture, directory, pid, 0);
	fixture_process(&fixture, "/bin/twin", "twin", 4);
	fixture_region(&fixture, region, "user", "work");
	fixture_region_span(&fixture, 0, pid, FIXTURE_START, NULL, 0);
	fixture_begin(&fixture, FIXTURE_START, region);
	fixture_end(&fixture, FIXTURE_START + ms * MS);
	fixture_close(&fixture);
}

static void processes(void **state)
{
	struct session *session;

	write_process(*state, 100, 1, 2);
	write_process(*state, 101, 7, 4);
	session = test_session(*state, NULL);
	expect_table(session, &(struct output_options){0},
		     TREE "twin [100] 1 0" WALL "02000000 - - - - -\n"
			  " work 1 1" WALL "02000000 0.002000000 0.002000000 0.002000000 "
			  "0.000000000 100.00\n"
			  "twin [101] 1 0" WALL "04000000 - - - - -\n"
			  " work 1 1" WALL "04000000 0.004000000 0.004000000 0.004000000 "
			  "0.000000000 100.00\n\n");
	expect_table(session, &(struct output_options){.collapse_processes = true},
		     TREE "work 2 0" WALL "06000000 0.003000000 0.002000000 0.004000000 "
			  "0.001414214 100.00\n\n");
	session_close(session);
}

static void timeline(void **state)
{
	struct session *session;

	fixture_write_regions(*state);
	session = test_session(*state, NULL);
#define CALL(label, depth, seconds, self)                                                          \
	label " 1 " depth " wall_clock s " seconds " " seconds " " seconds " " seconds             \
	      " 0.000000000 " self "\n"
	expect_table(session, &(struct output_options){.is_timeline_wanted = true},
		     "REGIONS: timeline\nEach call when it began, in seconds since the start; "
		     "calls "
		     "that had not ended last until the end of the data.\n\n"
		     "Process regions [100], thread regions [100]\n START " COLUMNS
		     " 0.000000000 " CALL("main", "0", "0.010000000", "40.00") " 0.001000000 " CALL("compute", "1", "0.003000000", "66.67") " what = \"outer\"\n 0.002000000 " CALL("compute", "2", "0.001000000", "100.00") " 0.005000000 " CALL(
			     "pthread_mutex_lock", "1", "0.001000000",
			     "100.00") " 0.007000000 " CALL("compute", "1", "0.002000000",
							    "100.00") " 0."
								      "011000000"
								      " " CALL(
									      "lat"
									      "e",
									      "0",
									      "0."
									      "0010"
									      "0000"
									      "0",
									      "100."
									      "00") "\nProcess "
										    "regions "
										    "[100], thread "
										    "worker "
										    "[101]\n "
										    "START " COLUMNS
										    " 0."
										    "001000000"
										    " " CALL("task", "0", "0.002000000", "100.00") " 0.004000000 " CALL(
											    "task",
											    "0",
											    "0."
											    "004000"
											    "000",
											    "87.50") " 0.005000000 " CALL("pthread_mutex_lock",
															  "1",
															  "0.000500000",
															  "100.00"));
	session_close(session);
}

/* ---- other components ---- */

static void write_profile(const char *directory)
{
	static const struct fixture_component components[] = {
		{"page_rss", "bytes", SPOOL_COMPONENT_LEVEL, 1},
		{"cpu_util", "%", SPOOL_COMPONENT_RATIO, 2 << 8 | 3},
		{"cpu_clock", "ns", SPOOL_COMPONENT_PHASE, 1},
		{"wall_clock", "ns", SPOOL_COMPONENT_PHASE, 0},
		{"faults", "count", SPOOL_COMPONENT_PHASE, 1},
	};
	static const struct fixture_node nodes[] = {
		{.node = {0, 0, 0, 0}},
		{.node = {1, 0, 2, 0},
		 .values = {{8192, 0, 8192, UINT64_C(1) << 26, 0},
			    {5 * MS, 1 * MS, 4 * MS, 17 * MS * MS, 0},
			    {10 * MS, 4 * MS, 6 * MS, 52 * MS * MS, 0},
			    {5, 2, 3, 13, 0}}},
		{.node = {2, 1, 1, 0},
		 .values = {{4096, 4096, 4096, 1 << 24, 0},
			    {2 * MS, 2 * MS, 2 * MS, 4 * MS * MS, 0},
			    {4 * MS, 4 * MS, 4 * MS, 16 * MS * MS, 0},
			    {0, 0, 0, 0, 0}}},
	};
	struct spool_fixture fixture;

	fixture_open_in(&fixture, directory, 100, 0);
	fixture_process(&fixture, "/bin/kept", "kept", 4);
	fixture_region(&fixture, 1, "user", "outer");
	fixture_region(&fixture, 2, "user", "inner");
	fixture_components(&fixture, components, 5);
	fixture_rank(&fixture, 1, 4, "MPI_COMM_WORLD");
	fixture_profile(&fixture,
			&(struct spool_profile_part){.tree = 1, .tid = 100, .node_count = 3}, nodes,
			4);
	fixture.header.losses[SPOOL_LOSS_REGION_UNBALANCED] = 3;
	fixture.header.end_ticks = FIXTURE_START + 20 * MS;
	fixture_close(&fixture);
}

static void components(void **state)
{
	struct output_options options = {0};
	struct session *session;
	char *text;

	write_profile(*state);
	session = test_session(*state, NULL);
	text = made(session, "text", &options);
	squeeze(text);
	assert_non_null(strstr(text, "\n outer 2 1 page_rss bytes - 4096.0 0 8192 5792.6 -\n"
				     " inner 1 2 page_rss bytes - 4096.0 4096 4096 0.0 -\n"));
	assert_non_null(strstr(text, "\nkept [100] rank 1 2 0 cpu_util % 50.00 - - - - -\n"
				     " outer 2 1 cpu_util % 50.00 - - - - -\n"
				     " inner 1 2 cpu_util % 50.00 - - - - -\n"));
	assert_non_null(strstr(text, "\n outer 2 1 cpu_clock s 0.005000000 0.002500000 0.001000000 "
				     "0.004000000 0.002121320 60.00\n"));
	assert_non_null(strstr(text, "\n outer 2 1 faults count 5 2.5 2 3 0.7 100.00\n"
				     " inner 1 2 faults count 0 0.0 0 0 0.0 -\n"));
	free(text);
	text = made(session, NULL, &options);
	squeeze(text);
	assert_non_null(strstr(text, "\n 10.0 ms 6.00 ms 2 5.00 ms outer (user)\n"
				     " 4.00 ms 4.00 ms 1 4.00 ms inner (user)\n\n"));
	assert_non_null(strstr(text, "3 regions that ended with an outer region"));
	free(text);
	session_close(session);
}

/* ---- JSON ---- */

static json_t *parsed(struct session *session, bool metadata, bool flat_profile)
{
	struct output_options options = {.flat = flat_profile};
	struct problem problem = {""};
	json_error_t error;
	json_t *root;
	size_t size;
	char *text;

	if (metadata) {
		FILE *stream = open_memstream(&text, &size);

		assert_int_equal(output_write_metadata_json(session, stream, &problem), 0);
		fclose(stream);
	} else {
		text = made(session, "json", &options);
	}
	root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		fail_msg("line %d: %s\n%s", error.line, error.text, text);
	free(text);
	return root;
}

static json_int_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static void json_profile(void **state)
{
	struct session *session;
	const json_t *nodes, *totals, *wall;
	json_int_t self = 0;
	json_t *root;

	fixture_write_regions(*state);
	session = test_session(*state, NULL);
	root = parsed(session, false, false);
	nodes = json_object_get(root, "region_nodes");
	totals = json_object_get(root, "region_totals");
	assert_int_equal(json_array_size(json_object_get(root, "components")), 2);
	assert_int_equal(json_array_size(json_object_get(root, "regions")), 5);
	assert_int_equal(json_array_size(nodes), 7);
	assert_int_equal(json_array_size(totals), 5);
	for (size_t i = 0; i < json_array_size(nodes); i++)
		self += number(json_object_get(json_array_get(nodes, i), "wall_clock"), "self_ns");
	assert_int_equal(self, 17 * MS);
	wall = json_object_get(json_array_get(totals, 1), "wall_clock");
	assert_string_equal(json_string_value(json_object_get(json_array_get(totals, 1), "name")),
			    "compute");
	assert_int_equal(number(json_array_get(totals, 1), "count"), 3);
	assert_int_equal(number(wall, "sum_ns"), 5 * MS);
	assert_int_equal(number(wall, "min_ns"), 1 * MS);
	assert_int_equal(number(wall, "max_ns"), 3 * MS);
	json_decref(root);
	root = parsed(session, false, true);
	assert_null(json_object_get(root, "region_nodes"));
	assert_non_null(json_object_get(root, "region_totals"));
	json_decref(root);
	session_close(session);
}

static void json_metadata(void **state)
{
	const json_t *process, *regions;
	struct session *session;
	json_t *root;

	write_profile(*state);
	session = test_session(*state, NULL);
	root = parsed(session, true, false);
	process = json_array_get(json_object_get(root, "processes"), 0);
	regions = json_object_get(process, "regions");
	assert_int_equal(number(json_object_get(process, "rank"), "rank"), 1);
	assert_int_equal(number(json_object_get(process, "rank"), "size"), 4);
	assert_int_equal(number(regions, "definitions"), 2);
	assert_int_equal(number(regions, "events"), 0);
	assert_true(number(regions, "bytes") > 0);
	assert_int_equal(number(json_object_get(process, "losses"), "region_unbalanced"), 3);
	assert_int_equal(json_array_size(json_object_get(root, "components")), 5);
	assert_string_equal(json_string_value(json_object_get(json_object_get(root, "regions"),
							      "profile_from")),
			    "process");
	json_decref(root);
	session_close(session);
}

static void nothing_without_regions(void **state)
{
	static const char *const formats[] = {"text", "json", NULL};
	struct output_options options = {.is_timeline_wanted = true};
	struct session *session;
	json_t *root;

	fixture_write_small(*state);
	session = test_session(*state, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		char *text = made(session, formats[i], &options);

		assert_null(strcasestr(text, "region"));
		free(text);
	}
	root = parsed(session, true, false);
	assert_null(json_object_get(root, "regions"));
	assert_null(json_object_get(root, "components"));
	json_decref(root);
	session_close(session);
}

int main(void)
{
#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, test_directory_create, test_directory_remove)
	const struct CMUnitTest tests[] = {
		TEST(call_tree),     TEST(threads_apart),
		TEST(flat),          TEST(flat_and_killed),
		TEST(processes),     TEST(timeline),
		TEST(components),    TEST(json_profile),
		TEST(json_metadata), TEST(nothing_without_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
