/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Experiments as the controller writes them, and as a crash or anybody else may leave them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal/data.h"
#include "common/array.h"

static int add(struct causal_data *data, const char *line)
{
	return causal_data_read_line(data, line, strlen(line));
}

static void whole_file(void **state)
{
	static const char text[] =
		"{\"kind\":\"run\",\"run\":3,\"command\":[\"./a\",\"b "
		"c\"],\"mode\":\"line\",\"seed\":7,"
		"\"pid\":1,\"ticks_per_second\":1e9,\"end_to_end\":true,\"processors\":2}\n"
		"{\"kind\":\"target\",\"id\":9,\"function\":\"g\",\"line\":4}\n"
		"{\"kind\":\"target\",\"id\":5,\"function\":\"f\",\"file\":\"/x/a.c\",\"line\":10,"
		"\"module\":\"/x/a\"}\n"
		"\n"
		"{\"kind\":\"point\",\"id\":1,\"name\":\"work\",\"type\":\"progress\",\"origin\":"
		"\"user\"}\n"
		"{\"kind\":\"news\",\"what\":1}\n"
		"{\"kind\":\"window\",\"run\":3,\"target\":5,\"speedup_permille\":250,\"start_ns\":"
		"20,"
		"\"real_ns\":30,\"delay_ns\":4,\"ended\":\"time\",\"points\":[{\"id\":1,\"visits\":"
		"12,"
		"\"virtual_ns\":26},{\"id\":2,\"end\":3,\"arrivals\":5,\"departures\":4,\"area_"
		"ns\":-8,"
		"\"virtual_ns\":26}],\"times\":[[5,100,200],[9,1,2]],\"cpu_ns\":50,"
		"\"involuntary_switches\":6,\"stolen_ns\":7,\"queued_ns\":8,\"threads\":9,"
		"\"more\":[]}\n"
		"{\"kind\":\"window\",\"run\":3,\"target\":0,\"speedup_permille\":0,\"start_ns\":"
		"10,"
		"\"ended\":\"cut\"}\n"
		"{\"kind\":\"point\",\"id\":1,\"name\":\"work\",\"type\":\"progress\",\"origin\":"
		"\"user\",\"given_up\":true}\n"
		"{\"kind\":\"end\",\"run\":3,\"status\":-11,\"real_ns\":99,\"samples\":8,"
		"\"samples_in_scope\":7,\"paid_ns\":6,\"overslept_ns\":5,\"credited_ns\":4,"
		"\"pauses\":3}\n"
		"{\"kind\":\"window\",\"run\":3,\"tar";
	FILE *stream = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	struct causal_data data = {0};
	const struct causal_data_window *window;
	struct problem problem;

	(void)state;
	assert_int_equal(causal_data_read_stream(&data, stream, "text", &problem), 0);
	fclose(stream);
	assert_int_equal(data.bad_line_count, 1);
	assert_int_equal(data.run_count, 1);
	assert_string_equal(data.runs[0].command, "./a b c");
	assert_string_equal(data.runs[0].mode, "line");
	assert_true(data.runs[0].end_to_end && data.runs[0].ended);
	assert_int_equal(data.runs[0].processors, 2);
	assert_int_equal(data.runs[0].status, -11);
	assert_int_equal(data.runs[0].pauses, 3);
	assert_int_equal(data.target_count, 2);
	assert_int_equal(data.targets[0].id, 5); /* by id */
	assert_string_equal(data.targets[0].module, "/x/a");
	assert_null(data.targets[1].file);
	assert_string_equal(causal_data_find_point(&data, 1)->name, "work");
	assert_null(causal_data_find_point(&data, 2));
	assert_null(causal_data_find_target(&data, 6));
	assert_int_equal(data.window_count, 2);
	assert_int_equal(data.windows[0].end, CAUSAL_WINDOW_CUT_SHORT); /* by time */
	window = &data.windows[1];
	assert_int_equal(window->end, CAUSAL_WINDOW_ENDED_BY_TIME_LIMIT);
	assert_int_equal(window->visits_entry_count, 2);
	assert_int_equal(window->visits[0].end_point, UINT32_MAX);
	assert_int_equal(window->visits[0].visits, 12);
	assert_int_equal(window->visits[1].visits, 4);
	assert_int_equal(window->visits[1].inside_count_integral_ns, -8);
	assert_int_equal(window->times[1].total_ns, 2);
	assert_int_equal(window->involuntary_switches, 6);
	assert_int_equal(window->stolen_ns, 7);
	assert_int_equal(window->queued_ns, 8);
	assert_int_equal(window->threads, 9);
	assert_true(causal_data_find_point(&data, 1)->was_given_up); /* said later */
	causal_data_deinit(&data);
}

static void bad_lines(void **state)
{
	static const char *const lines[] = {
		"",
		"7",
		"[]",
		"{}",
		"{\"kind\":7}",
		"{\"kind\":\"run\"}",
		"{\"kind\":\"run\",\"run\":-1}",
		"{\"kind\":\"run\",\"run\":0,\"command\":[1]}",
		"{\"kind\":\"run\",\"run\":0,\"command\":{}}",
		"{\"kind\":\"run\",\"run\":0,\"mode\":false}",
		"{\"kind\":\"target\",\"id\":0,\"function\":\"f\"}",
		"{\"kind\":\"target\",\"id\":1048576,\"function\":\"f\"}",
		"{\"kind\":\"target\",\"id\":1}",
		"{\"kind\":\"target\",\"id\":1,\"function\":\"a\\u0000b\"}",
		"{\"kind\":\"target\",\"id\":1,\"function\":\"f\",\"line\":1.5}",
		"{\"kind\":\"point\",\"id\":1,\"name\":\"w\"}",
		"{\"kind\":\"point\",\"id\":1,\"name\":\"w\",\"type\":\"other\"}",
		"{\"kind\":\"point\",\"id\":4294967295,\"name\":\"w\",\"type\":\"end\"}",
		"{\"kind\":\"window\",\"run\":0,\"target\":1}",
		"{\"kind\":\"window\",\"run\":0,\"ended\":\"exit\"}",
		"{\"kind\":\"window\",\"run\":0,\"target\":1,\"ended\":\"exit\",\"speedup_"
		"permille\":1001}",
		"{\"kind\":\"window\",\"run\":0,\"target\":1,\"ended\":\"exit\",\"real_ns\":-1}",
		"{\"kind\":\"window\",\"run\":0,\"target\":1,\"ended\":\"exit\",\"points\":{}}",
		"{\"kind\":\"window\",\"run\":0,\"target\":1,\"ended\":\"exit\",\"points\":[1]}",
		"{\"kind\":\"window\",\"run\":0,\"target\":1,\"ended\":\"exit\",\"points\":[{}]}",
		"{\"kind\":\"window\",\"run\":0,\"target\":1,\"ended\":\"exit\",\"times\":[[1,2]]}",
		"{\"kind\":\"window\",\"run\":0,\"target\":1,\"ended\":\"exit\",\"times\":[[0,2,3]]"
		"}",
		"{\"kind\":\"window\",\"run\":0,\"target\":1,\"ended\":\"exit\",\"times\":[[1,-2,3]"
		"]}",
		"{\"kind\":\"window\",\"run\":0,\"run\":0,\"target\":1,\"ended\":\"exit\"}",
	};
	struct causal_data data = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		if (add(&data, lines[i]) != -EINVAL)
			fail_msg("accepted: %s", lines[i]);
	}
	assert_int_equal(data.run_count + data.target_count + data.point_count + data.window_count,
			 0);
	causal_data_deinit(&data);
}

/* An end without its beginning: a file whose first lines were lost. */
static void end_alone(void **state)
{
	struct causal_data data = {0};

	(void)state;
	assert_int_equal(add(&data, "{\"kind\":\"end\",\"run\":1,\"status\":2}"), 0);
	assert_int_equal(data.run_count, 1);
	assert_int_equal(data.runs[0].status, 2);
	assert_null(data.runs[0].command);
	causal_data_deinit(&data);
}

static void many(void **state)
{
	struct causal_data data = {0};

	(void)state;
	for (uint32_t i = 1000; i > 0; i--) {
		struct causal_data_target target = {.id = i * 7 % 1009, .function = (char[]){"f"}};
		struct causal_data_window window = {.start_ns = i * 7 % 1009};

		assert_int_equal(causal_data_add_target(&data, &target), 0);
		assert_int_equal(causal_data_add_target(&data, &target), 0);
		assert_int_equal(causal_data_add_window(&data, &window), 0);
	}
	/* A later run, after the machine was started anew. */
	assert_int_equal(causal_data_add_window(
				 &data, &(struct causal_data_window){.run = 1, .start_ns = 5}),
			 0);
	assert_int_equal(data.windows[1000].run, 1);
	assert_int_equal(data.target_count, 1000);
	for (size_t i = 1; i < 1000; i++) {
		assert_true(data.targets[i - 1].id < data.targets[i].id);
		assert_true(data.windows[i - 1].start_ns <= data.windows[i].start_ns);
	}
	causal_data_deinit(&data);
}

static void no_file(void **state)
{
	struct causal_data data = {0};
	struct problem problem = {""};

	(void)state;
	assert_int_equal(causal_data_read_file(&data, "/nowhere/windows.ndjson", &problem),
			 -ENOENT);
	assert_non_null(strstr(problem.text, "/nowhere/windows.ndjson"));
	assert_int_equal(causal_data_read_file(&data, "/", &problem), -EISDIR);
	causal_data_deinit(&data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_file), cmocka_unit_test(bad_lines),
		cmocka_unit_test(end_alone),  cmocka_unit_test(many),
		cmocka_unit_test(no_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
