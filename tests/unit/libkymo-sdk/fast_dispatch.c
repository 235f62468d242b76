/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Kernels that one context wants a record of, which have a short way of their own: the record is
 * the same, and whatever else somebody wants to know of a kernel leads around it.
 */
#include "scenario.h"

#include <pthread.h>
#include <sched.h>

#include "kymo/tools.h"
#include "libkymo-sdk/work.h"

#define RECORDS_MAX 16

static rocprofiler_context_id_t context, other;
static rocprofiler_buffer_id_t buffer;
static rocprofiler_buffer_tracing_kernel_dispatch_record_t records[RECORDS_MAX];
static int record_count;

static void take(rocprofiler_context_id_t of, rocprofiler_buffer_id_t from,
		 rocprofiler_record_header_t **headers, size_t count, void *data, uint64_t dropped)
{
	(void)of;
	(void)from;
	(void)data;
	CHECK_EQUAL(dropped, 0);
	for (size_t i = 0; i < count; i++) {
		if (headers[i]->kind != ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH)
			continue;
		CHECK(record_count < RECORDS_MAX);
		memcpy(&records[record_count++], headers[i]->payload, sizeof(records[0]));
	}
}

static void tell(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		 void *data)
{
	(void)record;
	(void)user_data;
	(void)data;
}

static int answer(rocprofiler_thread_id_t thread, rocprofiler_context_id_t of,
		  rocprofiler_external_correlation_id_request_kind_t kind,
		  rocprofiler_tracing_operation_t operation, uint64_t internal,
		  rocprofiler_user_data_t *external, void *data)
{
	(void)thread;
	(void)of;
	(void)kind;
	(void)operation;
	(void)internal;
	(void)data;
	external->value = 99;
	return 0;
}

static void wants_records(rocprofiler_context_id_t id, rocprofiler_buffer_tracing_kind_t kind)
{
	OK(rocprofiler_configure_buffer_tracing_service(id, kind, NULL, 0, buffer));
}

static int initialize(void)
{
	OK(rocprofiler_create_context(&context));
	OK(rocprofiler_create_context(&other));
	OK(rocprofiler_create_buffer(context, 1 << 16, 1 << 16, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     take, NULL, &buffer));
	wants_records(context, ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH);
	wants_records(context, ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API);
	OK(rocprofiler_start_context(context));
	return 0;
}

static rocprofiler_kernel_dispatch_info_t a_kernel(void)
{
	return (rocprofiler_kernel_dispatch_info_t){
		.agent_id = {11},
		.queue_id = {12},
		.kernel_id = 13,
		.private_segment_size = 14,
		.group_segment_size = 15,
		.workgroup_size = {64, 2, 1},
		.grid_size = {4096, 3, 4},
	};
}

static struct sdk_device_work *launch(void)
{
	rocprofiler_kernel_dispatch_info_t info = a_kernel();
	struct sdk_device_work *work = sdk_dispatch_report_enqueue(&info);

	CHECK(work != NULL);
	return work;
}

static void flush(void)
{
	OK(rocprofiler_flush_buffer(buffer));
}

static void a_record_has_everything(void)
{
	rocprofiler_callback_tracing_hip_api_data_t data = {.size = sizeof(data)};
	const rocprofiler_kernel_dispatch_info_t *info = &records[0].dispatch_info;
	rocprofiler_thread_id_t thread = (rocprofiler_thread_id_t)gettid();
	struct sdk_device_work *work;
	struct sdk_call_state call;
	uint64_t end;

	scenario_tool(initialize);
	OK(rocprofiler_push_external_correlation_id(context, thread,
						    (rocprofiler_user_data_t){.value = 77}));
	CHECK(sdk_call_enter(&call, SDK_DOMAIN_HIP_RUNTIME, 1, &data));
	work = launch();
	CHECK(sdk_work_to_fast_dispatch(work) != NULL);
	CHECK_EQUAL(sdk_work_get_in_flight_count(), 1);
	sdk_dispatch_report_submitted(work, false);
	sdk_call_exit(&call, &data);
	end = sdk_clock_read_now_ns() + 1000;
	sdk_dispatch_report_complete(work, NULL, 1, end);
	CHECK_EQUAL(sdk_work_get_in_flight_count(), 0);
	flush();
	CHECK_EQUAL(record_count, 1);
	CHECK_EQUAL(records[0].size, sizeof(records[0]));
	CHECK_EQUAL(records[0].operation, ROCPROFILER_KERNEL_DISPATCH_COMPLETE);
	CHECK_EQUAL(records[0].thread_id, thread);
	CHECK_EQUAL(records[0].correlation_id.internal, call.id);
	CHECK_EQUAL(records[0].correlation_id.external.value, 77);
	CHECK_EQUAL(records[0].start_timestamp, call.start); /* not before it was launched */
	CHECK_EQUAL(records[0].end_timestamp, end);
	CHECK_EQUAL(info->size, 72);
	CHECK_EQUAL(info->dispatch_id, 1);
	CHECK_EQUAL(info->agent_id.handle, 11);
	CHECK_EQUAL(info->queue_id.handle, 12);
	CHECK_EQUAL(info->kernel_id, 13);
	CHECK_EQUAL(info->private_segment_size, 14);
	CHECK_EQUAL(info->group_segment_size, 15);
	CHECK_EQUAL(info->workgroup_size.y, 2);
	CHECK_EQUAL(info->grid_size.x, 4096);
	CHECK_EQUAL(info->grid_size.z, 4);
}

static void what_is_known_at_the_end_counts(void)
{
	rocprofiler_kernel_dispatch_info_t ran = {.agent_id = {21}, .kernel_id = 23};
	struct sdk_device_work *first, *second;

	scenario_tool(initialize);
	first = launch();
	sdk_dispatch_report_submitted(first, false);
	second = launch();
	sdk_dispatch_report_submitted(second, false);
	sdk_dispatch_report_complete(second, &ran, 0, 0);
	sdk_dispatch_report_complete(first, NULL, 0, 0);
	flush();
	CHECK_EQUAL(record_count, 2);
	CHECK_EQUAL(records[0].dispatch_info.agent_id.handle, 21);
	CHECK_EQUAL(records[0].dispatch_info.kernel_id, 23);
	CHECK_EQUAL(records[0].dispatch_info.grid_size.x, 0);
	CHECK_EQUAL(records[0].dispatch_info.dispatch_id, 2);
	CHECK_EQUAL(records[1].dispatch_info.dispatch_id, 1);
	CHECK(records[0].correlation_id.internal != records[1].correlation_id.internal);
}

static void one_that_fails_is_not_told(void)
{
	scenario_tool(initialize);
	for (int i = 0; i < 1000; i++)
		sdk_dispatch_report_submitted(launch(), true);
	CHECK_EQUAL(sdk_work_get_in_flight_count(), 0);
	flush();
	CHECK_EQUAL(record_count, 0);
}

static void *complete_elsewhere(void *work)
{
	sdk_dispatch_report_complete(work, NULL, 0, 0);
	return NULL;
}

/* CUPTI may be faster than the function that launches. */
static void one_may_end_before_it_is_submitted(void)
{
	struct sdk_device_work *work;
	pthread_t thread;

	scenario_tool(initialize);
	work = launch();
	CHECK_EQUAL(pthread_create(&thread, NULL, complete_elsewhere, work), 0);
	CHECK_EQUAL(pthread_join(thread, NULL), 0);
	CHECK_EQUAL(sdk_work_get_in_flight_count(), 0);
	sdk_dispatch_report_submitted(work, false);
	CHECK(launch() != NULL); /* of what was given back elsewhere */
	flush();
	CHECK_EQUAL(record_count, 1);
	_exit(0); /* else the end of the tool waits for the one that does not end */
}

static void several_of_one_launch(void)
{
	struct sdk_device_work *first, *second;

	scenario_tool(initialize);
	first = launch();
	sdk_dispatch_report_submitted(first, false);
	second = sdk_work_duplicate(first);
	CHECK_EQUAL(sdk_work_get_in_flight_count(), 2);
	sdk_dispatch_report_complete(first, NULL, 0, 0);
	sdk_dispatch_report_complete(second, NULL, 0, 0);
	CHECK_EQUAL(sdk_work_get_in_flight_count(), 0);
	flush();
	CHECK_EQUAL(record_count, 2);
	CHECK_EQUAL(records[0].correlation_id.internal, records[1].correlation_id.internal);
	CHECK_EQUAL(records[1].dispatch_info.dispatch_id, 2);
	CHECK_EQUAL(records[1].dispatch_info.grid_size.x, 4096);
}

static void a_context_hears_of_what_it_saw_begin(void)
{
	struct sdk_device_work *work;

	scenario_tool(initialize);
	work = launch();
	sdk_dispatch_report_submitted(work, false);
	OK(rocprofiler_stop_context(context));
	sdk_dispatch_report_complete(work, NULL, 0, 0);
	flush();
	CHECK_EQUAL(record_count, 1);
}

/* ---- ids of launches ---- */

static int asked_count;
static pthread_t asked_thread;

static uint64_t number_launch(void *data)
{
	asked_thread = pthread_self();
	return *(uint64_t *)data + (uint64_t)++asked_count;
}

static uint64_t first_launch_id = 1000;

static int with_launch_ids(void)
{
	initialize();
	OK(kymo_configure_launch_id_service(context, number_launch, &first_launch_id));
	return 0;
}

static void a_launch_id_replaces_a_pushed_one(void)
{
	struct sdk_device_work *work;
	pthread_t thread;

	scenario_tool(with_launch_ids);
	OK(rocprofiler_push_external_correlation_id(context, (rocprofiler_thread_id_t)gettid(),
						    (rocprofiler_user_data_t){.value = 77}));
	work = launch();
	CHECK(sdk_work_to_fast_dispatch(work) != NULL);
	sdk_dispatch_report_submitted(work, false);
	CHECK_EQUAL(asked_count, 1);
	CHECK_EQUAL(pthread_create(&thread, NULL, complete_elsewhere, work), 0);
	CHECK_EQUAL(pthread_join(thread, NULL), 0);
	work = launch();
	sdk_dispatch_report_submitted(work, false);
	sdk_dispatch_report_complete(work, NULL, 0, 0);
	OK(kymo_configure_launch_id_service(context, NULL, NULL));
	work = launch();
	sdk_dispatch_report_submitted(work, false);
	sdk_dispatch_report_complete(work, NULL, 0, 0);
	flush();
	CHECK_EQUAL(record_count, 3);
	CHECK_EQUAL(asked_count, 2);
	CHECK(pthread_equal(asked_thread, pthread_self()));
	CHECK_EQUAL(records[0].correlation_id.external.value, 1001);
	CHECK_EQUAL(records[1].correlation_id.external.value, 1002);
	CHECK_EQUAL(records[2].correlation_id.external.value, 77);
}

/* A graph's kernels are known only when they have run. */
static void work_that_is_known_later_has_the_id_of_its_launch(void)
{
	rocprofiler_kernel_dispatch_info_t info = a_kernel();
	struct sdk_device_work *work;

	scenario_tool(with_launch_ids);
	work = sdk_work_create_for_call();
	CHECK(work != NULL);
	CHECK_EQUAL(asked_count, 1);
	sdk_work_report_dispatch_completion(work, &info, 1, 2);
	sdk_work_report_dispatch_completion(work, &info, 3, 4);
	sdk_work_release(work);
	flush();
	CHECK_EQUAL(record_count, 2);
	CHECK_EQUAL(asked_count, 1);
	CHECK_EQUAL(records[0].correlation_id.external.value, 1001);
	CHECK_EQUAL(records[1].correlation_id.external.value, 1001);
}

/* ---- many threads ---- */

#define LAUNCHERS 4
#define LAUNCHES  5000
#define IN_FLIGHT 64

static struct sdk_device_work *_Atomic in_flight[LAUNCHERS][IN_FLIGHT];
static _Atomic uint64_t plain_ones, launched, done_launchers, records_told;

static void count(rocprofiler_context_id_t of, rocprofiler_buffer_id_t from,
		  rocprofiler_record_header_t **headers, size_t number, void *data,
		  uint64_t dropped)
{
	(void)of;
	(void)from;
	(void)headers;
	(void)data;
	CHECK_EQUAL(dropped, 0);
	atomic_fetch_add(&records_told, number);
}

static int counting_records(void)
{
	OK(rocprofiler_create_context(&context));
	OK(rocprofiler_create_buffer(context, 1 << 20, 1 << 16, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     count, NULL, &buffer));
	wants_records(context, ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH);
	OK(rocprofiler_start_context(context));
	return 0;
}

static void *launch_many(void *places)
{
	struct sdk_device_work *_Atomic *mine = places;

	for (unsigned i = 0; i < LAUNCHES; i++) {
		rocprofiler_kernel_dispatch_info_t info = a_kernel();
		struct sdk_device_work *work = sdk_dispatch_report_enqueue(&info),
				       *free_place = NULL;

		if (work == NULL) /* the context is stopped just now */
			continue;
		atomic_fetch_add(&launched, 1);
		atomic_fetch_add(&plain_ones, sdk_work_to_fast_dispatch(work) != NULL);
		while (!atomic_compare_exchange_weak(&mine[i % IN_FLIGHT], &free_place, work)) {
			free_place = NULL;
			sched_yield();
		}
		sdk_dispatch_report_submitted(work, false);
	}
	atomic_fetch_add(&done_launchers, 1);
	return NULL;
}

static void *end_all(void *unused)
{
	bool is_last = false;

	while (!is_last) {
		is_last = atomic_load(&done_launchers) == LAUNCHERS;
		for (unsigned i = 0; i < LAUNCHERS * IN_FLIGHT; i++) {
			struct sdk_device_work *work =
				atomic_exchange(&in_flight[i / IN_FLIGHT][i % IN_FLIGHT], NULL);

			if (work != NULL)
				sdk_dispatch_report_complete(work, NULL, 0, 0);
		}
	}
	return unused;
}

static void launched_here_ended_there(void)
{
	pthread_t threads[LAUNCHERS], ends;

	scenario_tool(counting_records);
	for (unsigned i = 0; i < LAUNCHERS; i++)
		CHECK_EQUAL(pthread_create(&threads[i], NULL, launch_many, in_flight[i]), 0);
	CHECK_EQUAL(pthread_create(&ends, NULL, end_all, NULL), 0);
	while (atomic_load(&done_launchers) < LAUNCHERS) {
		OK(rocprofiler_stop_context(context));
		OK(rocprofiler_start_context(context));
		sched_yield();
	}
	for (unsigned i = 0; i < LAUNCHERS; i++)
		CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
	CHECK_EQUAL(pthread_join(ends, NULL), 0);
	CHECK_EQUAL(sdk_work_get_in_flight_count(), 0);
	flush();
	/* Where the context was stopped in the middle of a launch, that one went the long way, and
	 * perhaps nobody wanted it any more. */
	CHECK(atomic_load(&launched) > 0);
	CHECK(atomic_load(&plain_ones) > atomic_load(&launched) / 2);
	CHECK(atomic_load(&records_told) >= atomic_load(&plain_ones));
	CHECK(atomic_load(&records_told) <= atomic_load(&launched));
}

/* ---- what is not plain ---- */

static int with_another_context(void)
{
	initialize();
	wants_records(other, ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH);
	OK(rocprofiler_start_context(other));
	return 0;
}

static int with_callbacks(void)
{
	initialize();
	OK(rocprofiler_configure_callback_tracing_service(
		other, ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH, NULL, 0, tell, NULL));
	OK(rocprofiler_start_context(other));
	return 0;
}

static int with_retirement(void)
{
	initialize();
	wants_records(other, ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT);
	OK(rocprofiler_start_context(other));
	return 0;
}

static int with_requests(void)
{
	initialize();
	OK(rocprofiler_configure_external_correlation_id_request_service(context, NULL, 0, answer,
									 NULL));
	return 0;
}

static int with_launch_ids_and_callbacks(void)
{
	with_callbacks();
	OK(kymo_configure_launch_id_service(context, number_launch, &first_launch_id));
	return 0;
}

static void expect_not_plain(int (*tool)(void), int told, uint64_t external)
{
	struct sdk_device_work *work;

	scenario_tool(tool);
	work = launch();
	CHECK(sdk_work_to_fast_dispatch(work) == NULL);
	sdk_dispatch_report_submitted(work, false);
	sdk_dispatch_report_complete(work, NULL, 0, 0);
	flush();
	CHECK_EQUAL(record_count, told);
	CHECK_EQUAL(records[0].correlation_id.external.value, external);
}

static void two_contexts(void)
{
	expect_not_plain(with_another_context, 2, 0);
}

static void a_callback(void)
{
	expect_not_plain(with_callbacks, 1, 0);
}

static void retirement(void)
{
	expect_not_plain(with_retirement, 1, 0);
}

static void requests(void)
{
	expect_not_plain(with_requests, 1, 99);
}

static void a_launch_id_beside_callbacks(void)
{
	expect_not_plain(with_launch_ids_and_callbacks, 1, 1001);
}

static void a_launch_id_of_no_context(void)
{
	scenario_tool(initialize);
	CHECK_EQUAL(kymo_configure_launch_id_service((rocprofiler_context_id_t){12345},
						     number_launch, NULL),
		    ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND);
}

#define TESTS(TEST)                                                                                \
	TEST(a_record_has_everything)                                                              \
	TEST(what_is_known_at_the_end_counts)                                                      \
	TEST(one_that_fails_is_not_told)                                                           \
	TEST(one_may_end_before_it_is_submitted)                                                   \
	TEST(several_of_one_launch)                                                                \
	TEST(a_context_hears_of_what_it_saw_begin)                                                 \
	TEST(launched_here_ended_there)                                                            \
	TEST(two_contexts)                                                                         \
	TEST(a_callback)                                                                           \
	TEST(retirement)                                                                           \
	TEST(requests)                                                                             \
	TEST(a_launch_id_replaces_a_pushed_one)                                                    \
	TEST(work_that_is_known_later_has_the_id_of_its_launch)                                    \
	TEST(a_launch_id_beside_callbacks)                                                         \
	TEST(a_launch_id_of_no_context)

TESTS(SCENARIO)

#define ENTRY(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ENTRY)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
