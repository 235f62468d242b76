/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a session says about a small run with every kind of record; see fixture_write_small().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/open/open.h"
#include "unit/analysis/spool_fixture.h"
#include "unit/analysis/test_directory.h"

#define START (FIXTURE_START + FIXTURE_BOOT)
#define MS    UINT64_C(1000000)

static void small_process(void **state)
{
	fixture_write_small(*state);
	struct session *session = test_session(*state, NULL);
	const struct model_process *process = &session->processes[0];

	assert_int_equal(session->process_count, 1);
	assert_int_equal(process->pid, 100);
	assert_string_equal(process->executable, "/usr/bin/small");
	assert_string_equal(process->name, "small");
	assert_string_equal(process->command_line, "small 'two words'");
	assert_string_equal(session->command_line, "small 'two words'");
	assert_int_equal(process->argument_count, 2);
	assert_int_equal(process->start_ns, START);
	assert_int_equal(process->end_ns, START + 6 * MS);
	assert_int_equal(session->start_ns, START);
	assert_int_equal(session->realtime_minus_boottime_ns,
			 (int64_t)(FIXTURE_REAL - FIXTURE_BOOT));
	assert_int_equal(process->samples, 6);
	assert_int_equal(process->header_sample_count, 6);
	assert_int_equal(process->stacks[SPOOL_STACK_COMPLETE], 5);
	assert_int_equal(process->stacks[SPOOL_STACK_BAD_CFA], 1);
	assert_int_equal(process->losses[SPOOL_LOSS_NO_CHUNK], 7);
	assert_int_equal(process->torn_bytes, 0);
	assert_int_equal(process->unknown_records, 0);
	assert_int_equal(process->cpu_source, SPOOL_CPU_SOURCE_TIMER);
	assert_string_equal(process->cpu_source_reason, "because");
	assert_int_equal(process->metric_count, 1);
	assert_int_equal(process->metrics[0].time_ns, START + MS);
	assert_int_equal(process->metrics[0].value, 1 << 20);
	assert_int_equal(process->notice_count, 1);
	session_close(session);
}

static void small_threads_and_modules(void **state)
{
	fixture_write_small(*state);
	struct session *session = test_session(*state, NULL);
	const struct model_thread *threads = session->threads;

	assert_int_equal(session->thread_count, 2);
	assert_string_equal(threads[0].name, "small");
	assert_int_equal(threads[0].tid, 100);
	assert_int_equal(threads[0].parent, MODEL_ENTRY_INDEX_NONE);
	assert_int_equal(threads[0].end_ns, START + 6 * MS);
	assert_int_equal(threads[0].cpu_ns, 4 * MS + MS / 2);
	assert_int_equal(threads[0].covered_ns, 4 * MS);
	assert_string_equal(threads[1].name, "renamed");
	assert_int_equal(threads[1].parent, 0);
	assert_int_equal(threads[1].start_ns, START + MS);
	assert_int_equal(threads[1].end_ns, UINT64_MAX);
	assert_int_equal(threads[1].samples[SPOOL_SOURCE_WALL], 2);
	assert_int_equal(threads[1].weight[SPOOL_SOURCE_WALL], 6 * MS);
	assert_int_equal(session->module_count, 2);
	assert_string_equal(session->modules[1].name, "libwait.so");
	assert_int_equal(session->modules[0].samples_total, 4);
	assert_int_equal(session->modules[0].samples_unresolved, 4);
	assert_int_equal(session->modules[1].samples_total, 2);
	session_close(session);
}

static void small_tree(void **state)
{
	static const struct {
		const char *path;
		uint64_t cpu, wall;
	} expected[] = {
		{"[small]+100f;[small]+1020", 2 * MS, 0},
		{"[small]+100f;[small]+1030", MS, 0},
		{"[stack cut: wrong unwind information];[small]+1030", MS, 0},
		{"[small]+103f;[libwait.so]+1010", 0, 6 * MS},
		{"[unsampled]", MS / 2, 0},
	};
	size_t found = 0;

	fixture_write_small(*state);
	struct session *session = test_session(*state, NULL);
	for (uint32_t i = 0; i < session->node_count; i++) {
		const struct model_calltree_node *node = &session->nodes[i];

		assert_true(node->parent == MODEL_ENTRY_INDEX_NONE || node->parent < i);
		if (!node->self_weight[SPOOL_SOURCE_CPU] && !node->self_weight[SPOOL_SOURCE_WALL])
			continue;
		for (size_t k = 0; k < 5; k++) {
			if (strcmp(expected[k].path, test_path(session, i)) != 0)
				continue;
			assert_int_equal(node->self_weight[SPOOL_SOURCE_CPU], expected[k].cpu);
			assert_int_equal(node->self_weight[SPOOL_SOURCE_WALL], expected[k].wall);
			found++;
		}
	}
	assert_int_equal(found, 5);
	session_close(session);
}

struct seen {
	const struct session *session;
	size_t count, metrics, repeats;
	uint64_t weight, last_ns;
	char path[4096];
};

static int see(const struct model_sample *sample, void *context)
{
	struct seen *seen = context;

	assert_true(sample->node < seen->session->node_count);
	assert_true(sample->thread < seen->session->thread_count);
	seen->count++;
	seen->repeats += sample->is_repeat;
	seen->weight += sample->weight;
	seen->last_ns = sample->time_ns;
	if (sample->metric_bitmap) {
		assert_int_equal(sample->metrics[SPOOL_METRIC_THREAD_CPU_NS], 2 * MS);
		seen->metrics++;
	}
	if (seen->count == 1)
		snprintf(seen->path, sizeof(seen->path), "%s",
			 test_path(seen->session, sample->node));
	return 0;
}

static int stop(const struct model_sample *sample, void *context)
{
	(void)sample;
	(void)context;
	return 77;
}

static void small_samples(void **state)
{
	struct problem problem;

	fixture_write_small(*state);
	struct session *session = test_session(*state, NULL);
	struct seen seen = {.session = session};

	assert_int_equal(session_visit_samples(session, see, &seen, &problem), 0);
	assert_int_equal(seen.count, 6);
	assert_int_equal(seen.repeats, 1);
	assert_int_equal(seen.metrics, 1);
	assert_int_equal(seen.weight, 10 * MS);
	/* Times lose their lower bits (SPOOL_SAMPLE_TIME_SHIFT). */
	assert_in_range(seen.last_ns, START + 5 * MS - 256, START + 5 * MS);
	assert_string_equal(seen.path, "[small]+100f;[small]+1020");
	assert_int_equal(session_visit_samples(session, stop, &seen, &problem), 77);
	session_close(session);
}

static void filters(void **state)
{
	struct session_options options = {.symbol_cache_directory = "", .skip_symbolizing = true};
	struct session *session;

	fixture_write_small(*state);
	options.filter_thread_tid = 101;
	session = test_session(*state, &options);
	assert_int_equal(session->thread_count, 1);
	assert_int_equal(session->processes[0].samples, 2);
	session_close(session);

	options.filter_thread_tid = 0;
	options.from_ns = 2 * MS - 1000;
	options.to_ns = 3 * MS - 1000;
	session = test_session(*state, &options);
	assert_int_equal(session->processes[0].samples, 2);
	assert_int_equal(test_frame(session, "[unsampled]"), MODEL_ENTRY_INDEX_NONE);
	session_close(session);

	options = (struct session_options){.skip_symbolizing = true, .filter_process_pid = 99};
	session = test_session(*state, &options);
	assert_int_equal(session->process_count, 0);
	assert_int_equal(session->node_count, 0);
	session_close(session);
}

static void images_of_one_pid_stay_apart(void **state)
{
	struct spool_fixture fixture;
	struct session *session;

	fixture_write_small(*state);
	fixture_open_in(&fixture, *state, 100, 1);
	fixture.header.start_boottime_ns += 10 * MS;
	fixture_process(&fixture, "/usr/bin/second", "", 0);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	assert_int_equal(session->process_count, 2);
	assert_string_equal(session->processes[0].name, "small");
	assert_string_equal(session->processes[1].name, "second");
	assert_string_equal(session->processes[1].command_line, "/usr/bin/second");
	assert_int_equal(session->processes[1].module_count, 0);
	session_close(session);
}

static void write_file(const char *directory, const char *name, const char *text)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void launch_metadata(void **state)
{
	struct session *session;

	fixture_write_small(*state);
	write_file(*state, "launch.json",
		   "{\"schema\":\"kymo.launch/1\",\"kymo_version\":\"0.1\",\"command\":[\"a b\"],"
		   "\"pid\":100,\"wait_status\":11,\"user_ns\":5,\"system_ns\":6,"
		   "\"settings\":{\"SAMPLING_FREQ\":{\"value\":\"100\",\"origin\":\"option\"}}}");
	session = test_session(*state, NULL);
	assert_true(session->launch.known);
	assert_string_equal(session->command_line, "'a b'");
	assert_int_equal(session->launch.user_ns + session->launch.system_ns, 11);
	assert_int_equal(session->processes[0].wait_status, 11);
	assert_int_equal(session->launch.setting_count, 1);
	assert_string_equal(session->launch.settings[0].origin, "option");
	assert_int_equal(session->problem_count, 0);
	session_close(session);

	write_file(*state, "launch.json", "{\"schema\":");
	session = test_session(*state, NULL);
	assert_false(session->launch.known);
	assert_int_equal(session->problem_count, 1);
	assert_non_null(strstr(session->problems[0], "launch.json:1"));
	session_close(session);
}

static void what_is_no_result_is_said(void **state)
{
	struct session *session;
	struct problem problem;
	char path[4096];

	assert_int_equal(session_open(*state, NULL, &session, &problem), -ENOENT);
	assert_non_null(strstr(problem.text, "not a result directory"));
	snprintf(path, sizeof(path), "%s/spool", (char *)*state);
	assert_int_equal(mkdir(path, 0777), 0);
	write_file(*state, "spool/1-0.spool", "nonsense");
	session = test_session(*state, NULL);
	assert_int_equal(session->process_count, 0);
	assert_int_equal(session->unreadable_file_count, 1);
	assert_int_equal(session->problem_count, 2);
	session_close(session);
}

static void other_versions_are_refused(void **state)
{
	struct spool_fixture fixture;
	struct session *session;

	fixture_open_in(&fixture, *state, 5, 0);
	fixture.header.version_major = SPOOL_VERSION_MAJOR + 1;
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	assert_int_equal(session->unreadable_file_count, 1);
	assert_non_null(strstr(session->problems[0], "use the version that recorded it"));
	session_close(session);
}

#define TEST(function)                                                                             \
	cmocka_unit_test_setup_teardown(function, test_directory_create, test_directory_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(small_process),
		TEST(small_threads_and_modules),
		TEST(small_tree),
		TEST(small_samples),
		TEST(filters),
		TEST(images_of_one_pid_stay_apart),
		TEST(launch_metadata),
		TEST(what_is_no_result_is_said),
		TEST(other_versions_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
