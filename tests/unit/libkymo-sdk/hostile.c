/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tools that do everything that they should not, everywhere: each function of theirs that the
 * library calls, calls functions of the library at random, with handles that are right, stale, of
 * something else or made up. Nothing has to succeed; nothing may crash or hang, and who asks for
 * the end gets it. The seed of a run that failed is printed.
 */
#include "scenario.h"

#include <pthread.h>
#include <time.h>

#include "common/splitmix64.h"

#include <kymo/tools.h>

#include "libkymo-sdk/emit.h"

#define THREADS  4
#define CONTEXTS 4

/* The lock of counters is made anew in the child of a fork, since the thread that holds it has
 * another number there; the thread sanitizer then takes it for locked. */
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

static rocprofiler_context_id_t contexts[CONTEXTS];
static rocprofiler_buffer_id_t buffers[CONTEXTS];
static rocprofiler_callback_thread_t own_thread;
static _Atomic uint64_t heard, taken, randomness, made_calls;
static uint64_t rounds = 600;
static _Atomic bool is_final;
static __thread unsigned depth;

static uint64_t random_next(void)
{
	return splitmix64_mix(atomic_fetch_add(&randomness, SPLITMIX64_STEP));
}

static unsigned pick(unsigned count)
{
	return (unsigned)(random_next() % count);
}

/* Right, of something else, none, or nonsense. */
static uint64_t any_handle(void)
{
	switch (pick(6)) {
	case 0:
		return 0;
	case 1:
		return random_next();
	case 2:
		return buffers[pick(CONTEXTS)].handle;
	case 3:
		return sdk_get_host_agent_id().handle;
	default:
		return contexts[pick(CONTEXTS)].handle;
	}
}

static rocprofiler_context_id_t any_context(void)
{
	return (rocprofiler_context_id_t){any_handle()};
}

static rocprofiler_buffer_id_t any_buffer(void)
{
	return (rocprofiler_buffer_id_t){pick(3) ? buffers[pick(CONTEXTS)].handle : any_handle()};
}

static rocprofiler_agent_id_t any_agent(void)
{
	return (rocprofiler_agent_id_t){pick(2) ? sdk_get_host_agent_id().handle : any_handle()};
}

static int any_kind(void)
{
	return pick(8) ? (int)pick(40) - 2 : (int)random_next();
}

static void do_something(void);

static int each_kind(rocprofiler_callback_tracing_kind_t kind, void *data)
{
	(void)data;
	if (kind == ROCPROFILER_CALLBACK_TRACING_OMPT)
		do_something();
	return (int)kind == 20;
}

static int each_operation(rocprofiler_buffer_tracing_kind_t kind,
			  rocprofiler_tracing_operation_t operation, void *data)
{
	(void)kind;
	(void)data;
	return operation > 5;
}

static rocprofiler_status_t each_agent(rocprofiler_agent_version_t version, const void **list,
				       size_t count, void *data)
{
	(void)version;
	(void)list;
	(void)count;
	(void)data;
	do_something();
	return ROCPROFILER_STATUS_SUCCESS;
}

static rocprofiler_status_t each_counter(rocprofiler_agent_id_t agent,
					 rocprofiler_counter_id_t *list, size_t count, void *data)
{
	(void)agent;
	(void)data;
	return count ? rocprofiler_destroy_counter_config(
			       (rocprofiler_counter_config_id_t){list[0].handle})
		     : ROCPROFILER_STATUS_ERROR;
}

static void tell(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		 void *data);
static void take(rocprofiler_context_id_t of, rocprofiler_buffer_id_t from,
		 rocprofiler_record_header_t **headers, size_t count, void *data, uint64_t dropped);
static int request(rocprofiler_thread_id_t tid, rocprofiler_context_id_t of,
		   rocprofiler_external_correlation_id_request_kind_t kind,
		   rocprofiler_tracing_operation_t operation, uint64_t internal,
		   rocprofiler_user_data_t *external, void *data);
static void thread_made(rocprofiler_runtime_library_t library, void *data);

static void ask(unsigned what)
{
	rocprofiler_version_triplet_t version;
	kymo_kind_support_t support;
	uint64_t length;
	const char *name;
	int answer;

	switch (what) {
	case 0:
		rocprofiler_get_version_triplet(pick(2) ? &version : NULL);
		break;
	case 1:
		rocprofiler_is_finalized(pick(2) ? &answer : NULL);
		break;
	case 2:
		rocprofiler_get_status_string((rocprofiler_status_t)any_kind());
		rocprofiler_get_status_name((rocprofiler_status_t)any_kind());
		break;
	case 3:
		rocprofiler_query_callback_tracing_kind_operation_name(
			(rocprofiler_callback_tracing_kind_t)any_kind(), any_kind(), &name,
			&length);
		break;
	case 4:
		rocprofiler_iterate_callback_tracing_kinds(pick(4) ? each_kind : NULL, NULL);
		break;
	case 5:
		rocprofiler_iterate_buffer_tracing_kind_operations(
			(rocprofiler_buffer_tracing_kind_t)any_kind(), each_operation, NULL);
		break;
	case 6:
		rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, each_agent,
						   pick(2) ? sizeof(rocprofiler_agent_v0_t) : 4096,
						   NULL);
		break;
	case 7:
		if (!UNDER_TSAN)
			rocprofiler_iterate_agent_supported_counters(any_agent(), each_counter,
								     NULL);
		break;
	case 8:
		kymo_callback_kind_support((rocprofiler_callback_tracing_kind_t)any_kind(),
					   any_agent(), &support);
		break;
	default:
		rocprofiler_context_is_valid(any_context(), pick(4) ? &answer : NULL);
		break;
	}
}

static void configure(unsigned what)
{
	rocprofiler_context_id_t context = {pick(4) ? 0 : 9};
	rocprofiler_buffer_id_t buffer = {0};
	rocprofiler_callback_thread_t thread = {pick(3)};

	switch (what) {
	case 0:
		rocprofiler_create_context(pick(4) ? &context : NULL);
		break;
	case 1:
		rocprofiler_create_buffer(any_context(), pick(2) ? 4096 : random_next(), pick(9000),
					  (rocprofiler_buffer_policy_t)pick(4),
					  pick(4) ? take : NULL, NULL, pick(4) ? &buffer : NULL);
		break;
	case 2:
		rocprofiler_configure_callback_tracing_service(
			any_context(), (rocprofiler_callback_tracing_kind_t)any_kind(), NULL,
			pick(3), tell, NULL);
		break;
	case 3:
		rocprofiler_configure_buffer_tracing_service(
			any_context(), (rocprofiler_buffer_tracing_kind_t)any_kind(), NULL, 0,
			any_buffer());
		break;
	case 4:
		rocprofiler_configure_external_correlation_id_request_service(any_context(), NULL,
									      0, request, NULL);
		break;
	case 5:
		rocprofiler_create_callback_thread(&thread);
		rocprofiler_assign_callback_thread(any_buffer(), thread);
		break;
	case 6:
		rocprofiler_force_configure(NULL);
		break;
	default:
		rocprofiler_configure_callback_dispatch_counting_service(any_context(), NULL, NULL,
									 NULL, NULL);
		break;
	}
}

static void use(unsigned what)
{
	rocprofiler_user_data_t value = {.value = random_next()};
	rocprofiler_counter_config_id_t config = {0};
	rocprofiler_counter_id_t counter = {random_next() % 100};
	size_t count = pick(4);

	switch (what) {
	case 0:
	case 1:
		rocprofiler_start_context(any_context());
		break;
	case 2:
		rocprofiler_stop_context(any_context());
		break;
	case 3:
		rocprofiler_flush_buffer(any_buffer());
		break;
	case 4:
		/* One of them goes, now and then. */
		rocprofiler_destroy_buffer(pick(20) ? (rocprofiler_buffer_id_t){random_next()}
						    : buffers[CONTEXTS - 1]);
		break;
	case 5:
		rocprofiler_push_external_correlation_id(
			any_context(), pick(2) ? (uint64_t)gettid() : random_next(), value);
		break;
	case 6:
		rocprofiler_pop_external_correlation_id(
			any_context(), pick(2) ? (uint64_t)gettid() : random_next(),
			pick(2) ? &value : NULL);
		break;
	case 7:
		if (UNDER_TSAN)
			break;
		rocprofiler_create_counter_config(any_agent(), &counter, pick(2), &config);
		rocprofiler_destroy_counter_config(config);
		break;
	default:
		rocprofiler_sample_device_counting_service(
			any_context(), value, ROCPROFILER_COUNTER_FLAG_NONE, NULL, &count);
		break;
	}
}

/* What the program could do, within a tool's function: it is not told of it. */
static void trace(void)
{
	rocprofiler_callback_tracing_hip_api_data_t data = {.size = sizeof(data)};
	rocprofiler_kernel_dispatch_info_t info = {.kernel_id = 1};
	struct sdk_call_state call;
	struct sdk_device_work *work;

	if (sdk_call_enter(&call, SDK_DOMAIN_HIP_RUNTIME, 7, &data)) {
		work = sdk_dispatch_report_enqueue(&info);
		if (work) {
			sdk_dispatch_report_submitted(work, pick(8) == 0);
		}
		sdk_call_exit(&call, &data);
	}
}

static void do_something(void)
{
	atomic_fetch_add(&made_calls, 1);
	if (depth > 2)
		return;
	depth++;
	switch (pick(4)) {
	case 0:
		ask(pick(10));
		break;
	case 1:
		configure(pick(8));
		break;
	default:
		use(pick(9));
		break;
	}
	depth--;
}

static void tell(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		 void *data)
{
	(void)record;
	(void)user_data;
	(void)data;
	CHECK(!is_final);
	heard++;
	do_something();
	if (pick(16) == 0)
		trace();
}

static void take(rocprofiler_context_id_t of, rocprofiler_buffer_id_t from,
		 rocprofiler_record_header_t **headers, size_t count, void *data, uint64_t dropped)
{
	(void)of;
	(void)from;
	(void)headers;
	(void)data;
	(void)dropped;
	taken += count;
	for (unsigned i = 0; i < 4; i++)
		do_something();
}

static int request(rocprofiler_thread_id_t tid, rocprofiler_context_id_t of,
		   rocprofiler_external_correlation_id_request_kind_t kind,
		   rocprofiler_tracing_operation_t operation, uint64_t internal,
		   rocprofiler_user_data_t *external, void *data)
{
	(void)tid;
	(void)of;
	(void)kind;
	(void)operation;
	(void)data;
	external->value = internal;
	do_something();
	return (int)pick(2);
}

static void thread_made(rocprofiler_runtime_library_t library, void *data)
{
	(void)library;
	(void)data;
	do_something();
}

static int initialize_hostile(void)
{
	rocprofiler_at_internal_thread_create(thread_made, thread_made, 0, NULL);
	OK(rocprofiler_create_callback_thread(&own_thread));
	for (unsigned i = 0; i < CONTEXTS; i++) {
		OK(rocprofiler_create_context(&contexts[i]));
		OK(rocprofiler_create_buffer(contexts[i], 16384, 4096,
					     i % 2 ? ROCPROFILER_BUFFER_POLICY_DISCARD
						   : ROCPROFILER_BUFFER_POLICY_LOSSLESS,
					     take, NULL, &buffers[i]));
		if (i % 2)
			OK(rocprofiler_assign_callback_thread(buffers[i], own_thread));
		for (int kind = 1; kind < ROCPROFILER_CALLBACK_TRACING_LAST; kind++)
			OK(rocprofiler_configure_callback_tracing_service(
				contexts[i], (rocprofiler_callback_tracing_kind_t)kind, NULL, 0,
				tell, NULL));
		for (int kind = 1; kind < ROCPROFILER_BUFFER_TRACING_LAST; kind++)
			rocprofiler_configure_buffer_tracing_service(
				contexts[i], (rocprofiler_buffer_tracing_kind_t)kind, NULL, 0,
				buffers[i]);
		OK(rocprofiler_configure_external_correlation_id_request_service(contexts[i], NULL,
										 0, request, NULL));
	}
	for (unsigned i = 0; i < 100; i++)
		do_something();
	OK(rocprofiler_start_context(contexts[0]));
	return 0;
}

static void finalize_hostile(void)
{
	for (unsigned i = 0; i < 100; i++)
		do_something();
	is_final = true;
}

static void work_of_program(void)
{
	rocprofiler_callback_tracing_hip_api_data_t data = {.size = sizeof(data)};
	rocprofiler_kernel_dispatch_info_t info = {.kernel_id = 1};
	struct sdk_memory_copy_info copy = {.operation = ROCPROFILER_MEMORY_COPY_NONE, .bytes = 8};
	struct sdk_call_state call;
	struct sdk_device_work *work;
	bool told = sdk_call_enter(&call, SDK_DOMAIN_HIP_RUNTIME, (int32_t)pick(400), &data);

	work = sdk_dispatch_report_enqueue(&info);
	if (work) {
		bool failed = pick(8) == 0;

		sdk_dispatch_report_submitted(work, failed);
		if (!failed)
			sdk_dispatch_report_complete(work, NULL, 1, 2);
	}
	work = sdk_work_create_for_call();
	if (work) {
		sdk_work_report_copy(work, &copy, 1, 2);
		sdk_work_release(work);
	}
	if (told)
		sdk_call_exit(&call, &data);
}

static void *program(void *unused)
{
	for (uint64_t i = 0; i < rounds; i++) {
		/* Others stop them. */
		if (i % 8 == 0)
			rocprofiler_start_context(contexts[i / 8 % CONTEXTS]);
		work_of_program();
	}
	return unused;
}

static void run_program(void)
{
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQUAL(pthread_create(&threads[i], NULL, program, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void everything_everywhere(void)
{
	scenario_finalize = finalize_hostile;
	for (unsigned i = 0; i < 100; i++)
		do_something();
	scenario_tool(initialize_hostile);
	for (unsigned i = 0; i < CONTEXTS; i++)
		rocprofiler_start_context(contexts[i]);
	run_program();
	CHECK(heard != 0 && made_calls > heard);
	scenario_finalizer(*scenario_client);
	CHECK(is_final);
	for (unsigned i = 0; i < 100; i++)
		do_something();
	work_of_program();
}

/* The end is asked for by a tool's own function, while other threads are in others. */
static _Atomic unsigned until_end = 200;

static void end_from_within(rocprofiler_callback_tracing_record_t record,
			    rocprofiler_user_data_t *user_data, void *data)
{
	(void)record;
	(void)user_data;
	(void)data;
	if (atomic_load(&until_end) && atomic_fetch_sub(&until_end, 1) == 1)
		scenario_finalizer(*scenario_client);
}

/* Nobody stops the context before the end is asked for. */
static void take_quietly(rocprofiler_context_id_t of, rocprofiler_buffer_id_t from,
			 rocprofiler_record_header_t **headers, size_t count, void *data,
			 uint64_t dropped)
{
	(void)of;
	(void)from;
	(void)headers;
	(void)data;
	(void)dropped;
	taken += count;
}

static int initialize_end(void)
{
	OK(rocprofiler_create_context(&contexts[0]));
	OK(rocprofiler_create_buffer(contexts[0], 4096, 1024, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     take_quietly, NULL, &buffers[0]));
	OK(rocprofiler_configure_callback_tracing_service(
		contexts[0], ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API, NULL, 0, end_from_within,
		NULL));
	OK(rocprofiler_configure_buffer_tracing_service(
		contexts[0], ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API, NULL, 0, buffers[0]));
	OK(rocprofiler_start_context(contexts[0]));
	return 0;
}

static void note_final(void)
{
	is_final = true;
}

static void the_end_from_within(void)
{
	scenario_finalize = note_final;
	scenario_tool(initialize_end);
	run_program();
	for (unsigned i = 0; i < 2000 && !is_final; i++) {
		const struct timespec pause = {0, 5000000};

		nanosleep(&pause, NULL);
	}
	CHECK(is_final);
}

/* A child of fork goes on with what it has of the tool. */
static void fork_in_a_function(rocprofiler_callback_tracing_record_t record,
			       rocprofiler_user_data_t *user_data, void *data)
{
	static _Atomic unsigned forks;
	pid_t child;
	int status = 0;

	(void)user_data;
	(void)data;
	heard++;
	if (record.phase != ROCPROFILER_CALLBACK_PHASE_ENTER || atomic_fetch_add(&forks, 1) >= 3)
		return;
	child = fork();
	if (child == 0) {
		alarm(SCENARIO_SECONDS / 2);
		for (unsigned i = 0; i < 20; i++)
			use(pick(9));
		_exit(0);
	}
	CHECK_EQUAL(waitpid(child, &status, 0), child);
	CHECK_EQUAL(status, 0);
}

static int initialize_fork(void)
{
	OK(rocprofiler_create_context(&contexts[0]));
	OK(rocprofiler_configure_callback_tracing_service(
		contexts[0], ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API, NULL, 0,
		fork_in_a_function, NULL));
	OK(rocprofiler_start_context(contexts[0]));
	return 0;
}

static void fork_within(void)
{
	scenario_tool(initialize_fork);
	for (unsigned i = 0; i < 20; i++)
		work_of_program();
	CHECK(heard > 20);
}

static void run_seeds(void (*body)(void), unsigned seeds)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	for (unsigned i = 0; i < seeds; i++) {
		/* The first is always the same. */
		uint64_t seed = i ? (uint64_t)now.tv_nsec + i : 1;

		atomic_store(&randomness, seed);
		print_message("seed %llu\n", (unsigned long long)seed);
		scenario(body);
	}
}

static void everything(void **state)
{
	(void)state;
	run_seeds(everything_everywhere, 3);
}

static void an_end_from_within(void **state)
{
	(void)state;
	run_seeds(the_end_from_within, 3);
}

static void forks(void **state)
{
	(void)state;
	/* It cannot start threads in a child of a process that had some, either. */
	if (!UNDER_TSAN)
		run_seeds(fork_within, 1);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything),
		cmocka_unit_test(an_end_from_within),
		cmocka_unit_test(forks),
	};

	if (count > 1)
		rounds = strtoull(arguments[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
