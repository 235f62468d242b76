/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Files of definitions: both forms, and each mistake with its place, by themselves and as the tool
 * library reads them.
 */
#include "../libkymo-sdk/scenario.h"

#include <fcntl.h>
#include <rocprofiler-sdk/experimental/counters.h>

#include "counters/definitions.h"
#include "mock.h"
#include "tool.h"

static char told_text[8192];

static void told(void *context, const char *path, unsigned line, unsigned column, const char *text)
{
	size_t length = strlen(told_text);

	(void)context;
	snprintf(told_text + length, sizeof(told_text) - length, "%s:%u:%u: %s\n", path, line,
		 column, text);
}

/* One mistake, at that place, with these words. */
static void mistake(const char *text, const char *expected)
{
	int mistakes;

	told_text[0] = '\0';
	mistakes = counter_file_report_mistakes(text, strlen(text), "f", told, NULL);
	if (mistakes != 1 || strncmp(told_text, expected, strlen(expected)) != 0)
		fail_msg("%d mistakes:\n%sexpected:\n%s\nin\n%s", mistakes, told_text, expected,
			 text);
}

static void good(const char *text)
{
	told_text[0] = '\0';
	assert_int_equal(counter_file_report_mistakes(text, strlen(text), "f", told, NULL), 0);
}

#define OLD(arch) "A:\n  architectures:\n    gfx1:\n" arch
#define EVENT     "      block: SQ\n      event: 4\n"

static void test_mistakes(void **state)
{
	(void)state;
	mistake("A: [", "f:1:4: this '[' is not closed");
	mistake("A:\n\tB: 1\n", "f:2:2: a tab before it");
	mistake("A: &x 1\n", "f:1:4: anchors and aliases");
	mistake("A: !x 1\n", "f:1:4: tags");
	mistake("A: 'x\n", "f:1:4: the quotes that begin here are not closed");
	mistake("A: 1\nA: 2\n", "f:2:1: 'A' is here a second time: the first is in line 1");
	mistake("A: 1\n  B: 2\n", "f:2:4: a ':' within");
	mistake("- 1\n", "f:1:1: counters by their names expected");
	mistake("A: 1\n---\nB: 1\n", "f:2:1: a second document");
	mistake("A: x: y\n", "f:1:5: a second ':' on one line");
	mistake("A:\n   B: 1\n  C: 2\n", "f:3:3: the line is indented by 2");
	mistake("1A:\n  architectures: {}\n", "f:1:1: '1A' cannot be a counter's name");
	mistake("reduce:\n  architectures: {}\n", "f:1:1: 'reduce' cannot be");
	mistake("A:\n  description: x\n", "f:1:1: A needs 'architectures'");
	mistake(OLD(EVENT) "  desc: x\n", "f:6:3: unknown key 'desc'");
	mistake(OLD(EVENT "      events: 4\n"), "f:6:7: unknown key 'events'");
	mistake(OLD(EVENT "      expression: 1\n"), "f:4:7: A has an expression and a block");
	mistake(OLD("      block: SQ\n"), "f:4:7: A needs a block and an event");
	mistake(OLD("      block: [SQ]\n      event: 4\n"),
		"f:4:14: 'block' is a text, not a list");
	mistake(OLD("      expression: 1 + B\n"), "f:4:23: there is no counter 'B'");
	mistake(OLD("      expression: '1 +'\n"), "f:4:23: a counter, a number or '(' expected");
	mistake(OLD("      expression: reduce(A,sum,[DIMENSION_Q])\n"), "f:4:33: a dimension");
	mistake(OLD("      expression: 1 +\n        2 + $\n"), "f:5:13: unexpected character");
	mistake(OLD("      expression: >\n        1 +\n        $\n"),
		"f:6:9: unexpected character");
	mistake(OLD("      expression: A+1\n"), "f:4:19: it depends on itself: A -> A");
	mistake("A:\n  architectures:\n    gfx1/gfx1:\n" EVENT,
		"f:3:5: A is defined for gfx1 a second time");
	mistake("A:\n  architectures:\n    gfx1//gfx2:\n" EVENT,
		"f:3:5: '' is not the name of an architecture");
}

static void test_cycle(void **state)
{
	const char *text = "A: {architectures: {gfx1: {expression: 1+B}}}\n"
			   "B: {architectures: {gfx1: {expression: C}}}\n"
			   "C: {architectures: {gfx1: {expression: 2*A}}}\n"
			   "D: {architectures: {gfx1: {expression: 3}}}\n";

	(void)state;
	told_text[0] = '\0';
	assert_int_equal(counter_file_report_mistakes(text, strlen(text), "f", told, NULL), 3);
	assert_non_null(strstr(told_text, "f:3:42: it depends on itself: A -> B -> C -> A\n"));
	assert_non_null(strstr(told_text, "f:2:40: 'C', which it needs, is broken\n"));
}

static void test_forms(void **state)
{
	(void)state;
	good("");
	good("# nothing\n---\n...\n");
	good(OLD(EVENT));
	good("A:\n  description: >-\n    long\n    text: yes\n  architectures: {gfx1/gfx2: {block: "
	     "'SQ', event: \"4\"}}\n");
	good("rocprofiler-sdk:\n  counters-schema-version: 1\n  counters:\n  - name: A\n    "
	     "description: x\n    properties: []\n    definitions:\n    - architectures: [gfx1, "
	     "gfx2]\n      block: SQ\n      event: 4\n    - architectures:\n      - gfx3\n      "
	     "expression: reduce(B,sum)\n  - name: B\n    definitions: [{architectures: gfx3, "
	     "block: "
	     "X, event: y}]\n");
	mistake("rocprofiler-sdk:\n  counters-schema-version: 2\n  counters: []\n",
		"f:2:28: 'counters-schema-version' must be 1");
	mistake("rocprofiler-sdk:\n  counters-schema-version: 1\n  counters:\n  - nam: A\n",
		"f:4:5: a counter needs a 'name'");
	/* A driver's own names. */
	good("A: {architectures: {sm_90: {expression: 'reduce(sm__cycles_elapsed,max)'}}}\n");
	mistake("A: {architectures: {sm_90: {expression: 'cycles'}}}\n", "f:1:42: there is no");
}

/* ---- as the library reads them ---- */

static char problems[8192];

static void problem(void *data, const char *text)
{
	size_t length = strlen(problems);

	(void)data;
	snprintf(problems + length, sizeof(problems) - length, "%s\n", text);
}

static int initialize(void)
{
	return 0;
}

static const char own[] = "WAVES:\n"
			  "  description: Waves\n"
			  "  architectures:\n"
			  "    gfx942/gfx10: {block: SQ, event: 4}\n"
			  "TWICE:\n"
			  "  architectures:\n"
			  "    gfx942:\n"
			  "      expression: 2*reduce(WAVES,sum)\n"
			  "      description: Twice as many\n"
			  "BROKEN:\n"
			  "  architectures:\n"
			  "    gfx942: {expression: WAVES + NONE}\n"
			  "ABSENT:\n"
			  "  architectures:\n"
			  "    gfx942: {block: SQ, event: 5}\n"
			  "OF_ABSENT:\n"
			  "  architectures:\n"
			  "    gfx942: {expression: ABSENT}\n"
			  "MISMATCHED:\n"
			  "  architectures:\n"
			  "    gfx942: {expression: WAVES*LISTED}\n"
			  "OF_FAMILY:\n"
			  "  architectures:\n"
			  "    gfx9: {expression: 1}\n"
			  "    gfx942: {expression: 2}\n"
			  "LISTED:\n"
			  "  architectures:\n"
			  "    gfx942: {expression: 10*LISTED}\n";

static void begin(void)
{
	kymo_counting_problem(problem, NULL);
	mock_start("gfx942", true);
	mock_event("SQ", "4", NULL, COUNTING_DIMENSION_WGP, 4, 0)->is_listed = false;
	mock_event("TEST", "LISTED", NULL, COUNTING_DIMENSION_XCC, 2, 0);
	scenario_tool(initialize);
}

static void check_own(void)
{
	rocprofiler_counter_info_v0_t info;

	CHECK(tool_counter(mock_agent, "WAVES").handle != 0);
	OK(rocprofiler_query_counter_info(tool_counter(mock_agent, "TWICE"),
					  ROCPROFILER_COUNTER_INFO_VERSION_0, &info));
	CHECK(strcmp(info.description, "Twice as many") == 0 && info.is_derived);
	CHECK(strcmp(info.expression, "2*reduce(WAVES,sum)") == 0);
	CHECK(tool_counter(mock_agent, "BROKEN").handle == 0);
	CHECK(tool_counter(mock_agent, "ABSENT").handle == 0);
	CHECK(tool_counter(mock_agent, "OF_ABSENT").handle == 0);
	CHECK(tool_counter(mock_agent, "MISMATCHED").handle == 0);
	OK(rocprofiler_query_counter_info(tool_counter(mock_agent, "OF_FAMILY"),
					  ROCPROFILER_COUNTER_INFO_VERSION_0, &info));
	CHECK(strcmp(info.expression, "2") == 0);
	/* Its own name stands for what the device lists. */
	OK(rocprofiler_query_counter_info(tool_counter(mock_agent, "LISTED"),
					  ROCPROFILER_COUNTER_INFO_VERSION_0, &info));
	CHECK(strcmp(info.expression, "10*LISTED") == 0);
	CHECK(strstr(problems, ":12:34: there is no counter 'NONE'"));
	CHECK(strstr(problems, ":21:31: the two sides have different dimensions: WGP[4] and "
			       "XCC[2]"));
	/* One message: the event's, none for the counters that need it. */
	CHECK(strstr(problems, ":15:32: ABSENT: "));
	CHECK(strstr(problems, " has no event '5' in block 'SQ'"));
	CHECK(!strstr(problems, "OF_ABSENT"));
}

static void loaded(void)
{
	begin();
	REFUSED(rocprofiler_load_counter_definition(NULL, 1, ROCPROFILER_COUNTER_FLAG_NONE),
		INVALID_ARGUMENT);
	OK(rocprofiler_load_counter_definition(own, sizeof(own) - 1,
					       ROCPROFILER_COUNTER_FLAG_NONE));
	check_own();
	/* It stands in place of those that are shipped. */
	CHECK(tool_counter(mock_agent, "CU_NUM").handle == 0);
	CHECK_EQUAL(rocprofiler_load_counter_definition(own, sizeof(own) - 1,
							ROCPROFILER_COUNTER_FLAG_NONE),
		    ROCPROFILER_STATUS_ERROR);
}

static void appended(void)
{
	begin();
	setenv("ROCPROFILER_METRICS_PATH", SHIPPED, 1);
	OK(rocprofiler_load_counter_definition(own, sizeof(own) - 1,
					       ROCPROFILER_COUNTER_FLAG_APPEND_DEFINITION));
	check_own();
	CHECK(tool_counter(mock_agent, "CU_NUM").handle != 0);
	CHECK(tool_counter(mock_agent, "SQ_WAVES").handle != 0);
}

static void by_environment(void)
{
	char path[] = "/tmp/kymo-counters-XXXXXX", both[256];
	int file = mkstemp(path);

	CHECK(file >= 0);
	CHECK(write(file, own, sizeof(own) - 1) == (ssize_t)sizeof(own) - 1);
	close(file);
	begin();
	snprintf(both, sizeof(both), "/no/such/file:%s", path);
	setenv("KYMO_COUNTER_DEFS", both, 1);
	setenv("ROCPROFILER_METRICS_PATH", SHIPPED, 1);
	check_own();
	CHECK(strstr(problems, "KYMO_COUNTER_DEFS: /no/such/file: No such file"));
	CHECK(tool_counter(mock_agent, "CU_NUM").handle != 0);
	unlink(path);
}

/* Forms of events that are not listed are counters where the user asks for them. */
static void forms_by_environment(void)
{
	begin();
	mock_event("", "dram__bytes_read.sum", NULL, 0)->is_listed = false;
	mock_event("", "sm__warps_active.avg.per_second", NULL, 0)->is_listed = false;
	mock_event("", "not_asked.sum", NULL, 0)->is_listed = false;
	setenv("KYMO_COUNTERS", "SQ_WAVES, dram__bytes_read.sum,no_such_event.sum", 1);
	setenv("KYMO_DEVICE_COUNTERS", "sm__warps_active.avg.per_second", 1);
	setenv("ROCPROFILER_METRICS_PATH", SHIPPED, 1);
	CHECK(tool_counter(mock_agent, "dram__bytes_read.sum").handle != 0);
	CHECK(tool_counter(mock_agent, "sm__warps_active.avg.per_second").handle != 0);
	CHECK(tool_counter(mock_agent, "SQ_WAVES").handle != 0);
	CHECK(tool_counter(mock_agent, "not_asked.sum").handle == 0);
	CHECK(tool_counter(mock_agent, "no_such_event.sum").handle == 0);
}

static void test_shipped(void **state)
{
	static char text[1 << 20];
	int file = open(SHIPPED, O_RDONLY);
	ssize_t size = read(file, text, sizeof(text));

	(void)state;
	close(file);
	assert_true(size > 0);
	told_text[0] = '\0';
	assert_int_equal(counter_file_report_mistakes(text, (size_t)size, SHIPPED, told, NULL), 0);
}

SCENARIO(loaded)
SCENARIO(appended)
SCENARIO(by_environment)
SCENARIO(forms_by_environment)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mistakes),       cmocka_unit_test(test_cycle),
		cmocka_unit_test(test_forms),          cmocka_unit_test(test_shipped),
		cmocka_unit_test(test_loaded),         cmocka_unit_test(test_appended),
		cmocka_unit_test(test_by_environment), cmocka_unit_test(test_forms_by_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
