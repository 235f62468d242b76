/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regions that are open at the end, whose ends are missing, that lie across the edges of windows,
 * or belong to signal handlers: with events and in the profile that the process keeps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/runtime.h"
#include "unit/analysis/test_directory.h"
#include "unit/regions/engine_test.h"

#define MS 1000000

static const char *const trace[] = {"KYMO_TRACE=on", NULL};
static const char *const profile[] = {"KYMO_TRACE=off", NULL};

static void begin(const char *name)
{
	region_begin_by_name(NULL, name);
}

static void end(const char *name)
{
	region_end_by_name(NULL, name);
}

static double sum_ms(const struct session *session, const char *path)
{
	const struct model_regions *regions = session_get_regions(session);
	uint32_t node = engine_node(session, path);

	assert_true(node != MODEL_ENTRY_INDEX_NONE);
	return regions->statistics[(size_t)node * regions->component_count].sum / MS;
}

static void expect_ms(const struct session *session, const char *path, double least, double most)
{
	double ms = sum_ms(session, path);

	if (ms < least || ms > most)
		fail_msg("%s: %g ms", path, ms);
}

/* Even ways with events, odd ones with a profile. */
static struct session *run_one_way(void **state, int way, void (*body)(void),
				   enum engine_finish finish)
{
	char directory[4096];

	snprintf(directory, sizeof(directory), "%s/%d", (const char *)*state, way);
	mkdir(directory, 0700);
	return engine_run(directory, way % 2 ? profile : trace, body, finish);
}

static void *leave_open(void *argument)
{
	begin("thread");
	usleep(20000);
	return argument;
}

static void left_open(void)
{
	pthread_t thread;

	begin("main");
	pthread_create(&thread, NULL, leave_open, NULL);
	pthread_join(thread, NULL);
	usleep(30000);
}

static void what_is_open_at_the_end_has_its_time(void **state)
{
	for (int way = 0; way < 4; way++) {
		struct session *session =
			run_one_way(state, way, left_open, way < 2 ? ENGINE_EXIT : ENGINE_KILL);

		assert_string_equal(engine_profile(session), "main 0+1\nthread 0+1\n");
		expect_ms(session, "main", 50, 400);
		expect_ms(session, "thread", 20, sum_ms(session, "main") - 29);
		session_close(session);
	}
}

static void missing_ends(void)
{
	begin("main");
	for (int i = 0; i < 100; i++) { /* more than are waited for */
		begin("iteration");
		begin("part");
		usleep(200);
		end("iteration");
	}
	end("main");
}

static void a_missing_end_is_that_of_the_region_around(void **state)
{
	for (int way = 0; way < 2; way++) {
		struct session *session = run_one_way(state, way, missing_ends, ENGINE_EXIT);

		assert_string_equal(engine_profile(session),
				    "main 1+0\nmain;iteration 100+0\nmain;iteration;part 100+0\n");
		expect_ms(session, "main;iteration", 20, sum_ms(session, "main"));
		expect_ms(session, "main;iteration;part", 20, sum_ms(session, "main;iteration"));
		assert_true(session_get_regions(session)->unbalanced_region_count >= 100);
		session_close(session);
	}
}

static void overlap(void)
{
	begin("a");
	begin("b");
	usleep(5000);
	end("a");
	usleep(10000);
	end("b");
}

static void own_time_of_overlapping_regions(void **state)
{
	for (int way = 0; way < 2; way++) {
		struct session *session = run_one_way(state, way, overlap, ENGINE_EXIT);
		const struct model_regions *regions = session_get_regions(session);
		double own = sum_ms(session, "a") - sum_ms(session, "a;b") +
			     regions->nodes[engine_node(session, "a")].self_correction / MS;

		if (own < -0.01 || own > sum_ms(session, "a") - 4.9)
			fail_msg("a itself: %g ms", own);
		expect_ms(session, "a;b", 15, 400);
		session_close(session);
	}
}

static void across_edges(void)
{
	control_start_collection(&kymo_runtime.control); /* windows begin with the first start */
	begin("phase");
	usleep(150000);
	end("phase");
	begin("tail");
	usleep(200000);
	end("tail");
}

static void windows_cut_what_lies_across_their_edges(void **state)
{
	static const char *const settings[][5] = {
		{"KYMO_TRACE=on", "KYMO_INIT_ENABLED=off", "KYMO_TRACE_DELAY=0.05",
		 "KYMO_TRACE_DURATION=0.2", NULL},
		{"KYMO_TRACE=off", "KYMO_INIT_ENABLED=off", "KYMO_TRACE_DELAY=0.05",
		 "KYMO_TRACE_DURATION=0.2", NULL}};
	char directory[4096];

	for (int way = 0; way < 2; way++) {
		struct session *session;

		snprintf(directory, sizeof(directory), "%s/%d", (const char *)*state, way);
		mkdir(directory, 0700);
		session = engine_run(directory, settings[way], across_edges, ENGINE_EXIT);
		assert_string_equal(engine_profile(session), "phase 1+0\ntail 0+1\n");
		/* 350 ms without windows, 200 in the window, which may open and close late. */
		expect_ms(session, "phase", 20, 330 - sum_ms(session, "tail"));
		expect_ms(session, "tail", 20, 330 - sum_ms(session, "phase"));
		session_close(session);
	}
}

static volatile sig_atomic_t handled;

static void handle(int signal)
{
	(void)signal;
	handled++;
	begin("handler");
	end("handler");
}

static void interrupted(void)
{
	struct itimerval interval = {{0, 500}, {0, 500}}, none = {{0, 0}, {0, 0}};
	region_id host = region_find_or_add_name(REGION_INSTRUMENTED, "host");

	signal(SIGALRM, handle);
	setitimer(ITIMER_REAL, &interval, NULL);
	while (handled < 300) {
		begin("user");
		region_begin(host);
		region_end(host);
		end("user");
	}
	setitimer(ITIMER_REAL, &none, NULL);
	for (sig_atomic_t i = 0; i < handled; i++) {
		begin("handled");
		end("handled");
	}
}

static uint64_t count_calls(const struct session *session, const char *name)
{
	const struct model_regions *regions = session_get_regions(session);
	uint64_t count = 0;

	for (uint32_t i = 0; i < regions->node_count; i++) {
		if (strcmp(regions->regions[regions->nodes[i].region].name, name) == 0)
			count += regions->nodes[i].count;
	}
	return count;
}

static void signal_handlers_keep_their_regions(void **state)
{
	for (int way = 0; way < 2; way++) {
		struct session *session = run_one_way(state, way, interrupted, ENGINE_EXIT);

		assert_int_equal(engine_loss(session, SPOOL_LOSS_REGION_REENTRY), 0);
		assert_true(count_calls(session, "handled") >= 300);
		assert_int_equal(count_calls(session, "handler"), count_calls(session, "handled"));
		session_close(session);
	}
}

int main(void)
{
#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, test_directory_create, test_directory_remove)
	const struct CMUnitTest tests[] = {
		TEST(what_is_open_at_the_end_has_its_time),
		TEST(a_missing_end_is_that_of_the_region_around),
		TEST(own_time_of_overlapping_regions),
		TEST(windows_cut_what_lies_across_their_edges),
		TEST(signal_handlers_keep_their_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
