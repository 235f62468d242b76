/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Stacks to nodes: prefix coding, exact and return addresses, modules that change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "unit/analysis/spool_fixture.h"
#include "unit/analysis/test_directory.h"

static void begin(struct spool_fixture *fixture, const char *directory)
{
	fixture_open_in(fixture, directory, 100, 0);
	fixture_module(fixture, FIXTURE_START, 1, 0x400000, 0x500000, 0, "/nowhere/p");
	fixture_span(fixture, 0, 100, FIXTURE_START);
}

static void sample(struct spool_fixture *fixture, uint64_t after, const uint64_t *stack,
		   uint32_t depth)
{
	fixture_sample(fixture, &(struct fixture_sample){.ticks = FIXTURE_START + after,
							 .weight = 1,
							 .stack = stack,
							 .depth = depth});
}

struct paths {
	const struct session *session;
	const char *const *expected;
	size_t at;
};

static int compare(const struct model_sample *it, void *context)
{
	struct paths *paths = context;

	assert_string_equal(test_path(paths->session, it->node), paths->expected[paths->at]);
	paths->at++;
	return 0;
}

static void expect_paths(const char *directory, const char *const *expected, size_t count)
{
	struct session *session = test_session(directory, NULL);
	struct paths paths = {.session = session, .expected = expected};
	struct problem problem;

	assert_int_equal(session_visit_samples(session, compare, &paths, &problem), 0);
	assert_int_equal(paths.at, count);
	assert_int_equal(session->processes[0].torn_bytes, 0);
	session_close(session);
}

static void leaf_is_exact_and_callers_are_not(void **state)
{
	static const uint64_t stack[] = {0x400010, 0x400020, 0x400030, 0x400040};
	static const char *const expected[] = {"[p]+f;[p]+1f;[p]+30",
					       "[p]+f;[p]+1f;[p]+2f;[p]+40",
					       "[p]+f;[p]+1f;[p]+30",
					       "[p]+f;[p]+20",
					       "[p]+f;[p]+20",
					       "[p]+10",
					       "[p]+f;[p]+1f;[p]+2f;[p]+40"};
	static const uint32_t depths[] = {3, 4, 3, 2, 2, 1, 4};
	struct spool_fixture fixture;

	begin(&fixture, *state);
	for (size_t i = 0; i < 7; i++)
		sample(&fixture, i * 1000, stack, depths[i]);
	fixture_close(&fixture);
	expect_paths(*state, expected, 7);
}

static void truncated_stacks_have_roots_of_their_own(void **state)
{
	static const uint64_t stack[] = {0x400010, 0x400020};
	static const char *const expected[] = {
		"[p]+f;[p]+20", "[stack cut: unreadable memory];[p]+f;[p]+20", "[p]+f;[p]+20",
		"[not sampled: signals blocked]", "[no stack: nothing to walk]"};
	struct spool_fixture fixture;
	struct fixture_sample it = {
		.ticks = FIXTURE_START, .weight = 1, .stack = stack, .depth = 2};

	begin(&fixture, *state);
	fixture_sample(&fixture, &it);
	it.end = SPOOL_STACK_BAD_READ;
	fixture_sample(&fixture, &it);
	it.end = SPOOL_STACK_COMPLETE;
	fixture_sample(&fixture, &it);
	it.depth = 0;
	fixture_sample(&fixture, &it);
	it.end = SPOOL_STACK_NOT_WALKED;
	fixture_sample(&fixture, &it);
	fixture_close(&fixture);
	expect_paths(*state, expected, 5);
}

/* What a thread that waits for a CPU would be doing is its caller; a reason stands for a stack. */
static void waiting_for_a_cpu_is_a_frame(void **state)
{
	static const uint64_t stack[] = {0x400010, 0x400020}, reason[] = {SPOOL_NO_STACK_BRIEF};
	static const char *const expected[] = {
		"[p]+f;[p]+20", "[p]+f;[p]+20;[waiting for a CPU]+0",
		"[no stack: waits too short to be seen];[waiting for a CPU]+0",
		"[no stack: waits too short to be seen]", "[p]+f;[p]+20"};
	struct spool_fixture fixture;
	struct fixture_sample it = {
		.ticks = FIXTURE_START, .weight = 1, .stack = stack, .depth = 2};

	begin(&fixture, *state);
	fixture_sample(&fixture, &it);
	it.source = SPOOL_SOURCE_RUNNABLE;
	fixture_sample(&fixture, &it);
	it = (struct fixture_sample){.ticks = FIXTURE_START,
				     .weight = 1,
				     .stack = reason,
				     .depth = 1,
				     .source = SPOOL_SOURCE_RUNNABLE,
				     .end = SPOOL_STACK_NOT_WALKED};
	fixture_sample(&fixture, &it);
	it.source = SPOOL_SOURCE_WALL;
	fixture_sample(&fixture, &it);
	sample(&fixture, 1000, stack, 2);
	fixture_close(&fixture);
	expect_paths(*state, expected, 5);
}

static void modules_change_under_the_same_address(void **state)
{
	static const uint64_t stack[] = {0x400010, 0x900020};
	static const char *const expected[] = {"[p]+f;[a.so]+20", "[p]+f;[b.so]+20",
					       "[p]+f;[b.so]+20", "[p]+f;[a.so]+20"};
	struct spool_fixture fixture;

	begin(&fixture, *state);
	fixture_module(&fixture, FIXTURE_START + 1000000, 2, 0x900000, 0x901000, 0,
		       "/nowhere/a.so");
	fixture_module_gone(&fixture, FIXTURE_START + 2000000, 2);
	fixture_module(&fixture, FIXTURE_START + 3000000, 3, 0x900000, 0x902000, 0,
		       "/nowhere/b.so");
	fixture_module_gone(&fixture, FIXTURE_START + 4000000, 3);
	fixture_module(&fixture, FIXTURE_START + 5000000, 4, 0x900000, 0x901000, 0,
		       "/nowhere/a.so");
	sample(&fixture, 1500000, stack, 2);
	sample(&fixture, 3500000, stack, 2);
	sample(&fixture, 3600000, stack, 2);
	sample(&fixture, 5500000, stack, 2);
	fixture_close(&fixture);
	expect_paths(*state, expected, 4);
}

static void code_in_no_module_is_unknown(void **state)
{
	static const uint64_t stack[] = {0x400010, 0xdead0000};
	static const char *const expected[] = {"[p]+f;[unknown]+dead0000"};
	struct spool_fixture fixture;
	struct session *session;

	begin(&fixture, *state);
	sample(&fixture, 0, stack, 2);
	fixture_close(&fixture);
	expect_paths(*state, expected, 1);
	session = test_session(*state, NULL);
	assert_int_equal(session->module_count, 2);
	assert_string_equal(session->modules[1].path, "[unknown]");
	assert_int_equal(session->processes[0].module_count, 2);
	assert_int_equal(session->modules[1].samples_unresolved, 1);
	session_close(session);
}

/* All frames but the innermost are looked up one byte before their value (kymo/spool.h): a frame
 * that a signal interrupted is stored plus one. */
static void only_the_innermost_frame_is_exact(void **state)
{
	static const uint64_t in_handler[] = {0x400010, 0x400020, 0x400031, 0x400040};
	static const char *const expected[] = {"[p]+f;[p]+1f;[p]+30;[p]+40"};
	struct spool_fixture fixture;

	begin(&fixture, *state);
	sample(&fixture, 0, in_handler, 4);
	fixture_close(&fixture);
	expect_paths(*state, expected, 1);
}

static void processes_do_not_share_nodes(void **state)
{
	static const uint64_t stack[] = {0x400010};
	struct spool_fixture fixture;
	struct session *session;

	begin(&fixture, *state);
	sample(&fixture, 0, stack, 1);
	fixture_close(&fixture);
	fixture_open_in(&fixture, *state, 200, 0);
	fixture_module(&fixture, FIXTURE_START, 1, 0x400000, 0x500000, 0, "/nowhere/p");
	fixture_span(&fixture, 0, 200, FIXTURE_START);
	sample(&fixture, 0, stack, 1);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	assert_int_equal(session->node_count, 2);
	assert_int_equal(session->frame_count, 2);
	assert_int_equal(session->function_count, 1);
	assert_int_not_equal(session->nodes[0].process, session->nodes[1].process);
	session_close(session);
}

/* The wrapper of a call stands for its caller; what it calls has that caller as well. Libraries of
 * the program whose names begin alike stay. */
static void frames_of_the_profiler_are_left_out(void **state)
{
	static const uint64_t called[] = {0x400010, 0x600020, 0x400030},
			      at_leaf[] = {0x400010, 0x600020},
			      twice[] = {0x400010, 0x600020, 0x700020, 0x800020},
			      root[] = {0x600010, 0x700020, 0x400030}, alone[] = {0x600010};
	static const char *const expected[] = {"[p]+f;[p]+30",
					       "[p]+f",
					       "[p]+f;[libkymo-mine.so]+20",
					       "[p]+30",
					       "[no stack: in the profiler]",
					       "[p]+f;[waiting for a CPU]+0"};
	struct spool_fixture fixture;
	struct fixture_sample it = {.ticks = FIXTURE_START,
				    .weight = 1,
				    .stack = at_leaf,
				    .depth = 2,
				    .source = SPOOL_SOURCE_RUNNABLE};
	struct session *session;

	begin(&fixture, *state);
	fixture_module(&fixture, FIXTURE_START, 2, 0x600000, 0x601000, 0, "/a b/kymo/libkymo.so");
	fixture_module(&fixture, FIXTURE_START, 3, 0x700000, 0x701000, 0,
		       "/usr/lib/libkymo-user.so.0.1.0 (deleted)");
	fixture_module(&fixture, FIXTURE_START, 4, 0x800000, 0x801000, 0, "/x/libkymo-mine.so");
	fixture_span(&fixture, 0, 100, FIXTURE_START);
	sample(&fixture, 0, called, 3);
	sample(&fixture, 0, at_leaf, 2);
	sample(&fixture, 0, twice, 4);
	sample(&fixture, 0, root, 3);
	sample(&fixture, 0, alone, 1);
	fixture_sample(&fixture, &it);
	fixture_close(&fixture);
	expect_paths(*state, expected, 6);
	session = test_session(*state, NULL);
	for (uint32_t i = 0; i < session->frame_count; i++)
		assert_false(session->frames[i].module == 1 || session->frames[i].module == 2);
	session_close(session);
}

/* Disassembly wants each address, the view by function none of them. */
static void each_address_of_a_function_is_a_frame(void **state)
{
	static const uint64_t stacks[][2] = {
		{0x400010, 0x400020}, {0x400010, 0x400024}, {0x400018, 0x400020}};
	struct spool_fixture fixture;
	struct session *session;

	begin(&fixture, *state);
	for (size_t i = 0; i < 3; i++)
		sample(&fixture, 0, stacks[i], 2);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	assert_int_equal(session->frame_count, 4);
	assert_int_equal(session->function_count, 1);
	assert_int_equal(session->node_count, 5);
	session_close(session);
}

static void put(FILE *file, uint64_t value, size_t size)
{
	assert_int_equal(fwrite(&value, 1, size, file), size);
}

/* A LOAD record of tools/perf/Documentation/jitdump-specification.txt. */
static void put_code(FILE *file, uint64_t time_ns, uint64_t index, uint64_t address,
		     const char *name)
{
	put(file, 0, 4);
	put(file, 16 + 40 + strlen(name) + 1, 4);
	put(file, time_ns, 8);
	put(file, 100, 4);
	put(file, 100, 4);
	put(file, address, 8);
	put(file, address, 8);
	put(file, 0x100, 8);
	put(file, index, 8);
	assert_int_equal(fwrite(name, 1, strlen(name) + 1, file), strlen(name) + 1);
}

static FILE *begin_jitdump(const char *directory, uint32_t pid)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/jit-%u.dump", directory, pid);
	file = fopen(path, "w");
	assert_non_null(file);
	put(file, 0x4a695444, 4);
	put(file, 1, 4);
	put(file, 40, 4);
	put(file, 62, 4);
	put(file, 0, 4);
	put(file, pid, 4);
	put(file, 0, 8);
	put(file, 0, 8);
	return file;
}

/* The fixture's ticks are CLOCK_MONOTONIC, as the times of a jitdump. */
static void replaced_code_is_told_apart_by_time(void **state)
{
	static const uint64_t stack[] = {0x90010, 0x90220, 0x90330};
	static const char *const expected[] = {
		"first+9000f;other+9021f;leaf+90330",
		"first+9000f;other+9021f;leaf+90330",
		"second+9000f;other+9021f;leaf+90330",
		"second+9000f;other+9021f;leaf+90330",
		"second+9000f;other+90220",
		"first+90010",
	};
	static const uint32_t depths[] = {3, 3, 3, 3, 2, 1};
	static const uint64_t times[] = {1000000, 4000000, 6000000, 8000000, 9000000, 2000000};
	struct session_options options = {.symbol_cache_directory = ""};
	struct paths paths = {.expected = expected};
	struct problem problem;
	struct spool_fixture fixture;
	struct session *session;
	FILE *dump;

	fixture_open_in(&fixture, *state, 100, 0);
	fixture_module(&fixture, FIXTURE_START, 1, 0x80000, 0xa0000, 0, "//anon");
	fixture_span(&fixture, 0, 100, FIXTURE_START);
	for (size_t i = 0; i < 6; i++) {
		if (i == 5)
			fixture_span(&fixture, 0, 100, FIXTURE_START);
		sample(&fixture, times[i], stack, depths[i]);
	}
	fixture_close(&fixture);
	dump = begin_jitdump(*state, 100);
	put_code(dump, FIXTURE_START, 1, 0x90000, "first");
	put_code(dump, FIXTURE_START, 2, 0x90200, "other");
	put_code(dump, FIXTURE_START, 3, 0x90300, "leaf");
	put_code(dump, FIXTURE_START + 5000000, 4, 0x90000, "second");
	assert_int_equal(fclose(dump), 0);
	session = test_session(*state, &options);
	paths.session = session;
	assert_int_equal(session_visit_samples(session, compare, &paths, &problem), 0);
	assert_int_equal(paths.at, 6);
	assert_int_equal(session->function_count, 4);
	session_close(session);
}

#define TEST(function)                                                                             \
	cmocka_unit_test_setup_teardown(function, test_directory_create, test_directory_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(leaf_is_exact_and_callers_are_not),
		TEST(truncated_stacks_have_roots_of_their_own),
		TEST(waiting_for_a_cpu_is_a_frame),
		TEST(modules_change_under_the_same_address),
		TEST(replaced_code_is_told_apart_by_time),
		TEST(code_in_no_module_is_unknown),
		TEST(only_the_innermost_frame_is_exact),
		TEST(processes_do_not_share_nodes),
		TEST(frames_of_the_profiler_are_left_out),
		TEST(each_address_of_a_function_is_a_frame),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
