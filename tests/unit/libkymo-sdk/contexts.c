/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Contexts that are started and stopped again and again: who hears what, and what it takes.
 */
#include "scenario.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "common/array.h"
#include "libkymo-sdk/emit.h"

static rocprofiler_context_id_t markers, kernels, both;
static unsigned told_by_context[3];

static void tell(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		 void *data)
{
	(void)user_data;
	if (record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER)
		(*(unsigned *)data)++;
}

static void trace(rocprofiler_context_id_t *context, unsigned number,
		  rocprofiler_callback_tracing_kind_t first,
		  rocprofiler_callback_tracing_kind_t second)
{
	OK(rocprofiler_create_context(context));
	OK(rocprofiler_configure_callback_tracing_service(*context, first, NULL, 0, tell,
							  &told_by_context[number]));
	if (second)
		OK(rocprofiler_configure_callback_tracing_service(*context, second, NULL, 0, tell,
								  &told_by_context[number]));
}

static int initialize(void)
{
	trace(&markers, 0, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API, 0);
	trace(&kernels, 1, ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH, 0);
	trace(&both, 2, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API,
	      ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API);
	return 0;
}

static void call(enum sdk_domain domain)
{
	rocprofiler_callback_tracing_marker_api_data_t data = {.size = sizeof(data)};
	struct sdk_call_state one;

	if (sdk_call_enter(&one, domain, 1, &data))
		sdk_call_exit(&one, &data);
}

static void check_told(unsigned of_markers, unsigned of_both)
{
	memset(told_by_context, 0, sizeof(told_by_context));
	call(SDK_DOMAIN_MARKER_CORE);
	call(SDK_DOMAIN_HIP_RUNTIME);
	CHECK_EQUAL(told_by_context[0], of_markers);
	CHECK_EQUAL(told_by_context[1], 0);
	CHECK_EQUAL(told_by_context[2], of_both);
}

/* One context's start or stop changes nothing of what another one wants. */
static void started_and_stopped_in_turns(void)
{
	scenario_tool(initialize);
	check_told(0, 0);
	OK(rocprofiler_start_context(markers));
	check_told(1, 0);
	OK(rocprofiler_start_context(kernels));
	check_told(1, 0);
	OK(rocprofiler_start_context(both));
	check_told(1, 2);
	OK(rocprofiler_stop_context(markers));
	check_told(0, 2);
	OK(rocprofiler_stop_context(kernels));
	check_told(0, 2);
	OK(rocprofiler_start_context(markers));
	OK(rocprofiler_stop_context(both));
	check_told(1, 0);
	CHECK(!sdk_is_operation_wanted(SDK_DOMAIN_HIP_RUNTIME, 1));
	CHECK(!sdk_is_operation_wanted(SDK_DOMAIN_DISPATCH, ROCPROFILER_KERNEL_DISPATCH_COMPLETE));
	REFUSED(rocprofiler_stop_context(both), CONTEXT_NOT_FOUND);
	OK(rocprofiler_stop_context(markers));
	check_told(0, 0);
}

/* From now on the process dies of a file that it opens. */
static void forbid_to_open_files(void)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {ARRAY_SIZE(steps), steps};

	CHECK_EQUAL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	CHECK_EQUAL(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void no_file_is_opened(void)
{
	const rocprofiler_context_id_t *contexts[] = {&markers, &kernels, &both};

	scenario_tool(initialize);
	for (size_t i = 0; i < ARRAY_SIZE(contexts); i++) {
		OK(rocprofiler_start_context(*contexts[i]));
		OK(rocprofiler_stop_context(*contexts[i]));
	}
	forbid_to_open_files();
	for (int i = 0; i < 1000; i++) {
		OK(rocprofiler_start_context(*contexts[i % 3]));
		OK(rocprofiler_stop_context(*contexts[i % 3]));
	}
	_exit(0); /* the end may open what it wants */
}

#define ID_THREADS    8
#define IDS_PER_ROUND 20000

static _Atomic uint8_t seen_ids[(ID_THREADS + 2) * IDS_PER_ROUND + 1];
static _Atomic unsigned silent_calls;

static void ignore(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		   void *data)
{
	(void)record;
	(void)user_data;
	(void)data;
	silent_calls++;
}

static int initialize_silent(void)
{
	OK(rocprofiler_create_context(&markers));
	OK(rocprofiler_configure_callback_tracing_service(
		markers, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API, NULL, 0, ignore, NULL));
	return rocprofiler_start_context(markers);
}

static void *take_ids(void *unused)
{
	(void)unused;
	for (int i = 0; i < IDS_PER_ROUND; i++) {
		rocprofiler_callback_tracing_marker_api_data_t data = {.size = sizeof(data)};
		struct sdk_call_state one;

		CHECK(sdk_call_enter(&one, SDK_DOMAIN_MARKER_CORE, 1, &data));
		CHECK(one.id > 0 && one.id < ARRAY_SIZE(seen_ids));
		CHECK_EQUAL(seen_ids[one.id]++, 0);
		sdk_call_exit(&one, &data);
	}
	return NULL;
}

/* Of one thread, of several that begin while it goes on, and in a child. */
static void ids_have_no_gaps(void)
{
	const size_t count = (ID_THREADS + 2) * IDS_PER_ROUND;
	pthread_t made[ID_THREADS];
	pid_t child;
	int status;

	scenario_tool(initialize_silent);
	take_ids(NULL);
	for (int i = 0; i < ID_THREADS; i++)
		CHECK_EQUAL(pthread_create(&made[i], NULL, take_ids, NULL), 0);
	child = fork();
	if (!child) {
		rocprofiler_callback_tracing_marker_api_data_t data = {.size = sizeof(data)};
		struct sdk_call_state one;

		alarm(20);
		CHECK(sdk_call_enter(&one, SDK_DOMAIN_MARKER_CORE, 1, &data));
		sdk_call_exit(&one, &data);
		exit(0);
	}
	take_ids(NULL);
	for (int i = 0; i < ID_THREADS; i++)
		pthread_join(made[i], NULL);
	for (size_t id = 1; id <= count; id++)
		CHECK_EQUAL(seen_ids[id], 1);
	CHECK_EQUAL(waitpid(child, &status, 0), child);
	CHECK_EQUAL(status, 0);
}

#define TESTS(TEST)                                                                                \
	TEST(started_and_stopped_in_turns)                                                         \
	TEST(no_file_is_opened)                                                                    \
	TEST(ids_have_no_gaps)

TESTS(SCENARIO)

#define ENTRY(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ENTRY)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
