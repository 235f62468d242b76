/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The outputs for people and for scripts, on small recordings: JSON that a strict parser takes,
 * sums that agree, text that fits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/array.h"
#include "common/output_formats.h"
#include "common/settings.h"
#include "common/settings_value.h"
#include "output/format.h"
#include "output/formats/formats.h"
#include "output/json/metadata.h"
#include "output/output.h"
#include "output/summary/summary.h"
#include "unit/analysis/spool_fixture.h"
#include "unit/analysis/test_directory.h"

#define MS UINT64_C(1000000)

typedef int (*writer)(struct session *session, FILE *stream, struct problem *problem);

static unsigned summary_columns;

static int write_summary(struct session *session, FILE *stream, struct problem *problem)
{
	struct output_options options = {.columns = summary_columns};

	return output_write_summary(session, &options, stream, false, problem);
}

static int write_text(struct session *session, FILE *stream, struct problem *problem)
{
	struct output_options options = {.is_measure_given = true,
					 .measure = VIEW_MEASURE_CPU_TIME};

	return output_find_format("text")->write(session, &options, stream, problem);
}

static int write_thread_text(struct session *session, FILE *stream, struct problem *problem)
{
	struct output_options options = {
		.per_thread = true, .is_measure_given = true, .measure = VIEW_MEASURE_CPU_TIME};

	return output_find_format("text")->write(session, &options, stream, problem);
}

static int write_json(struct session *session, FILE *stream, struct problem *problem)
{
	struct output_options options = {
		.per_thread = true, .is_measure_given = true, .measure = VIEW_MEASURE_CPU_TIME};

	return output_find_format("json")->write(session, &options, stream, problem);
}

/* What a writer makes of the session; the caller frees. */
static char *written(struct session *session, writer write)
{
	struct problem problem = {""};
	size_t size;
	char *text;
	FILE *stream = open_memstream(&text, &size);

	assert_non_null(stream);
	if (write(session, stream, &problem) != 0)
		fail_msg("%s", problem.text);
	fclose(stream);
	return text;
}

static json_t *parsed(struct session *session, writer write)
{
	char *text = written(session, write);
	json_error_t error;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);

	if (!root)
		fail_msg("line %d column %d: %s\n%s", error.line, error.column, error.text, text);
	free(text);
	return root;
}

static json_int_t sum_of(const json_t *array, const char *key)
{
	json_int_t sum = 0;

	for (size_t i = 0; i < json_array_size(array); i++)
		sum += json_integer_value(json_object_get(json_array_get(array, i), key));
	return sum;
}

static void profile_sums_agree(void **state)
{
	fixture_write_small(*state);
	struct session *session = test_session(*state, NULL);
	json_t *root = parsed(session, write_json);
	const json_t *nodes = json_object_get(root, "nodes");

	assert_string_equal(json_string_value(json_object_get(root, "schema")), "kymo.profile/1");
	assert_string_equal(json_string_value(json_object_get(root, "measure")), "cpu_time");
	assert_int_equal(sum_of(nodes, "cpu_ns"), 4 * MS + MS / 2);
	assert_int_equal(sum_of(nodes, "cpu_samples"), 4);
	assert_int_equal(sum_of(nodes, "blocked_ns"), 6 * MS);
	assert_int_equal(sum_of(json_object_get(root, "thread_nodes"), "cpu_ns"), 4 * MS + MS / 2);
	assert_int_equal(sum_of(json_object_get(root, "functions"), "self_ns"), 4 * MS + MS / 2);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(root, "totals"), "cpu_ns")),
		4 * MS + MS / 2);
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		const json_t *node = json_array_get(nodes, i);
		const json_t *parent = json_object_get(node, "parent");

		assert_int_equal(json_integer_value(json_object_get(node, "id")), i);
		assert_true(json_is_null(parent) || json_integer_value(parent) < (json_int_t)i);
	}
	json_decref(root);
	session_close(session);
}

static void metadata_has_what_is_promised(void **state)
{
	static const char *const keys[] = {"schema",   "command", "host",      "settings",
					   "clocks",   "losses",  "processes", "problems",
					   "start_ns", "end_ns",  "samples"};
	static const char *const process_keys[] = {"pid",           "executable", "exit",
						   "threads_total", "records",    "samples",
						   "losses",        "stacks"};

	fixture_write_small(*state);
	struct session *session = test_session(*state, NULL);
	json_t *root = parsed(session, output_write_metadata_json);
	const json_t *process = json_array_get(json_object_get(root, "processes"), 0);

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		assert_non_null(json_object_get(root, keys[i]));
	for (size_t i = 0; i < ARRAY_SIZE(process_keys); i++)
		assert_non_null(json_object_get(process, process_keys[i]));
	assert_int_equal(json_integer_value(json_object_get(process, "samples")), 6);
	assert_int_equal(json_integer_value(json_object_get(process, "threads_total")), 2);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(process, "losses"), "no_chunk")),
		7);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(root, "losses"), "no_chunk")),
		7);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(process, "stacks"), "bad_cfa")),
		1);
	json_decref(root);
	session_close(session);
}

/* Names are bytes to the kernel; JSON is UTF-8. */
static void hostile_names_stay_data(void **state)
{
	static const char arguments[] =
		"a\xff\xc3(\0\"\\\n\x01\0</script>\xed\xa0\x80\0\xe2\x82\xac";
	static const uint64_t stack[] = {0x1010};
	struct spool_fixture fixture;
	struct session *session;
	json_t *root;

	fixture_open_in(&fixture, *state, 100, 0);
	fixture_process(&fixture, "/bin/\xff\"", arguments, sizeof(arguments));
	fixture_module(&fixture, FIXTURE_START, 1, 0x1000, 0x2000, 0, "/nowhere/\x80\x1b[31m");
	fixture_thread_start(&fixture, FIXTURE_START, 0, 100, 0, "\xc0\xaf\t\x1b", 0);
	fixture_thread_start(&fixture, FIXTURE_START, 1, 101, 0, "kymo", 3);
	fixture_span(&fixture, 0, 100, FIXTURE_START);
	fixture_sample(&fixture,
		       &(struct fixture_sample){
			       .ticks = FIXTURE_START, .weight = 1, .stack = stack, .depth = 1});
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	root = parsed(session, write_json);
	assert_string_equal(json_string_value(json_array_get(json_object_get(root, "command"), 3)),
			    "\xe2\x82\xac");
	json_decref(root);
	json_decref(parsed(session, output_write_metadata_json));
	char *text = written(session, write_text), *summary = written(session, write_summary);

	assert_null(strchr(text, 0x1b));
	assert_null(strchr(summary, 0x1b));
	/* kymo's own thread is none of the program's */
	assert_non_null(strstr(text, "; 1 thread of 1 process\n"));
	assert_non_null(strstr(summary, "in 1 thread of 1 process\n"));
	free(text);
	free(summary);
	session_close(session);
}

static const char *line_with(const char *text, const char *what)
{
	static char line[512];
	const char *found = strstr(text, what), *begin = found;

	if (!found)
		fail_msg("no \"%s\" in:\n%s", what, text);
	while (begin > text && begin[-1] != '\n')
		begin--;
	snprintf(line, sizeof(line), "%.*s", (int)strcspn(begin, "\n"), begin);
	return line;
}

static void text_has_the_promised_columns(void **state)
{
	static const char *const columns[] = {"LABEL", "COUNT", "DEPTH",  "METRIC", "UNITS",
					      "SUM",   "MEAN",  "%TOTAL", "%SELF"};
	char name[64];
	unsigned long count, depth;
	double sum;

	fixture_write_small(*state);
	struct session *session = test_session(*state, NULL);
	char *text = written(session, write_text);
	const char *heading = line_with(text, "LABEL");

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		assert_non_null(heading = strstr(heading, columns[i]));
	/* main process row: everything, depth 0 */
	assert_int_equal(sscanf(line_with(text, "small [100]"),
				"small [100] %lu %lu cpu_time s %lf", &count, &depth, &sum),
			 3);
	assert_int_equal(count, 4);
	assert_int_equal(depth, 0);
	assert_true(sum > 0.004499 && sum < 0.004501);
	assert_int_equal(sscanf(line_with(text, "[stack cut"), " %63[^]]] %lu %lu cpu_time s %lf",
				name, &count, &depth, &sum),
			 4);
	assert_int_equal(count, 1);
	assert_int_equal(depth, 1);
	free(text);
	text = written(session, write_thread_text);
	assert_non_null(strstr(text, "Thread 100"));
	free(text);
	session_close(session);
}

static void summary_fits_and_warns(void **state)
{
	fixture_write_small(*state);
	struct session *session = test_session(*state, NULL);
	char *text = written(session, write_summary), *rest = text, *line;

	assert_non_null(strstr(text, "Heaviest functions"));
	assert_non_null(strstr(text, "7 samples dropped because no buffer was ready"));
	assert_non_null(strstr(text, "have an incomplete stack"));
	assert_non_null(strstr(text, "CPU-time timers"));
	assert_non_null(strstr(text, "launch.json is missing"));
	while ((line = strsep(&rest, "\n")))
		assert_true(format_count_text_columns(line) <= 100);
	free(text);
	for (summary_columns = 1; summary_columns <= 300; summary_columns += 13) {
		size_t most = summary_columns < 40    ? 40
			      : summary_columns > 200 ? 200
						      : summary_columns;

		rest = text = written(session, write_summary);
		while ((line = strsep(&rest, "\n")))
			assert_true(format_count_text_columns(line) <= most);
		free(text);
	}
	summary_columns = 0;
	session_close(session);
}

static void write_launch(const char *directory, uint64_t user_ns, const char *event)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/launch.json", directory);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file,
		"{\"schema\": \"kymo.launch/1\", \"pid\": 100, \"wait_status\": 0, \"user_ns\": "
		"%ju,"
		"\"command\": [\"small\"], \"settings\": {\"SAMPLING_OVERFLOW_EVENT\":"
		"{\"value\": \"%s\", \"origin\": \"option\"}}}",
		(uintmax_t)user_ns, event);
	assert_int_equal(fclose(file), 0);
}

static char *filtered_summary(const char *directory, const struct session_options *options)
{
	struct session *session = test_session(directory, options);
	char *text = written(session, write_summary);

	session_close(session);
	return text;
}

/* Code of a compiler that was gone, or not there yet, when the mappings were read. */
static void code_in_no_mapping_has_advice(void **state)
{
	static const uint64_t stack[] = {0x1011, 0x900010};
	struct spool_fixture fixture;
	char *text;

	fixture_open_in(&fixture, *state, 100, 0);
	fixture_process(&fixture, "/usr/bin/node", "node", 5);
	fixture_module(&fixture, FIXTURE_START, 1, 0x1000, 0x2000, 0, "/main");
	fixture_span(&fixture, 0, 100, FIXTURE_START);
	fixture_sample(&fixture,
		       &(struct fixture_sample){
			       .ticks = FIXTURE_START, .weight = 1000, .stack = stack, .depth = 2});
	fixture_close(&fixture);
	text = filtered_summary(*state, NULL);
	assert_non_null(strstr(text, "in [unknown]: start it with node --perf-basic-prof"));
	free(text);
}

static void write_recursion(const char *directory, uint32_t pid)
{
	/* f calls itself and g, which calls f; the last frame is an exact pc in f. */
	static const uint64_t stack[] = {0x1011, 0x2011, 0x2011, 0x2011, 0x3011,
					 0x2011, 0x3011, 0x2011, 0x3011, 0x2010};
	static const uint32_t depths[] = {3, 4, 5, 10};
	struct spool_fixture fixture;

	fixture_open_in(&fixture, directory, pid, 0);
	fixture_process(&fixture, "/bin/recursive", "recursive", 9);
	for (unsigned i = 1; i <= 3; i++)
		fixture_module(&fixture, FIXTURE_START, i, i << 12, (i + 1) << 12, 0,
			       (const char *[]){"/main", "/f", "/g"}[i - 1]);
	fixture_span(&fixture, 0, pid, FIXTURE_START);
	for (size_t i = 0; i < 4; i++)
		fixture_sample(&fixture, &(struct fixture_sample){.ticks = FIXTURE_START,
								  .weight = 1000,
								  .stack = stack,
								  .depth = depths[i]});
	fixture_close(&fixture);
}

/* main > f, main > f > f, main > f > f > f > g and main > f > ... > g > f > g > f, in two
 * processes. */
static void recursion_and_processes_are_one_path(void **state)
{
	write_recursion(*state, 100);
	write_recursion(*state, 101);
	struct session *session = test_session(*state, NULL);
	char *text = written(session, write_summary);
	const char *line = line_with(text, "[main] > [f]\n");

	assert_non_null(strstr(line, "4.00 us"));
	line = line_with(text, "[main] > [f] > [g]\n");
	assert_non_null(strstr(line, "2.00 us"));
	line = line_with(text, "[main] > [f] > [g] > [f]\n");
	assert_non_null(strstr(line, "2.00 us"));
	assert_null(strstr(text, "[f] > [f]"));
	free(text);
	session_close(session);
}

static int write_collapsed_text(struct session *session, FILE *stream, struct problem *problem)
{
	struct output_options options = {.collapse_processes = true};

	return output_find_format("text")->write(session, &options, stream, problem);
}

static void processes_can_be_added_up(void **state)
{
	unsigned long count, depth;

	write_recursion(*state, 100);
	write_recursion(*state, 101);
	struct session *session = test_session(*state, NULL);
	char *text = written(session, write_collapsed_text);

	assert_int_equal(
		sscanf(line_with(text, "(2 processes)"), "(2 processes) %lu %lu", &count, &depth),
		2);
	assert_int_equal(count, 8);
	assert_int_equal(sscanf(line_with(text, "  [main]"), "  [main] %lu %lu", &count, &depth),
			 2);
	assert_int_equal(count, 8);
	assert_int_equal(depth, 1);
	assert_null(strstr(text, "recursive [10"));
	free(text);
	session_close(session);
}

/* Part of the run is not compared with all of it. */
static void filters_leave_the_kernels_count_alone(void **state)
{
	struct session_options options = {.skip_symbolizing = true, .symbol_cache_directory = ""};
	char *text;

	fixture_write_small(*state);
	write_launch(*state, 100 * MS, "page-faults");
	text = filtered_summary(*state, NULL);
	assert_non_null(strstr(text, "that the kernel counted"));
	free(text);
	options.filter_process_pid = 100;
	text = filtered_summary(*state, &options);
	assert_null(strstr(text, "that the kernel counted"));
	assert_non_null(strstr(text, "covered by samples"));
	free(text);
	options.filter_process_pid = 0;
	options.to_ns = 2 * MS;
	text = filtered_summary(*state, &options);
	assert_null(strstr(text, "that the kernel counted"));
	assert_null(strstr(text, "covered by samples"));
	assert_non_null(strstr(text, "in the selected part of the run"));
	free(text);
}

static void overflow_samples_name_their_event(void **state)
{
	static const uint64_t stack[] = {0x1010};
	struct output_options options = {.is_measure_given = true,
					 .measure = VIEW_MEASURE_COUNTER_EVENTS};
	struct spool_fixture fixture;
	struct session *session;
	struct problem problem;
	char *text, *summary;
	size_t size;
	FILE *stream;

	fixture_open_in(&fixture, *state, 100, 0);
	fixture_module(&fixture, FIXTURE_START, 1, 0x1000, 0x2000, 0, "/nowhere/p");
	fixture_span(&fixture, 0, 100, FIXTURE_START);
	fixture_sample(&fixture, &(struct fixture_sample){.ticks = FIXTURE_START,
							  .weight = 1000,
							  .source = SPOOL_SOURCE_OVERFLOW,
							  .stack = stack,
							  .depth = 1});
	fixture_close(&fixture);
	write_launch(*state, MS, "branch-misses");
	session = test_session(*state, NULL);
	stream = open_memstream(&text, &size);
	assert_int_equal(output_find_format("text")->write(session, &options, stream, &problem), 0);
	fclose(stream);
	assert_non_null(strstr(text, "measure: branch-misses, "));
	assert_non_null(strstr(text, " branch-misses events "));
	free(text);
	summary = written(session, write_summary);
	assert_non_null(strstr(summary, "1 samples of branch-misses in"));
	free(summary);
	session_close(session);
}

static void empty_session_is_no_accident(void **state)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/spool", (char *)*state);
	assert_int_equal(mkdir(path, 0777), 0);
	struct session *session = test_session(*state, NULL);

	free(written(session, write_text));
	free(written(session, write_thread_text));
	free(written(session, write_summary));
	json_decref(parsed(session, write_json));
	json_decref(parsed(session, output_write_metadata_json));
	session_close(session);
}

static void full_disk_leaves_no_half_file(void **state)
{
	struct output_options options = {0};
	struct problem problem;
	char path[4096];
	uint64_t bytes = 0;
	FILE *full;

	fixture_write_small(*state);
	struct session *session = test_session(*state, NULL);
	assert_int_equal(output_write_file(session, output_find_format("json"), &options, *state,
					   "p-", &bytes, &problem),
			 0);
	snprintf(path, sizeof(path), "%s/p-profile.json", (char *)*state);
	assert_int_equal(remove(path), 0);
	assert_true(bytes > 1000);
	assert_int_equal(output_write_file(session, output_find_format("json"), &options,
					   "/nowhere/at all", NULL, NULL, &problem),
			 -ENOENT);
	assert_non_null(strstr(problem.text, "/nowhere/at all/profile.json"));
	full = fopen("/dev/full", "w");
	if (full) {
		assert_int_equal(output_write_metadata_json(session, full, &problem), -ENOSPC);
		assert_non_null(strstr(problem.text, strerror(ENOSPC)));
		assert_int_equal(write_json(session, full, &problem), -ENOSPC);
		assert_int_equal(write_text(session, full, &problem), -ENOSPC);
		assert_int_equal(write_summary(session, full, &problem), -ENOSPC);
		clearerr(full);
		fclose(full);
	}
	session_close(session);
}

#define WORD(name, word, when) word,

/* A row of the list names its format as the format does, and the setting has its words from there.
 */
static void formats_have_the_words_of_the_list(void **state)
{
	static const char *const words[] = {OUTPUT_FORMAT_LIST(WORD)};
	const struct setting *setting = &settings_table[SETTING_OUTPUT_FORMATS];
	struct text_slice rest = setting_slice_from_text(setting->choices), word;

	(void)state;
	assert_int_equal(ARRAY_SIZE(words), output_format_count);
	for (size_t i = 0; i < output_format_count; i++)
		assert_string_equal(output_formats[i]->name, words[i]);
	assert_string_equal(setting->choices,
			    "text,json,perfetto,folded,regions-folded,pprof,report,html,"
			    "memory,db,speedscope,gecko,otlp,coverage,coverage-json,lcov");
	assert_string_equal(setting->default_value, "text,json,perfetto,folded,pprof,report,memory,"
						    "coverage,coverage-json");
	while (setting_next_list_word(&rest, &word)) {
		unsigned found = 0;

		for (size_t i = 0; i < output_format_count; i++)
			found += setting_slice_equals_word(word, output_formats[i]->name);
		assert_int_equal(found, 1);
	}
}

static void quantities(void **state)
{
	(void)state;
	assert_string_equal(quantity_from_ns(999).text, "999 ns");
	assert_string_equal(quantity_from_ns(1500).text, "1.50 us");
	assert_string_equal(quantity_from_ns(999499).text, "999 us");
	assert_string_equal(quantity_from_ns(999500).text, "1.00 ms");
	assert_string_equal(quantity_from_ns(12345678900).text, "12.3 s");
	assert_string_equal(quantity_from_ns(UINT64_C(754) * 1000000000).text, "12 min 34 s");
	assert_string_equal(quantity_from_ns(UINT64_C(7260) * 1000000000).text, "2 h 01 min");
	assert_string_equal(quantity_from_bytes(1023).text, "1023 B");
	assert_string_equal(quantity_from_bytes(1536).text, "1.50 KiB");
	assert_string_equal(quantity_from_count(0).text, "0");
	assert_string_equal(quantity_from_count(1234567).text, "1,234,567");
	assert_string_equal(quantity_from_share(1, 3).text, "33.3 %");
	assert_string_equal(quantity_from_share(0, 0).text, "-");
}

#define TEST(function)                                                                             \
	cmocka_unit_test_setup_teardown(function, test_directory_create, test_directory_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(profile_sums_agree),
		TEST(metadata_has_what_is_promised),
		TEST(hostile_names_stay_data),
		TEST(text_has_the_promised_columns),
		TEST(summary_fits_and_warns),
		TEST(filters_leave_the_kernels_count_alone),
		TEST(overflow_samples_name_their_event),
		TEST(recursion_and_processes_are_one_path),
		TEST(code_in_no_mapping_has_advice),
		TEST(processes_can_be_added_up),
		TEST(empty_session_is_no_accident),
		TEST(full_disk_leaves_no_half_file),
		cmocka_unit_test(formats_have_the_words_of_the_list),
		cmocka_unit_test(quantities),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
