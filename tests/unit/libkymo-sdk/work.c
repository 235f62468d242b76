/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Work in flight: phases of kernels and copies, who hears of them when contexts come and go, and
 * when correlation ids are retired.
 */
#include "scenario.h"

#include <pthread.h>

#include "common/array.h"
#include "core/base/ticks.h"
#include "libkymo-sdk/emit.h"

#define EVENTS_MAX 64
#define DISPATCH   ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH
#define COPY       ROCPROFILER_CALLBACK_TRACING_MEMORY_COPY

static struct {
	rocprofiler_callback_tracing_record_t record;
	rocprofiler_callback_tracing_kernel_dispatch_data_t dispatch;
	rocprofiler_callback_tracing_memory_copy_data_t copy;
	rocprofiler_callback_tracing_memory_allocation_data_t allocation;
	uint64_t user_data;
} events[EVENTS_MAX];
static int event_count;
static rocprofiler_context_id_t context, other;
static rocprofiler_buffer_id_t buffer;

static union {
	struct {
		uint64_t size;
		rocprofiler_buffer_tracing_kind_t kind;
	} any;
	rocprofiler_buffer_tracing_kernel_dispatch_record_t dispatch;
	rocprofiler_buffer_tracing_memory_copy_record_t copy;
	rocprofiler_buffer_tracing_memory_allocation_record_t allocation;
	rocprofiler_buffer_tracing_correlation_id_retirement_record_t retirement;
	rocprofiler_buffer_tracing_hip_api_record_t call;
	rocprofiler_buffer_tracing_runtime_initialization_record_t runtime;
} records[EVENTS_MAX];
static int record_count;
static void (*at_enter)(void);

static void tell(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		 void *data)
{
	(void)data;
	CHECK(event_count < EVENTS_MAX);
	events[event_count].record = record;
	if (record.kind == DISPATCH)
		memcpy(&events[event_count].dispatch, record.payload, sizeof(events[0].dispatch));
	if (record.kind == COPY)
		memcpy(&events[event_count].copy, record.payload, sizeof(events[0].copy));
	if (record.kind == ROCPROFILER_CALLBACK_TRACING_MEMORY_ALLOCATION)
		memcpy(&events[event_count].allocation, record.payload,
		       sizeof(events[0].allocation));
	events[event_count].user_data = user_data->value;
	user_data->value += 10;
	event_count++;
	if (at_enter && record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER)
		at_enter();
}

static void take(rocprofiler_context_id_t of, rocprofiler_buffer_id_t from,
		 rocprofiler_record_header_t **headers, size_t count, void *data, uint64_t dropped)
{
	(void)of;
	(void)from;
	(void)data;
	CHECK_EQUAL(dropped, 0);
	for (size_t i = 0; i < count; i++) {
		uint64_t size = *(uint64_t *)headers[i]->payload;

		CHECK(size <= sizeof(records[0]));
		CHECK(record_count < EVENTS_MAX);
		memcpy(&records[record_count], headers[i]->payload, size);
		CHECK_EQUAL(records[record_count].any.kind, headers[i]->kind);
		record_count++;
	}
}

static void configure_all(rocprofiler_context_id_t *id)
{
	static const rocprofiler_callback_tracing_kind_t callbacks[] = {
		DISPATCH, COPY, ROCPROFILER_CALLBACK_TRACING_MEMORY_ALLOCATION,
		ROCPROFILER_CALLBACK_TRACING_RUNTIME_INITIALIZATION};
	static const rocprofiler_buffer_tracing_kind_t buffers[] = {
		ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH,
		ROCPROFILER_BUFFER_TRACING_MEMORY_COPY,
		ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION,
		ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT,
		ROCPROFILER_BUFFER_TRACING_RUNTIME_INITIALIZATION,
		ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API};

	OK(rocprofiler_create_context(id));
	for (unsigned i = 0; i < ARRAY_SIZE(callbacks); i++)
		OK(rocprofiler_configure_callback_tracing_service(*id, callbacks[i], NULL, 0, tell,
								  NULL));
	if (id != &context)
		return;
	OK(rocprofiler_create_buffer(*id, 1 << 16, 1 << 16, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     take, NULL, &buffer));
	for (unsigned i = 0; i < ARRAY_SIZE(buffers); i++)
		OK(rocprofiler_configure_buffer_tracing_service(*id, buffers[i], NULL, 0, buffer));
}

static int initialize(void)
{
	configure_all(&context);
	configure_all(&other);
	OK(rocprofiler_start_context(context));
	return 0;
}

static rocprofiler_kernel_dispatch_info_t a_kernel(void)
{
	return (rocprofiler_kernel_dispatch_info_t){
		.agent_id = {11},
		.queue_id = {12},
		.kernel_id = 13,
		.workgroup_size = {64, 1, 1},
		.grid_size = {4096, 2, 1},
	};
}

static void flush(void)
{
	OK(rocprofiler_flush_buffer(buffer));
}

static void phases_of_a_kernel(void)
{
	rocprofiler_kernel_dispatch_info_t info = a_kernel();
	uint64_t now;
	struct sdk_device_work *work;

	scenario_tool(initialize);
	work = sdk_dispatch_report_enqueue(&info);
	CHECK(work != NULL);
	CHECK_EQUAL(info.dispatch_id, 1);
	now = sdk_clock_read_now_ns();
	CHECK_EQUAL(sdk_work_get_in_flight_count(), 1);
	sdk_dispatch_report_submitted(work, false);
	sdk_dispatch_report_complete(work, NULL, now + 5, now + 9);
	CHECK_EQUAL(sdk_work_get_in_flight_count(), 0);
	CHECK_EQUAL(event_count, 3);
	CHECK_EQUAL(events[0].record.operation, ROCPROFILER_KERNEL_DISPATCH_ENQUEUE);
	CHECK_EQUAL(events[0].record.phase, ROCPROFILER_CALLBACK_PHASE_ENTER);
	CHECK_EQUAL(events[1].record.phase, ROCPROFILER_CALLBACK_PHASE_EXIT);
	CHECK_EQUAL(events[2].record.operation, ROCPROFILER_KERNEL_DISPATCH_COMPLETE);
	CHECK_EQUAL(events[2].record.phase, ROCPROFILER_CALLBACK_PHASE_NONE);
	CHECK_EQUAL(events[0].dispatch.size, sizeof(events[0].dispatch));
	CHECK_EQUAL(events[0].dispatch.dispatch_info.size, 72);
	CHECK_EQUAL(events[2].dispatch.dispatch_info.grid_size.y, 2);
	CHECK_EQUAL(events[2].dispatch.start_timestamp, now + 5);
	CHECK_EQUAL(events[0].user_data, 0);
	CHECK_EQUAL(events[1].user_data, 10);
	CHECK_EQUAL(events[2].user_data, 20);
	flush();
	CHECK_EQUAL(record_count, 2); /* and the id, which no call had, is retired behind it */
	CHECK_EQUAL(records[0].any.kind, ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH);
	CHECK_EQUAL(records[0].dispatch.operation, ROCPROFILER_KERNEL_DISPATCH_COMPLETE);
	CHECK_EQUAL(records[0].dispatch.end_timestamp, now + 9);
	CHECK_EQUAL(records[0].dispatch.thread_id, gettid());
	CHECK_EQUAL(records[0].dispatch.dispatch_info.kernel_id, 13);
	CHECK_EQUAL(records[1].retirement.internal_correlation_id,
		    records[0].dispatch.correlation_id.internal);
}

static void *complete_elsewhere(void *work)
{
	sdk_dispatch_report_complete(work, NULL, 1, 2);
	return NULL;
}

/* Fast kernels are over before the call that starts them is. */
static void completion_waits_for_the_submission(void)
{
	rocprofiler_kernel_dispatch_info_t info = a_kernel();
	struct sdk_device_work *work;
	pthread_t thread;

	scenario_tool(initialize);
	work = sdk_dispatch_report_enqueue(&info);
	CHECK_EQUAL(pthread_create(&thread, NULL, complete_elsewhere, work), 0);
	pthread_join(thread, NULL);
	CHECK_EQUAL(event_count, 1);
	sdk_dispatch_report_submitted(work, false);
	CHECK_EQUAL(event_count, 3);
	CHECK_EQUAL(events[1].record.phase, ROCPROFILER_CALLBACK_PHASE_EXIT);
	CHECK_EQUAL(events[2].record.operation, ROCPROFILER_KERNEL_DISPATCH_COMPLETE);
	/* Not before it was enqueued, whatever the device's clock says. */
	CHECK(events[2].dispatch.start_timestamp > 2);
	CHECK(events[2].dispatch.end_timestamp >= events[2].dispatch.start_timestamp);
}

static void a_kernel_that_is_not_taken(void)
{
	rocprofiler_kernel_dispatch_info_t info = a_kernel();

	scenario_tool(initialize);
	sdk_dispatch_report_submitted(sdk_dispatch_report_enqueue(&info), true);
	CHECK_EQUAL(event_count, 2);
	CHECK_EQUAL(sdk_work_get_in_flight_count(), 0);
	flush();
	CHECK_EQUAL(record_count, 1);
	CHECK_EQUAL(records[0].any.kind, ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT);
}

static void stop_and_start_other(void)
{
	at_enter = NULL;
	OK(rocprofiler_start_context(other));
	OK(rocprofiler_push_external_correlation_id(context, (uint64_t)gettid(),
						    (rocprofiler_user_data_t){.value = 55}));
}

/* A context that a tool starts within ENTER hears of the completion; one that is stopped before it
 * still does. */
static void contexts_of_a_kernel(void)
{
	rocprofiler_kernel_dispatch_info_t info = a_kernel();
	struct sdk_device_work *work;

	scenario_tool(initialize);
	at_enter = stop_and_start_other;
	work = sdk_dispatch_report_enqueue(&info);
	sdk_dispatch_report_submitted(work, false);
	CHECK_EQUAL(event_count, 2);
	OK(rocprofiler_stop_context(context));
	OK(rocprofiler_stop_context(other));
	sdk_dispatch_report_complete(work, NULL, 0, 0);
	CHECK_EQUAL(event_count, 4);
	CHECK_EQUAL(events[2].record.context_id.handle, context.handle);
	CHECK_EQUAL(events[2].record.correlation_id.external.value, 55);
	CHECK_EQUAL(events[3].record.context_id.handle, other.handle);
	CHECK_EQUAL(events[3].user_data, 0);
	CHECK_EQUAL(events[2].dispatch.start_timestamp, 0); /* not known stays not known */
	flush();
	CHECK_EQUAL(records[0].dispatch.correlation_id.external.value, 55);
	CHECK(!sdk_dispatch_report_enqueue(&info));
}

static void phases_of_a_copy(void)
{
	struct sdk_memory_copy_info copy = {
		ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE, {1}, {2}, 4096, 0x1000, 0x2000};
	struct sdk_memory_copy_info ran = copy;
	struct sdk_device_work *work;
	uint64_t now;

	scenario_tool(initialize);
	work = sdk_copy_report_begin(&copy);
	now = sdk_clock_read_now_ns();
	CHECK_EQUAL(event_count, 1);
	CHECK_EQUAL(events[0].copy.start_timestamp, 0);
	ran.bytes = 4000;
	sdk_copy_report_complete(work, &ran, now + 1, now + 3);
	CHECK_EQUAL(event_count, 2);
	CHECK_EQUAL(events[1].record.phase, ROCPROFILER_CALLBACK_PHASE_EXIT);
	CHECK_EQUAL(events[1].copy.bytes, 4000);
	CHECK_EQUAL(events[1].copy.dst_agent_id.handle, 2);
	CHECK_EQUAL(events[1].user_data, 10);
	flush();
	CHECK_EQUAL(records[0].copy.operation, ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE);
	CHECK_EQUAL(records[0].copy.src_address.value, 0x1000);
	CHECK_EQUAL(records[0].copy.size, sizeof(records[0].copy));
	sdk_work_cancel(sdk_copy_report_begin(&copy));
	CHECK_EQUAL(sdk_work_get_in_flight_count(), 0);
}

static void within_a_call(struct sdk_device_work **kernel, struct sdk_device_work **copy)
{
	struct sdk_memory_copy_info a_copy = {
		ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST, {1}, {2}, 1, 0, 0};
	rocprofiler_kernel_dispatch_info_t info = a_kernel();
	rocprofiler_callback_tracing_hip_api_data_t data = {.size = sizeof(data)};
	struct sdk_call_state call;

	CHECK(sdk_call_enter(&call, SDK_DOMAIN_HIP_RUNTIME, 1, &data));
	*kernel = sdk_dispatch_report_enqueue(&info);
	sdk_dispatch_report_submitted(*kernel, false);
	*copy = sdk_copy_report_begin(&a_copy);
	sdk_call_exit(&call, &data);
}

/* The id belongs to the call and all it started, and is retired behind the last of them. */
static void retirement_comes_last(void)
{
	struct sdk_device_work *kernel, *copy;
	uint64_t id;

	scenario_tool(initialize);
	within_a_call(&kernel, &copy);
	flush();
	CHECK_EQUAL(record_count, 1);
	id = records[0].call.correlation_id.internal;
	sdk_dispatch_report_complete(kernel, NULL, 1, 2);
	flush();
	CHECK_EQUAL(record_count, 2);
	CHECK_EQUAL(records[1].dispatch.correlation_id.internal, id);
	sdk_copy_report_complete(copy, NULL, 1, 2);
	flush();
	CHECK_EQUAL(record_count, 4);
	CHECK_EQUAL(records[2].copy.correlation_id.internal, id);
	CHECK_EQUAL(records[3].any.kind, ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT);
	CHECK_EQUAL(records[3].retirement.internal_correlation_id, id);
}

/* A launch of a graph: many kernels, one correlation id, each with a dispatch id of its own. */
static void several_kernels_of_one_launch(void)
{
	rocprofiler_kernel_dispatch_info_t info = a_kernel();
	struct sdk_device_work *first, *second;

	scenario_tool(initialize);
	first = sdk_dispatch_report_enqueue(&info);
	sdk_dispatch_report_submitted(first, false);
	second = sdk_work_duplicate(first);
	sdk_dispatch_report_complete(first, NULL, 1, 2);
	sdk_dispatch_report_complete(second, NULL, 1, 2);
	flush();
	CHECK_EQUAL(record_count, 3);
	CHECK_EQUAL(records[0].dispatch.dispatch_info.dispatch_id, 1);
	CHECK_EQUAL(records[1].dispatch.dispatch_info.dispatch_id, 2);
	CHECK_EQUAL(records[1].dispatch.correlation_id.internal,
		    records[0].dispatch.correlation_id.internal);
	CHECK_EQUAL(records[2].any.kind, ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT);
}

static void what_is_told_only_afterwards(void)
{
	struct sdk_memory_copy_info copy = {
		ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST, {1}, {2}, 1, 0, 0};
	rocprofiler_callback_tracing_hip_api_data_t data = {.size = sizeof(data)};
	rocprofiler_kernel_dispatch_info_t info = a_kernel();
	struct sdk_device_work *work;
	struct sdk_call_state call;

	scenario_tool(initialize);
	CHECK(sdk_call_enter(&call, SDK_DOMAIN_HIP_RUNTIME, 1, &data));
	work = sdk_work_create_for_call();
	sdk_call_exit(&call, &data);
	OK(rocprofiler_stop_context(context));
	sdk_work_report_dispatch_completion(work, &info, 0, 0);
	sdk_work_report_dispatch_completion(work, &info, 0, 0);
	sdk_work_report_copy(work, &copy, 0, 0);
	sdk_work_release(work);
	flush();
	CHECK_EQUAL(event_count, 4); /* two kernels, a copy's two phases */
	CHECK_EQUAL(record_count, 5);
	CHECK_EQUAL(records[1].dispatch.correlation_id.internal, call.id);
	CHECK_EQUAL(records[2].dispatch.dispatch_info.dispatch_id, 2);
	CHECK_EQUAL(records[3].copy.correlation_id.internal, call.id);
	CHECK_EQUAL(records[4].retirement.internal_correlation_id, call.id);
}

static void allocations_and_runtimes(void)
{
	scenario_tool(initialize);
	sdk_report_allocation(ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE, (rocprofiler_agent_id_t){4},
			      0xa000, 100, 5, 6);
	sdk_report_runtime_ready(ROCPROFILER_RUNTIME_INITIALIZATION_HIP, 70000, 3);
	CHECK_EQUAL(event_count, 3);
	CHECK_EQUAL(events[1].allocation.address.value, 0xa000);
	CHECK_EQUAL(events[1].allocation.end_timestamp, 6);
	CHECK_EQUAL(events[2].record.phase, ROCPROFILER_CALLBACK_PHASE_NONE);
	CHECK_EQUAL(events[2].record.correlation_id.internal, 0);
	flush();
	CHECK_EQUAL(record_count, 3);
	CHECK_EQUAL(records[0].allocation.size, sizeof(records[0].allocation));
	CHECK_EQUAL(records[0].allocation.allocation_size, 100);
	CHECK_EQUAL(records[1].any.kind, ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT);
	CHECK_EQUAL(records[2].runtime.version, 70000);
	CHECK_EQUAL(records[2].runtime.instance, 3);
}

static void waiting_for_work_ends(void)
{
	rocprofiler_kernel_dispatch_info_t info = a_kernel();
	uint64_t now = read_posix_clock_ns(CLOCK_MONOTONIC);

	scenario_tool(initialize);
	CHECK(sdk_work_wait_until_none_in_flight(now));
	sdk_dispatch_report_submitted(sdk_dispatch_report_enqueue(&info), false);
	CHECK(!sdk_work_wait_until_none_in_flight(now + 1000000));
	_exit(0); /* else the end of the tool waits for it, five seconds */
}

#define TESTS(TEST)                                                                                \
	TEST(phases_of_a_kernel)                                                                   \
	TEST(completion_waits_for_the_submission)                                                  \
	TEST(a_kernel_that_is_not_taken)                                                           \
	TEST(contexts_of_a_kernel)                                                                 \
	TEST(phases_of_a_copy)                                                                     \
	TEST(retirement_comes_last)                                                                \
	TEST(several_kernels_of_one_launch)                                                        \
	TEST(what_is_told_only_afterwards)                                                         \
	TEST(allocations_and_runtimes)                                                             \
	TEST(waiting_for_work_ends)

TESTS(SCENARIO)

#define ENTRY(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ENTRY)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
