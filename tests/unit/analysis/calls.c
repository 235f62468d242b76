/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Words of calls to events: what the format promises, and what a reader has to make of holes,
 * longjmp, threads that end, and regions on the same thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/regions/calls.h"
#include "unit/analysis/calls_fixture.h"
#include "unit/analysis/test_directory.h"

#define FIRST 10
#define T(n)  (FIXTURE_START + (n))
#define ENTRY 0
#define EXIT  1

static const struct plan_function functions[] = {
	{.vaddr = 0x1000, .size = 0x100},
	{.vaddr = 0x1100, .size = 0x100},
	{.vaddr = 0x1200, .size = 0x100},
	{.vaddr = 0x1120, .size = 0x10, .flags = PLAN_FUNCTION_IS_LOOP},
	{.vaddr = 0x1140, .size = 0x10, .flags = PLAN_FUNCTION_IS_LOOP},
};

static void start(struct spool_fixture *fixture, const char *directory)
{
	char plan[4096];

	fixture_open_in(fixture, directory, 100, 0);
	snprintf(plan, sizeof(plan), "%s/plan", directory);
	calls_fixture_plan(plan, functions, 5);
	fixture_clock(fixture, FIXTURE_START);
	calls_fixture_instrumented(fixture, FIXTURE_START, FIRST, 5, 0x400000, plan, "/bin/prog");
	fixture->header.end_ticks = T(1000);
	fixture->header.state = SPOOL_STATE_OPEN;
}

/* ---- events as text: "<a@10 a>@20", ! for implied ones ---- */

struct text {
	const struct session *session;
	char text[4096];
};

static const char *letter(const struct model_region *region)
{
	static char name[2];

	if (region->kind == SPOOL_REGION_NAMED)
		return region->name;
	name[0] = (char)('a' + (region->address - 0x401000) / 0x100);
	return name;
}

static int add_event(const struct model_region_event *event, void *context)
{
	struct text *text = context;
	size_t at = strlen(text->text);

	snprintf(text->text + at, sizeof(text->text) - at, "%s%s%s%s%s@%" PRIu64, at ? " " : "",
		 event->kind == MODEL_EVENT_REGION_BEGIN ? "<" : "",
		 letter(&session_get_regions(text->session)->regions[event->region]),
		 event->kind == MODEL_EVENT_REGION_END        ? ">"
		 : event->kind == MODEL_EVENT_REGION_COMPLETE ? "="
							      : "",
		 event->is_implied ? "!" : "", event->time_ns - FIXTURE_START - FIXTURE_BOOT);
	return 0;
}

static void expect_events(struct session *session, const char *expected)
{
	struct text text = {.session = session};
	struct problem problem;

	assert_int_equal(session_visit_region_events(session, add_event, &text, &problem), 0);
	assert_string_equal(text.text, expected);
}

static struct session *finish(struct spool_fixture *fixture, const char *directory,
			      const char *expected)
{
	struct session *session;

	fixture_close(fixture);
	session = test_session(directory, NULL);
	expect_events(session, expected);
	return session;
}

/* ---- tests ---- */

static void nested_calls(void **state)
{
	struct spool_fixture fixture;
	struct calls_fixture calls = {0};
	struct session *session;
	const struct model_regions *regions;

	start(&fixture, *state);
	calls_fixture_begin(&calls, 0, T(5), NULL, 0);
	calls_fixture_word(&calls, T(10), FIRST, ENTRY);
	calls_fixture_raw(&calls, 0);
	calls_fixture_word(&calls, T(20), FIRST + 1, ENTRY);
	calls_fixture_word(&calls, T(30), FIRST + 1, EXIT);
	calls_fixture_word(&calls, T(40), FIRST + 1, ENTRY);
	calls_fixture_word(&calls, T(45), FIRST + 1, EXIT);
	calls_fixture_word(&calls, T(50), FIRST, EXIT);
	calls_fixture_raw(&calls, 0);
	calls_fixture_end(&calls, &fixture);
	session = finish(&fixture, *state, "<a@10 <b@20 b>@30 <b@40 b>@45 a>@50");
	regions = session_get_regions(session);
	assert_int_equal(regions->region_count, 2);
	assert_int_equal(regions->events, 6);
	assert_int_equal(session_get_calls(session)->recorded, 3);
	assert_int_equal(session_get_calls(session)->words, 6);
	assert_int_equal(regions->node_count, 2);
	assert_int_equal(regions->nodes[1].count, 2);
	assert_true(regions->statistics[0].sum == 40);
	assert_true(regions->statistics[regions->component_count].sum == 15);
	assert_int_equal(regions->regions[0].address, 0x401000);
	assert_string_equal(regions->regions[0].category, "host");
	assert_int_equal(session->processes[0].unknown_records, 0);
	assert_int_equal(session->processes[0].torn_bytes, 0);
	session_close(session);
}

/* The low 43 bits go round while the program runs. */
static void ticks_go_round(void **state)
{
	struct spool_fixture fixture;
	struct calls_fixture calls = {0};
	const uint64_t round = (uint64_t)1 << 43;
	const uint64_t before = round - 1 - FIXTURE_START % round;

	start(&fixture, *state);
	calls_fixture_begin(&calls, 0, T(before - 5), NULL, 0);
	calls_fixture_word(&calls, T(before), FIRST, ENTRY);
	calls_fixture_word(&calls, T(before + 10), FIRST, EXIT);
	calls_fixture_word(&calls, T(before + 10 + round / 2 - 1), FIRST, ENTRY);
	calls_fixture_word(&calls, T(before + 10 + round / 2), FIRST, EXIT);
	calls_fixture_end(&calls, &fixture);
	fixture_close(&fixture);
	struct session *session = test_session(*state, NULL);
	assert_true(session_get_regions(session)->statistics[0].minimum == 1);
	assert_true(session_get_regions(session)->statistics[0].maximum == 10);
	assert_int_equal(session->processes[0].end_ns, T(before + 10 + round / 2) + FIXTURE_BOOT);
	session_close(session);
}

static void words_out_of_order(void **state)
{
	struct spool_fixture fixture;
	struct calls_fixture calls = {0};

	start(&fixture, *state);
	calls_fixture_begin(&calls, 0, T(5), NULL, 0);
	calls_fixture_word(&calls, T(10), FIRST, ENTRY);
	calls_fixture_word(&calls, T(30), FIRST + 1, ENTRY); /* by a signal handler */
	calls_fixture_word(&calls, T(40), FIRST + 1, EXIT);
	calls_fixture_word(&calls, T(29), FIRST, EXIT); /* which had taken its time before */
	calls_fixture_word(&calls, T(50), FIRST, ENTRY);
	calls_fixture_word(&calls, T(60), FIRST, EXIT);
	calls_fixture_end(&calls, &fixture);
	session_close(finish(&fixture, *state, "<a@10 <b@30 b>@40 a>@40 <a@50 a>@60"));
}

static void longjmp_and_strays(void **state)
{
	struct spool_fixture fixture;
	struct calls_fixture calls = {0};
	struct session *session;

	start(&fixture, *state);
	calls_fixture_begin(&calls, 0, T(5), NULL, 0);
	calls_fixture_word(&calls, T(10), FIRST, ENTRY);
	calls_fixture_word(&calls, T(20), FIRST + 1, ENTRY);
	calls_fixture_word(&calls, T(30), FIRST + 2, ENTRY);
	calls_fixture_word(&calls, T(40), FIRST, EXIT);
	calls_fixture_word(&calls, T(50), FIRST + 2, EXIT); /* never began */
	calls_fixture_word(&calls, T(55), 4711, ENTRY);     /* of no module */
	calls_fixture_word(&calls, T(56), 4711, EXIT);
	calls_fixture_end(&calls, &fixture);
	session = finish(&fixture, *state,
			 "<a@10 <b@20 <c@30 c>!@40 b>!@40 a>@40 <[function 4711]@55 "
			 "[function 4711]>@56");
	assert_int_equal(session_get_calls(session)->unwound, 2);
	assert_int_equal(session_get_calls(session)->unmatched, 1);
	assert_int_equal(session_get_regions(session)->unbalanced_region_count, 0);
	session_close(session);
}

static void thread_ends(void **state)
{
	struct spool_fixture fixture;
	struct calls_fixture calls = {0};
	struct session *session;

	start(&fixture, *state);
	calls_fixture_begin(&calls, 0, T(5), NULL, 0);
	calls_fixture_word(&calls, T(10), FIRST, ENTRY);
	calls_fixture_word(&calls, T(20), FIRST + 1, ENTRY);
	calls_fixture_word(&calls, T(30), 0, EXIT);
	calls_fixture_word(&calls, T(40), FIRST + 2, ENTRY); /* killed */
	calls_fixture_end(&calls, &fixture);
	session = finish(&fixture, *state, "<a@10 <b@20 b>!@30 a>!@30 <c@40 c>!@1000");
	assert_int_equal(session_get_regions(session)->nodes[0].count, 1);
	assert_int_equal(session_get_regions(session)->nodes[1].count, 1);
	assert_int_equal(session_get_regions(session)->nodes[2].count, 0);
	assert_int_equal(session_get_regions(session)->nodes[2].open, 1);
	session_close(session);
}

static void exit_ends_calls(void **state)
{
	struct spool_fixture fixture;
	struct calls_fixture calls = {0};
	struct session *session;

	start(&fixture, *state);
	fixture.header.state = SPOOL_STATE_EXITED;
	calls_fixture_begin(&calls, 0, T(5), NULL, 0);
	calls_fixture_word(&calls, T(10), FIRST, ENTRY);
	calls_fixture_end(&calls, &fixture);
	session = finish(&fixture, *state, "<a@10 a>!@1000");
	assert_int_equal(session_get_regions(session)->nodes[0].count, 1);
	assert_true(session_get_regions(session)->statistics[0].sum == 990);
	session_close(session);
}

/* What a chunk says is open, after a chunk that was lost and in order. */
static void chunks(void **state)
{
	const uint32_t same[] = {FIRST, FIRST + 1}, other[] = {FIRST, FIRST + 2};
	struct spool_fixture fixture;
	struct calls_fixture calls = {0};

	start(&fixture, *state);
	calls_fixture_begin(&calls, 0, T(5), NULL, 0);
	calls_fixture_word(&calls, T(10), FIRST, ENTRY);
	calls_fixture_word(&calls, T(20), FIRST + 1, ENTRY);
	calls_fixture_end(&calls, &fixture);
	calls_fixture_begin(&calls, 0, T(25), same, 2);
	calls_fixture_word(&calls, T(30), FIRST + 2, ENTRY);
	calls_fixture_end(&calls, &fixture);
	calls_fixture_begin(&calls, 0, T(50), other, 2);
	calls_fixture_word(&calls, T(60), FIRST + 2, EXIT);
	calls_fixture_end(&calls, &fixture);
	calls_fixture_begin(&calls, 0, T(70), other + 1, 1);
	calls.head.open_left_out = 1;
	calls_fixture_word(&calls, T(80), FIRST + 2, EXIT);
	calls_fixture_word(&calls, T(90), FIRST, EXIT);
	calls_fixture_end(&calls, &fixture);
	session_close(finish(&fixture, *state,
			     "<a@10 <b@20 <c@30 c>!@30 b>!@30 <c!@50 c>@60 <c!@70 c>@80 a>@90"));
}

static void calls_and_regions(void **state)
{
	struct spool_fixture fixture;
	struct calls_fixture calls = {0};
	struct session *session;

	start(&fixture, *state);
	fixture_region(&fixture, 1, "user", "step");
	fixture_region_span(&fixture, 0, 100, T(1), NULL, 0);
	fixture_begin(&fixture, T(15), 1);
	fixture_text_value(&fixture, "key", "value");
	fixture_end(&fixture, T(35));
	fixture_begin(&fixture, T(40), 1); /* begun in one function, ended in another */
	fixture_end(&fixture, T(65));
	fixture_whole(&fixture, T(90), 10, 1);
	fixture_whole(&fixture, T(120), 15, 1);
	calls_fixture_begin(&calls, 0, T(5), NULL, 0);
	calls_fixture_word(&calls, T(10), FIRST, ENTRY);
	calls_fixture_word(&calls, T(20), FIRST + 1, ENTRY);
	calls_fixture_word(&calls, T(30), FIRST + 1, EXIT);
	calls_fixture_word(&calls, T(50), FIRST, EXIT);
	calls_fixture_word(&calls, T(60), FIRST + 2, ENTRY);
	calls_fixture_word(&calls, T(70), FIRST + 2, EXIT);
	calls_fixture_word(&calls, T(82), FIRST, ENTRY); /* inside a whole call */
	calls_fixture_word(&calls, T(88), FIRST, EXIT);
	calls_fixture_word(&calls, T(100), FIRST, ENTRY);
	calls_fixture_word(&calls, T(130), FIRST, EXIT);
	calls_fixture_end(&calls, &fixture);
	session = finish(&fixture, *state,
			 "<a@10 <step@15 <b@20 b>@30 step>@35 <step@40 a>@50 <c@60 step>@65 c>@70 "
			 "<step!@80 <a@82 a>@88 step>@90 <a@100 step=@120 a>@130");
	assert_int_equal(session_get_calls(session)->unwound, 0);
	assert_int_equal(session_get_regions(session)->unbalanced_region_count, 0);
	session_close(session);
}

static void windows(void **state)
{
	struct session_options options = {
		.symbol_cache_directory = "", .skip_symbolizing = true, .from_ns = 25, .to_ns = 45};
	struct spool_fixture fixture;
	struct calls_fixture calls = {0};
	struct session *session;

	start(&fixture, *state);
	calls_fixture_begin(&calls, 0, T(5), NULL, 0);
	calls_fixture_word(&calls, T(10), FIRST, ENTRY);
	calls_fixture_word(&calls, T(20), FIRST + 1, ENTRY);
	calls_fixture_word(&calls, T(30), FIRST + 1, EXIT);
	calls_fixture_word(&calls, T(40), FIRST + 2, ENTRY);
	calls_fixture_word(&calls, T(50), FIRST + 2, EXIT);
	calls_fixture_word(&calls, T(60), FIRST, EXIT);
	calls_fixture_end(&calls, &fixture);
	fixture_close(&fixture);
	session = test_session(*state, &options);
	expect_events(session, "<a!@25 <b!@25 b>@30 <c@40 c>!@45 a>!@45");
	session_close(session);
}

static void counted_and_demoted(void **state)
{
	const uint64_t first[] = {FIRST, 7, FIRST + 3, 1000}, last[] = {FIRST, 9, FIRST + 4, 1};
	const uint64_t other[] = {FIRST, 100};
	struct spool_fixture fixture;
	struct session *session;
	const struct model_instrumented_calls *calls;

	start(&fixture, *state);
	calls_fixture_counts(&fixture, 0, first, 2);
	calls_fixture_counts(&fixture, 1, other, 1);
	calls_fixture_counts(&fixture, 0, last, 2);
	calls_fixture_demoted(&fixture, T(77), FIRST, PLAN_MODE_COUNT);
	fixture_close(&fixture);
	session = test_session(*state, NULL);
	calls = session_get_calls(session);
	assert_int_equal(calls->counted_function_count, 3);
	assert_int_equal(calls->counted_functions[0].calls, 1000);
	assert_int_equal(calls->counted_functions[1].calls, 109);
	assert_int_equal(calls->counted_functions[2].calls, 1);
	assert_int_equal(
		session_get_regions(session)->regions[calls->counted_functions[0].region].loop, 1);
	assert_int_equal(
		session_get_regions(session)->regions[calls->counted_functions[2].region].loop, 2);
	assert_int_equal(calls->demoted_function_count, 1);
	assert_int_equal(calls->demoted_functions[0].region, calls->counted_functions[1].region);
	assert_int_equal(calls->demoted_functions[0].time_ns, T(77) + FIXTURE_BOOT);
	session_close(session);
}

/* A plan that is gone costs names, not counts. */
static void plan_is_gone(void **state)
{
	struct spool_fixture fixture;
	struct calls_fixture calls = {0};
	struct session *session;

	start(&fixture, *state);
	calls_fixture_instrumented(&fixture, T(0), 100, 5, 0, "/nowhere/plan", "/lib/libx.so");
	calls_fixture_begin(&calls, 0, T(5), NULL, 0);
	calls_fixture_word(&calls, T(10), 102, ENTRY);
	calls_fixture_word(&calls, T(20), 102, EXIT);
	calls_fixture_end(&calls, &fixture);
	session =
		finish(&fixture, *state, "<[function 2 of libx.so]@10 [function 2 of libx.so]>@20");
	assert_non_null(strstr(session->problems[session->problem_count - 1], "/nowhere/plan"));
	session_close(session);
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, test_directory_create, test_directory_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nested_calls),       TEST(ticks_go_round),  TEST(words_out_of_order),
		TEST(longjmp_and_strays), TEST(thread_ends),     TEST(chunks),
		TEST(calls_and_regions),  TEST(windows),         TEST(counted_and_demoted),
		TEST(plan_is_gone),       TEST(exit_ends_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
