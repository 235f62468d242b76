/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Forks: the child goes on with the same contexts, buffers of its own, and threads of its own.
 */
#include "scenario.h"

#include <pthread.h>

#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/emit.h"

struct item {
	uint64_t thread, number, filler[6];
};

static rocprofiler_context_id_t context;
static rocprofiler_buffer_id_t ids[2];
static size_t size = 4096, watermark = 4096;
static _Atomic uint64_t taken;

static void take(rocprofiler_context_id_t of, rocprofiler_buffer_id_t from,
		 rocprofiler_record_header_t **headers, size_t count, void *data, uint64_t dropped)
{
	(void)of;
	(void)from;
	(void)headers;
	(void)data;
	CHECK_EQUAL(dropped, 0);
	taken += count;
}

static int initialize(void)
{
	OK(rocprofiler_create_context(&context));
	for (intptr_t i = 0; i < 2; i++)
		OK(rocprofiler_create_buffer(context, size, watermark,
					     ROCPROFILER_BUFFER_POLICY_LOSSLESS, take, NULL,
					     &ids[i]));
	OK(rocprofiler_configure_buffer_tracing_service(
		context, ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API, NULL, 0, ids[0]));
	OK(rocprofiler_start_context(context));
	return 0;
}

static void put(int buffer, uint64_t thread, uint64_t number)
{
	struct item item = {.thread = thread, .number = number};

	sdk_buffer_append_tracing_record(sdk_buffer_find_by_id(ids[buffer].handle),
					 ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API, &item,
					 sizeof(item), sdk_clock_read_now_ns());
}

/* Threads that are being made allocate, and ASan's allocator (clang 14) keeps locks in the child
 * that were held at a fork. */
static void settle(void)
{
	usleep(20000);
}

static void a_child_has_its_own(void)
{
	pid_t child;
	int status;

	scenario_tool(initialize);
	put(0, 0, 0);
	put(0, 0, 1);
	settle();
	child = fork();
	if (!child) {
		put(0, 0, 2);
		OK(rocprofiler_flush_buffer(ids[0]));
		CHECK_EQUAL(taken, 1); /* the parent's are the parent's to hand over */
		put(0, 0, 3);
		OK(rocprofiler_flush_buffer(ids[0]));
		CHECK_EQUAL(taken, 2);
		exit(0); /* and its tools end in it, too */
	}
	CHECK_EQUAL(waitpid(child, &status, 0), child);
	CHECK_EQUAL(status, 0);
	OK(rocprofiler_flush_buffer(ids[0]));
	CHECK_EQUAL(taken, 2);
}

static _Atomic bool fork_ends;
static _Atomic int fork_threads;

static void *put_until_it_ends(void *data)
{
	uint64_t thread = (uint64_t)(intptr_t)data;

	for (uint64_t i = 0; !fork_ends; i++) {
		put((int)(i & 1), thread + (i & 1) * 8, i);
		fork_threads += i == 0;
	}
	return NULL;
}

static void fork_once(void)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		alarm(60);
		taken = 0;
		for (uint64_t i = 0; i < 1000; i++)
			put(0, 15, i);
		OK(rocprofiler_flush_buffer(ids[0]));
		CHECK_EQUAL(taken, 1000);
		exit(0);
	}
	CHECK_EQUAL(waitpid(child, &status, 0), child);
	CHECK_EQUAL(status, 0);
}

/* Whatever the other threads are in the middle of. */
static void forked_in_the_middle(void)
{
	pthread_t made[4];

	watermark = 512;
	scenario_tool(initialize);
	for (intptr_t i = 0; i < 4; i++)
		CHECK_EQUAL(pthread_create(&made[i], NULL, put_until_it_ends, (void *)i), 0);
	while (fork_threads < 4 || !taken)
		settle();
	for (int i = 0; i < 30; i++)
		fork_once();
	fork_ends = true;
	for (int i = 0; i < 4; i++)
		pthread_join(made[i], NULL);
}

static void call(void);

static pthread_mutex_t mutex_of_tool = PTHREAD_MUTEX_INITIALIZER;

static void take_with_mutex(rocprofiler_context_id_t of, rocprofiler_buffer_id_t from,
			    rocprofiler_record_header_t **headers, size_t count, void *data,
			    uint64_t dropped)
{
	pthread_mutex_lock(&mutex_of_tool);
	usleep(200);
	take(of, from, headers, count, data, dropped);
	pthread_mutex_unlock(&mutex_of_tool);
}

static void called_with_mutex(rocprofiler_callback_tracing_record_t record,
			      rocprofiler_user_data_t *user_data, void *data)
{
	(void)record;
	(void)user_data;
	(void)data;
	pthread_mutex_lock(&mutex_of_tool);
	pthread_mutex_unlock(&mutex_of_tool);
}

static void finalize_with_mutex(void)
{
	pthread_mutex_lock(&mutex_of_tool);
	pthread_mutex_unlock(&mutex_of_tool);
}

static int initialize_with_mutex(void)
{
	OK(rocprofiler_create_context(&context));
	OK(rocprofiler_create_buffer(context, 4096, 512, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     take_with_mutex, NULL, &ids[0]));
	OK(rocprofiler_configure_buffer_tracing_service(
		context, ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API, NULL, 0, ids[0]));
	OK(rocprofiler_configure_callback_tracing_service(
		context, ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API, NULL, 0, called_with_mutex,
		NULL));
	OK(rocprofiler_start_context(context));
	return 0;
}

static void *call_until_it_ends(void *unused)
{
	(void)unused;
	fork_threads++;
	while (!fork_ends) {
		rocprofiler_callback_tracing_hip_api_data_t data = {.size = sizeof(data)};
		struct sdk_call_state one;

		if (sdk_call_enter(&one, SDK_DOMAIN_HIP_RUNTIME, 1, &data))
			sdk_call_exit(&one, &data);
	}
	return NULL;
}

static void end_forked_threads(pthread_t *made, int count)
{
	fork_ends = true;
	for (int i = 0; i < count; i++)
		pthread_join(made[i], NULL);
}

/* What a tool's functions hold on other threads is held by nobody in the child. */
static void forked_while_a_tool_holds_its_mutex(void)
{
	pthread_t made[3];

	scenario_finalize = finalize_with_mutex;
	scenario_tool(initialize_with_mutex);
	for (int i = 0; i < 3; i++)
		CHECK_EQUAL(pthread_create(&made[i], NULL, call_until_it_ends, NULL), 0);
	while (fork_threads < 3 || !taken)
		settle();
	for (int i = 0; i < 200; i++) {
		pid_t child = fork();
		int status;

		CHECK(child >= 0);
		if (!child) {
			alarm(20);
			exit(0);
		}
		CHECK_EQUAL(waitpid(child, &status, 0), child);
		CHECK_EQUAL(status, 0);
	}
	end_forked_threads(made, 3);
}

static _Atomic bool callback_is_in, callback_may_leave;

static void called_for_long(rocprofiler_callback_tracing_record_t record,
			    rocprofiler_user_data_t *user_data, void *data)
{
	(void)user_data;
	(void)data;
	if (record.phase != ROCPROFILER_CALLBACK_PHASE_ENTER)
		return;
	callback_is_in = true;
	while (!callback_may_leave)
		usleep(1000);
}

static int initialize_for_long(void)
{
	OK(rocprofiler_create_context(&context));
	OK(rocprofiler_configure_callback_tracing_service(
		context, ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API, NULL, 0, called_for_long,
		NULL));
	OK(rocprofiler_start_context(context));
	return 0;
}

static void *call_once(void *unused)
{
	(void)unused;
	call();
	return NULL;
}

static void must_not_end_in_the_child(void)
{
	CHECK(callback_may_leave);
}

/* A tool's function that waits for the thread that forks: the fork goes on, the child without the
 * tool. */
static void forked_while_a_tool_waits_for_it(void)
{
	pthread_t thread;
	pid_t child;
	int status;

	scenario_finalize = must_not_end_in_the_child;
	scenario_tool(initialize_for_long);
	CHECK_EQUAL(pthread_create(&thread, NULL, call_once, NULL), 0);
	WAIT_FOR(callback_is_in);
	child = fork();
	if (!child) {
		rocprofiler_callback_tracing_hip_api_data_t data = {.size = sizeof(data)};
		struct sdk_call_state one;

		alarm(20);
		/* A function of the tool would stay in there for ever. */
		if (sdk_call_enter(&one, SDK_DOMAIN_HIP_RUNTIME, 1, &data))
			sdk_call_exit(&one, &data);
		exit(0);
	}
	callback_may_leave = true;
	CHECK_EQUAL(waitpid(child, &status, 0), child);
	CHECK_EQUAL(status, 0);
	pthread_join(thread, NULL);
}

static void fork_in_callback(rocprofiler_callback_tracing_record_t record,
			     rocprofiler_user_data_t *user_data, void *data)
{
	pid_t child;
	int status;

	(void)user_data;
	(void)data;
	if (record.phase != ROCPROFILER_CALLBACK_PHASE_ENTER)
		return;
	child = fork();
	if (!child)
		_exit(0);
	CHECK_EQUAL(waitpid(child, &status, 0), child);
	CHECK_EQUAL(status, 0);
}

static int initialize_that_forks(void)
{
	OK(rocprofiler_create_context(&context));
	OK(rocprofiler_configure_callback_tracing_service(
		context, ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API, NULL, 0, fork_in_callback,
		NULL));
	OK(rocprofiler_start_context(context));
	return 0;
}

static void *fork_in_call_until_it_ends(void *unused)
{
	(void)unused;
	for (int i = 0; i < 20; i++)
		call();
	return NULL;
}

/* Tools fork, too, on several threads at once. */
static void forked_by_a_tool(void)
{
	pthread_t made[3];

	scenario_tool(initialize_that_forks);
	for (int i = 0; i < 3; i++)
		CHECK_EQUAL(pthread_create(&made[i], NULL, fork_in_call_until_it_ends, NULL), 0);
	for (int i = 0; i < 20; i++) {
		pid_t child = fork();
		int status;

		if (!child)
			_exit(0);
		CHECK_EQUAL(waitpid(child, &status, 0), child);
		CHECK_EQUAL(status, 0);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(made[i], NULL);
}

static void call(void)
{
	rocprofiler_callback_tracing_hip_api_data_t data = {.size = sizeof(data)};
	struct sdk_call_state one;

	CHECK(sdk_call_enter(&one, SDK_DOMAIN_HIP_RUNTIME, 1, &data));
	CHECK_EQUAL(one.thread_id, gettid());
	sdk_call_exit(&one, &data);
}

static void flush_at_the_end(void)
{
	put(0, 0, 1);
	OK(rocprofiler_flush_buffer(ids[0]));
	CHECK_EQUAL(taken, 1);
}

/* The thread that would hand its records over has not been made, and is not any more. */
static void a_child_that_ends_at_once(void)
{
	pid_t child;
	int status;

	scenario_finalize = flush_at_the_end;
	scenario_tool(initialize);
	settle();
	child = fork();
	if (!child) {
		alarm(20);
		exit(0);
	}
	CHECK_EQUAL(waitpid(child, &status, 0), child);
	CHECK_EQUAL(status, 0);
}

/* Within a call of the parent's that ends in both. */
static void forked_within_a_call(void)
{
	rocprofiler_callback_tracing_hip_api_data_t data = {.size = sizeof(data)};
	struct sdk_call_state outer;
	pid_t child;
	int status;

	scenario_tool(initialize);
	CHECK(sdk_call_enter(&outer, SDK_DOMAIN_HIP_RUNTIME, 1, &data));
	settle();
	child = fork();
	call();
	sdk_call_exit(&outer, &data);
	OK(rocprofiler_flush_buffer(ids[0]));
	CHECK_EQUAL(taken, 2);
	if (!child)
		exit(0);
	CHECK_EQUAL(waitpid(child, &status, 0), child);
	CHECK_EQUAL(status, 0);
}

static void a_child_of_a_child(void)
{
	scenario_tool(initialize);
	for (int depth = 0; depth < 5; depth++) {
		pid_t child;
		int status;

		settle();
		child = fork();
		if (child) {
			CHECK_EQUAL(waitpid(child, &status, 0), child);
			CHECK_EQUAL(status, 0);
			return;
		}
		taken = 0;
		call();
		OK(rocprofiler_flush_buffer(ids[0]));
		CHECK_EQUAL(taken, 1);
	}
}

/* Nothing of ours stands in the way of a child that only executes something. */
static void executed(void)
{
	scenario_tool(initialize);
	call();
	CHECK_EQUAL(system("exit 3") >> 8, 3);
	if (!fork())
		execl("/bin/true", "true", NULL);
	CHECK(wait(NULL) > 0);
}

#define TESTS(TEST)                                                                                \
	TEST(a_child_has_its_own)                                                                  \
	TEST(forked_in_the_middle)                                                                 \
	TEST(a_child_that_ends_at_once)                                                            \
	TEST(forked_within_a_call)                                                                 \
	TEST(a_child_of_a_child)                                                                   \
	TEST(forked_while_a_tool_holds_its_mutex)                                                  \
	TEST(forked_while_a_tool_waits_for_it)                                                     \
	TEST(forked_by_a_tool)                                                                     \
	TEST(executed)

TESTS(SCENARIO)

#define ENTRY(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ENTRY)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
