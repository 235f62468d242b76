/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Frames of interpreted code: line tables of each kind, and samples with such frames.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "analysis/interpreted/interpreted.h"
#include "unit/analysis/spool_fixture.h"
#include "unit/analysis/test_directory.h"

struct expected_line {
	uint32_t unit, line;
};

static void expect_lines(const struct interpreted_code *code, const struct expected_line *lines,
			 size_t count)
{
	assert_int_equal(interpreted_code_find_line(code, 0), code->first_line);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(interpreted_code_find_line(code, lines[i].unit + 1),
				 lines[i].line);
}

/* def f(a): x = a + 1; (blank); for i in range(3): x += i; return [y (over three lines)] as
 * CPython 3.11 compiles it; lines as co_lines() gives them. */
static uint8_t table_of_3_11[] = {
	0x80, 0x00, 0xd8, 0x08, 0x09, 0x88, 0x41, 0x89, 0x05, 0x80, 0x41, 0xe5, 0x0d, 0x12,
	0x90, 0x31, 0x89, 0x58, 0x8c, 0x58, 0xf0, 0x00, 0x01, 0x05, 0x0f, 0xf0, 0x00, 0x01,
	0x05, 0x0f, 0x88, 0x01, 0xd8, 0x08, 0x09, 0x88, 0x51, 0x89, 0x06, 0x88, 0x01, 0x88,
	0x01, 0xf0, 0x02, 0x02, 0x0c, 0x16, 0xf0, 0x00, 0x02, 0x0c, 0x16, 0xe5, 0x0c, 0x11,
	0x90, 0x21, 0x89, 0x48, 0x8c, 0x48, 0xf0, 0x05, 0x02, 0x0c, 0x16, 0xf1, 0x00, 0x02,
	0x0c, 0x16, 0xf4, 0x00, 0x02, 0x0c, 0x16, 0xf0, 0x00, 0x02, 0x05, 0x16};

static void lines_of_3_11_go_forth_and_back(void **state)
{
	struct interpreted_code code = {.first_line = 1,
					.table_kind = SPOOL_LINES_CPYTHON_3_11,
					.table = table_of_3_11,
					.table_size = sizeof(table_of_3_11)};
	static const struct expected_line lines[] = {{0, 1},  {1, 2},  {5, 2},   {6, 4},  {22, 4},
						     {23, 5}, {28, 5}, {29, 6},  {31, 8}, {44, 8},
						     {45, 6}, {53, 6}, {9999, 6}};

	(void)state;
	expect_lines(&code, lines, sizeof(lines) / sizeof(*lines));
	/* Cut anywhere it gives some line and reads nothing behind its end. */
	for (code.table_size = 0; code.table_size < sizeof(table_of_3_11); code.table_size++)
		assert_true(interpreted_code_find_line(&code, 40) >= 1);
}

static void lines_of_3_10_skip_what_has_none(void **state)
{
	static uint8_t table[] = {4, 1, 2, 0x80, 6, (uint8_t)-3, 254, 5, 2, 0};
	struct interpreted_code code = {.first_line = 10,
					.table_kind = SPOOL_LINES_CPYTHON_3_10,
					.table = table,
					.table_size = sizeof(table)};
	static const struct expected_line lines[] = {{0, 11}, {1, 11}, {2, 11},   {3, 8},
						     {5, 8},  {6, 13}, {132, 13}, {133, 13}};

	(void)state;
	expect_lines(&code, lines, sizeof(lines) / sizeof(*lines));
}

static void lines_of_3_6_step_before_their_code(void **state)
{
	static uint8_t table[] = {0, 1, 4, 2, 6, (uint8_t)-1, 255, 0, 1, 7};
	struct interpreted_code code = {.first_line = 10,
					.table_kind = SPOOL_LINES_CPYTHON_3_6,
					.table = table,
					.table_size = sizeof(table)};
	static const struct expected_line lines[] = {{0, 11}, {1, 11},   {2, 13},  {4, 13},
						     {5, 12}, {132, 12}, {133, 19}};

	(void)state;
	expect_lines(&code, lines, sizeof(lines) / sizeof(*lines));
}

static uint64_t frame_of(uint64_t id, uint64_t position)
{
	return SPOOL_INTERPRETED_FRAME_BIT | id << SPOOL_INTERPRETED_POSITION_BITS | position;
}

static int remember_leaf(const struct model_sample *sample, void *context)
{
	*(uint32_t *)context = sample->node;
	return 0;
}

static void frames_have_names_and_lines(void **state)
{
	static const uint8_t code[] = "\x05\x01\x03\x01\x52\x01"
				      "f\x07/t/p.py",
			     lines[] = {0x05, 0x00, 0x52};
	uint64_t stack[] = {0x400010, frame_of(5, 24), frame_of(6, 1)};
	uint8_t payload[sizeof(lines) + sizeof(table_of_3_11)];
	const struct model_frame *frame;
	struct spool_fixture fixture;
	struct session *session;
	struct problem problem;
	uint32_t leaf = 0;

	fixture_open_in(&fixture, *state, 100, 0);
	fixture_module(&fixture, FIXTURE_START, 1, 0x400000, 0x500000, 0, "/nowhere/p");
	fixture_record(&fixture, SPOOL_RECORD_INTERPRETED_CODE, code, sizeof(code) - 1);
	memcpy(payload, lines, sizeof(lines));
	memcpy(payload + sizeof(lines), table_of_3_11, sizeof(table_of_3_11));
	fixture_record(&fixture, SPOOL_RECORD_INTERPRETED_LINES, payload, sizeof(payload));
	fixture_span(&fixture, 0, 100, FIXTURE_START);
	fixture_sample(&fixture,
		       &(struct fixture_sample){
			       .ticks = FIXTURE_START, .weight = 1, .stack = stack, .depth = 3});
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	assert_int_equal(session_visit_samples(session, remember_leaf, &leaf, &problem), 0);
	assert_int_equal(session->processes[0].unknown_records, 0);
	assert_int_equal(session->processes[0].torn_bytes, 0);
	assert_string_equal(test_path(session, leaf),
			    "[p]+f;f+0;[Python function without a name]+0");
	frame = &session->frames[session->nodes[session->nodes[leaf].parent].frame];
	assert_int_equal(frame->kind, FRAME_INTERPRETED);
	assert_string_equal(frame->file, "/t/p.py");
	assert_int_equal(frame->line, 5);
	assert_int_equal(frame->function_line, 1);
	assert_int_equal(frame->module, MODEL_ENTRY_INDEX_NONE);
	session_close(session);
}

static void states_of_threads_add_up(void **state)
{
	static const uint64_t stack[] = {0x400010};
	struct fixture_sample sample = {
		.ticks = FIXTURE_START, .weight = 5, .stack = stack, .depth = 1};
	struct spool_fixture fixture;
	const uint64_t *sums;
	struct session *session;

	fixture_open_in(&fixture, *state, 100, 0);
	fixture_span(&fixture, 0, 100, FIXTURE_START);
	fixture_sample(&fixture, &sample);
	sample.interpreter_state = SPOOL_INTERPRETER_RUNS_LOCKED;
	sample.metric_bitmap = 1;
	sample.metrics[0] = 300;
	fixture_sample(&fixture, &sample);
	sample.source = SPOOL_SOURCE_WALL;
	sample.interpreter_state = SPOOL_INTERPRETER_WAITS_FOR_LOCK;
	sample.weight = 7;
	fixture_sample(&fixture, &sample);
	/* Of a later version. */
	sample.interpreter_state = SPOOL_INTERPRETER_STATE_COUNT;
	fixture_sample(&fixture, &sample);
	sample.source = SPOOL_SOURCE_OVERFLOW;
	sample.interpreter_state = SPOOL_INTERPRETER_RUNS_LOCKED;
	fixture_sample(&fixture, &sample);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	assert_int_equal(session->processes[0].torn_bytes, 0);
	sums = session->threads[0].interpreter_state_ns;
	assert_int_equal(sums[SPOOL_INTERPRETER_STATE_NONE], 5 + 7);
	assert_int_equal(sums[SPOOL_INTERPRETER_RUNS_LOCKED], 5);
	assert_int_equal(sums[SPOOL_INTERPRETER_WAITS_FOR_LOCK], 7);
	session_close(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_3_11_go_forth_and_back),
		cmocka_unit_test(lines_of_3_10_skip_what_has_none),
		cmocka_unit_test(lines_of_3_6_step_before_their_code),
		cmocka_unit_test_setup_teardown(frames_have_names_and_lines, test_directory_create,
						test_directory_remove),
		cmocka_unit_test_setup_teardown(states_of_threads_add_up, test_directory_create,
						test_directory_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
