/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Registration and the end of tools: order, refusals, tools side by side, one that fails.
 */
#include "scenario.h"

#include <dirent.h>
#include <pthread.h>

#include "libkymo-sdk/runtimes/runtimes.h"

#define TOOLS 4

static char journal[256];
static rocprofiler_context_id_t contexts[TOOLS];
static rocprofiler_client_id_t *clients[TOOLS];
static rocprofiler_client_finalize_t finalizers[TOOLS];
static uint32_t priorities[TOOLS];
static int answers[TOOLS]; /* of initialize; -1: configure gives NULL */
static int finalized[TOOLS];
static rocprofiler_context_id_t early; /* made in configure */

static void note(const char *text)
{
	strcat(journal, text);
}

static int initialize(int tool)
{
	char text[8] = {'i', (char)('0' + tool), ' ', '\0'};

	note(text);
	OK(rocprofiler_create_context(&contexts[tool]));
	OK(rocprofiler_start_context(contexts[tool]));
	return answers[tool];
}

static int tool_initialize(rocprofiler_client_finalize_t finalizer, void *data)
{
	int tool = (int)(intptr_t)data;

	finalizers[tool] = finalizer;
	return initialize(tool);
}

static void tool_finalize(void *data)
{
	int tool = (int)(intptr_t)data, active = 1;
	rocprofiler_context_id_t more = {0};

	finalized[tool]++;
	OK(rocprofiler_context_is_active(contexts[tool], &active));
	CHECK_EQUAL(active, 0);
	REFUSED(rocprofiler_create_context(&more), CONFIGURATION_LOCKED);
	REFUSED(rocprofiler_start_context(contexts[tool]), CONFIGURATION_LOCKED);
}

static rocprofiler_tool_configure_result_t *ask(int tool, uint32_t priority,
						rocprofiler_client_id_t *id)
{
	static rocprofiler_tool_configure_result_t results[TOOLS];
	char text[8] = {'c', (char)('0' + tool), ' ', '\0'};

	note(text);
	clients[tool] = id;
	priorities[tool] = priority;
	if (answers[tool] < 0) {
		early.handle = 0;
		OK(rocprofiler_create_context(&early));
		return NULL;
	}
	results[tool] = (rocprofiler_tool_configure_result_t){
		sizeof(results[0]), tool_initialize, tool_finalize, (void *)(intptr_t)tool};
	return &results[tool];
}

#define TOOL(number)                                                                               \
	static rocprofiler_tool_configure_result_t *tool_##number(                                 \
		uint32_t version, const char *text, uint32_t priority,                             \
		rocprofiler_client_id_t *id)                                                       \
	{                                                                                          \
		(void)version;                                                                     \
		(void)text;                                                                        \
		return ask(number, priority, id);                                                  \
	}
TOOL(0)
TOOL(1)

/* The program's own, which the library sees as a weak symbol. */
rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version,
							   const char *runtime_version,
							   uint32_t priority,
							   rocprofiler_client_id_t *client_id)
{
	(void)version;
	(void)runtime_version;
	return ask(3, priority, client_id);
}

static int status_of(rocprofiler_status_t (*ask_status)(int *))
{
	int status = 7;

	OK(ask_status(&status));
	return status;
}

static void all_are_asked_before_any_is_initialized(void)
{
	CHECK_EQUAL(status_of(rocprofiler_is_initialized), 0);
	OK(rocprofiler_force_configure(tool_0));
	CHECK(!strcmp(journal, "c0 c3 i0 i3 "));
	CHECK_EQUAL(status_of(rocprofiler_is_initialized), 1);
	CHECK_EQUAL(priorities[0], 0);
	CHECK_EQUAL(priorities[3], 1);
	CHECK(clients[0]->handle != clients[3]->handle);
	CHECK_EQUAL(clients[0]->size, sizeof(rocprofiler_client_id_t));
	CHECK(clients[0]->name == NULL);
	CHECK(contexts[0].handle > 255);
}

static void who_wants_nothing_counts_in_priorities(void)
{
	int valid = 1;

	answers[0] = -1;
	OK(rocprofiler_force_configure(tool_0));
	CHECK(!strcmp(journal, "c0 c3 i3 "));
	CHECK_EQUAL(priorities[3], 1);
	REFUSED(rocprofiler_context_is_valid(early, &valid), CONTEXT_NOT_FOUND);
	CHECK_EQUAL(valid, 0);
}

static int threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = -2;

	CHECK(tasks != NULL);
	while (readdir(tasks))
		count++;
	closedir(tasks);
	return count;
}

static int thread_calls;

static void thread_before(rocprofiler_runtime_library_t library, void *data)
{
	CHECK_EQUAL(library, ROCPROFILER_LIBRARY);
	CHECK(data == &thread_calls);
	CHECK_EQUAL(thread_calls % 2, 0);
	thread_calls++;
}

static void thread_after(rocprofiler_runtime_library_t library, void *data)
{
	CHECK_EQUAL(library, ROCPROFILER_LIBRARY);
	CHECK(data == &thread_calls);
	CHECK_EQUAL(thread_calls % 2, 1);
	thread_calls++;
}

static void without_tools_there_is_no_thread(void)
{
	int before = threads();

	answers[0] = answers[3] = -1;
	OK(rocprofiler_at_internal_thread_create(thread_before, thread_after, ROCPROFILER_LIBRARY,
						 &thread_calls));
	OK(rocprofiler_force_configure(tool_0));
	CHECK_EQUAL(status_of(rocprofiler_is_initialized), 1);
	CHECK_EQUAL(thread_calls, 0);
	CHECK_EQUAL(threads(), before);
}

static void threads_are_announced(void)
{
	OK(rocprofiler_at_internal_thread_create(thread_before, thread_after, 0, &thread_calls));
	OK(rocprofiler_force_configure(tool_0));
	CHECK_EQUAL(thread_calls, 2);
}

static void other_libraries_threads_are_not_asked_for(void)
{
	OK(rocprofiler_at_internal_thread_create(thread_before, thread_after,
						 ROCPROFILER_HSA_LIBRARY, &thread_calls));
	OK(rocprofiler_force_configure(tool_0));
	CHECK_EQUAL(thread_calls, 0);
}

static void check_two_at_exit(void)
{
	CHECK_EQUAL(finalized[0], 0);
	CHECK_EQUAL(finalized[3], 1);
}

static void a_tool_that_fails_is_left_out(void)
{
	int valid = 1, active = 0;

	atexit(check_two_at_exit);
	answers[0] = 5;
	OK(rocprofiler_force_configure(tool_0));
	CHECK(!strcmp(journal, "c0 c3 i0 i3 "));
	REFUSED(rocprofiler_context_is_valid(contexts[0], &valid), CONTEXT_NOT_FOUND);
	REFUSED(rocprofiler_start_context(contexts[0]), CONTEXT_NOT_FOUND);
	OK(rocprofiler_context_is_active(contexts[3], &active));
	CHECK_EQUAL(active, 1);
}

static rocprofiler_tool_configure_result_t *
short_answer(uint32_t version, const char *text, uint32_t priority, rocprofiler_client_id_t *id)
{
	static rocprofiler_tool_configure_result_t result = {.size = 8,
							     .initialize = tool_initialize};

	(void)version;
	(void)text;
	(void)priority;
	id->name = "short";
	return &result;
}

static void a_result_that_is_too_short_is_left_out(void)
{
	OK(rocprofiler_force_configure(short_answer));
	CHECK(!strcmp(journal, "c3 i3 "));
}

static rocprofiler_tool_configure_result_t *
longer_answer(uint32_t version, const char *text, uint32_t priority, rocprofiler_client_id_t *id)
{
	static struct {
		rocprofiler_tool_configure_result_t known;
		uint64_t later;
	} result = {{sizeof(result), NULL, tool_finalize, (void *)1}, 1};

	(void)version;
	(void)text;
	(void)priority;
	(void)id;
	OK(rocprofiler_create_context(&contexts[1]));
	return &result.known;
}

static void check_longer_at_exit(void)
{
	CHECK_EQUAL(finalized[1], 1);
}

/* A later header's result, without an initialize function, and a context made while asked. */
static void a_longer_result_is_taken(void)
{
	atexit(check_longer_at_exit);
	OK(rocprofiler_force_configure(longer_answer));
	OK(rocprofiler_start_context(contexts[1]));
}

/* ---- what is locked when ---- */

static int inside_status;

static int refused_inside(void)
{
	static uint64_t table = sizeof(table); /* without functions */
	void *tables[] = {&table, &table, &table};
	rocprofiler_context_id_t context = {0}, used = {77};
	uint64_t id;

	inside_status = status_of(rocprofiler_is_initialized);
	REFUSED(rocprofiler_force_configure(tool_1), CONFIGURATION_LOCKED);
	/* A runtime that is called here comes back, instead of waiting for itself. */
	CHECK_EQUAL(sdk_runtime_announce("hip", 60000, tables, 1, true, &id),
		    SDK_RUNTIME_ANNOUNCE_BY_CONFIGURING_TOOL);
	OK(rocprofiler_create_context(&context));
	REFUSED(rocprofiler_create_context(&used), CONTEXT_ID_NOT_ZERO);
	return 0;
}

static void configuration_is_locked_outside(void)
{
	rocprofiler_context_id_t context = {0};
	rocprofiler_buffer_id_t buffer = {0};
	rocprofiler_callback_thread_t thread;

	REFUSED(rocprofiler_create_context(&context), CONFIGURATION_LOCKED);
	REFUSED(rocprofiler_create_buffer(context, 4096, 0, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
					  NULL, NULL, &buffer),
		CONFIGURATION_LOCKED);
	scenario_tool(refused_inside);
	CHECK_EQUAL(inside_status, -1);
	REFUSED(rocprofiler_create_context(&context), CONFIGURATION_LOCKED);
	REFUSED(rocprofiler_create_buffer(context, 4096, 0, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
					  NULL, NULL, &buffer),
		CONFIGURATION_LOCKED);
	REFUSED(rocprofiler_create_callback_thread(&thread), CONFIGURATION_LOCKED);
	REFUSED(rocprofiler_assign_callback_thread(buffer, (rocprofiler_callback_thread_t){0}),
		CONFIGURATION_LOCKED);
	REFUSED(rocprofiler_at_intercept_table_registration(NULL, 0, NULL), CONFIGURATION_LOCKED);
	REFUSED(rocprofiler_configure_callback_tracing_service(
			context, ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API, NULL, 0, NULL, NULL),
		CONFIGURATION_LOCKED);
	REFUSED(rocprofiler_configure_buffer_tracing_service(
			context, ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API, NULL, 0, buffer),
		CONFIGURATION_LOCKED);
}

static void a_tool_may_come_later(void)
{
	OK(rocprofiler_force_configure(tool_0));
	REFUSED(rocprofiler_force_configure(tool_0), CONFIGURATION_LOCKED);
	REFUSED(rocprofiler_force_configure(NULL), CONFIGURATION_LOCKED);
	OK(rocprofiler_force_configure(tool_1));
	CHECK_EQUAL(priorities[1], 2);
	CHECK(!strcmp(journal, "c0 c3 i0 i3 c1 i1 "));
	REFUSED(rocprofiler_force_configure(tool_1), CONFIGURATION_LOCKED);
}

static _Atomic int slow_phase;

static int slow_initialize(void)
{
	slow_phase = 1;
	usleep(300000);
	slow_phase = 2;
	return 0;
}

static void *announce_meanwhile(void *data)
{
	void *tables[] = {data};
	uint64_t id;

	while (!slow_phase)
		usleep(1000);
	CHECK_EQUAL(sdk_runtime_announce("hip", 60000, tables, 1, true, &id),
		    SDK_RUNTIME_ANNOUNCE_PASSED_TO_TOOLS);
	CHECK_EQUAL(slow_phase, 2);
	return NULL;
}

/* What it does next is to be traced. */
static void other_threads_wait_for_registration(void)
{
	uint64_t table[2] = {sizeof(table), 0};
	pthread_t thread;

	CHECK_EQUAL(pthread_create(&thread, NULL, announce_meanwhile, table), 0);
	scenario_tool(slow_initialize);
	pthread_join(thread, NULL);
}

/* ---- ends ---- */

static void check_once_at_exit(void)
{
	CHECK_EQUAL(finalized[0], 1);
	CHECK_EQUAL(finalized[3], 1);
	CHECK_EQUAL(status_of(rocprofiler_is_finalized), 1);
}

static void one_of_two_ends(void)
{
	int active = 0;

	atexit(check_once_at_exit);
	OK(rocprofiler_force_configure(tool_0));
	finalizers[0](*clients[0]);
	CHECK_EQUAL(finalized[0], 1);
	CHECK_EQUAL(finalized[3], 0);
	CHECK_EQUAL(status_of(rocprofiler_is_finalized), 0);
	OK(rocprofiler_context_is_active(contexts[3], &active));
	CHECK_EQUAL(active, 1);
	REFUSED(rocprofiler_start_context(contexts[0]), CONFIGURATION_LOCKED);
	REFUSED(rocprofiler_stop_context(contexts[0]), CONTEXT_NOT_FOUND);
	finalizers[0](*clients[0]); /* again: nothing */
	CHECK_EQUAL(finalized[0], 1);
}

static void the_last_one_ends_everything(void)
{
	rocprofiler_context_id_t context = {0};
	rocprofiler_buffer_id_t buffer = {1};

	atexit(check_once_at_exit);
	OK(rocprofiler_force_configure(tool_0));
	finalizers[0](*clients[0]);
	finalizers[3](*clients[3]);
	CHECK_EQUAL(status_of(rocprofiler_is_finalized), 1);
	REFUSED(rocprofiler_flush_buffer(buffer), FINALIZED);
	OK(rocprofiler_stop_context(contexts[0]));
	REFUSED(rocprofiler_start_context(contexts[0]), CONFIGURATION_LOCKED);
	REFUSED(rocprofiler_create_context(&context), CONFIGURATION_LOCKED);
	REFUSED(rocprofiler_force_configure(tool_1), CONFIGURATION_LOCKED);
}

static void *end_it(void *data)
{
	(void)data;
	finalizers[0](*clients[0]);
	return NULL;
}

/* The finalizer may be called by a thread of the tool, by several, and once more by exit. */
static void ended_by_many(void)
{
	pthread_t ending[8];

	atexit(check_once_at_exit);
	OK(rocprofiler_force_configure(tool_0));
	for (int i = 0; i < 8; i++)
		CHECK_EQUAL(pthread_create(&ending[i], NULL, end_it, NULL), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(ending[i], NULL);
	CHECK_EQUAL(finalized[0], 1);
}

static void quick(void)
{
	OK(rocprofiler_force_configure(tool_0));
	quick_exit(0);
}

SCENARIO(all_are_asked_before_any_is_initialized)
SCENARIO(who_wants_nothing_counts_in_priorities)
SCENARIO(without_tools_there_is_no_thread)
SCENARIO(threads_are_announced)
SCENARIO(other_libraries_threads_are_not_asked_for)
SCENARIO(a_tool_that_fails_is_left_out)
SCENARIO(a_result_that_is_too_short_is_left_out)
SCENARIO(a_longer_result_is_taken)
SCENARIO(configuration_is_locked_outside)
SCENARIO(a_tool_may_come_later)
SCENARIO(other_threads_wait_for_registration)
SCENARIO(one_of_two_ends)
SCENARIO(the_last_one_ends_everything)
SCENARIO(ended_by_many)
SCENARIO(quick)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_are_asked_before_any_is_initialized),
		cmocka_unit_test(test_who_wants_nothing_counts_in_priorities),
		cmocka_unit_test(test_without_tools_there_is_no_thread),
		cmocka_unit_test(test_threads_are_announced),
		cmocka_unit_test(test_other_libraries_threads_are_not_asked_for),
		cmocka_unit_test(test_a_tool_that_fails_is_left_out),
		cmocka_unit_test(test_a_result_that_is_too_short_is_left_out),
		cmocka_unit_test(test_a_longer_result_is_taken),
		cmocka_unit_test(test_configuration_is_locked_outside),
		cmocka_unit_test(test_a_tool_may_come_later),
		cmocka_unit_test(test_other_threads_wait_for_registration),
		cmocka_unit_test(test_one_of_two_ends),
		cmocka_unit_test(test_the_last_one_ends_everything),
		cmocka_unit_test(test_ended_by_many),
		cmocka_unit_test(test_quick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
