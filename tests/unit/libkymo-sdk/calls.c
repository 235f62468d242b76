/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Contexts and what they hear of calls: who hears of what, from when to when, with which ids.
 */
#include "scenario.h"

#include <pthread.h>

#include "libkymo-sdk/emit.h"

#define EVENTS_MAX 64
#define HIP        SDK_DOMAIN_HIP_RUNTIME
#define HIP_KIND   ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API

static struct {
	rocprofiler_callback_tracing_record_t record;
	uint64_t user_data;
	int context;
} events[EVENTS_MAX];
static int event_count;
static rocprofiler_context_id_t contexts[SDK_STARTED_CONTEXTS_MAX + 2];
static rocprofiler_buffer_id_t buffer;
static rocprofiler_buffer_tracing_hip_api_record_t records[EVENTS_MAX];
static int record_count;
static void (*at_enter)(void);

static void tell(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		 void *data)
{
	CHECK(event_count < EVENTS_MAX);
	events[event_count].record = record;
	events[event_count].context = (int)(intptr_t)data;
	if (record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) {
		CHECK_EQUAL(user_data->value, 0);
		user_data->value = 1000 + (uint64_t)event_count;
	}
	events[event_count++].user_data = user_data->value;
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
		CHECK_EQUAL((uintptr_t)headers[i]->payload % 8, 0);
		memcpy(&records[record_count++], headers[i]->payload, sizeof(records[0]));
	}
}

static int two_contexts(void)
{
	for (int i = 0; i < 2; i++) {
		OK(rocprofiler_create_context(&contexts[i]));
		OK(rocprofiler_configure_callback_tracing_service(contexts[i], HIP_KIND, NULL, 0,
								  tell, (void *)(intptr_t)i));
	}
	OK(rocprofiler_create_buffer(contexts[0], 4096, 4096, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     take, NULL, &buffer));
	OK(rocprofiler_configure_buffer_tracing_service(
		contexts[0], ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API, NULL, 0, buffer));
	return 0;
}

static bool call(int32_t operation, void (*within)(void))
{
	rocprofiler_callback_tracing_hip_api_data_t data = {.size = sizeof(data)};
	struct sdk_call_state one;
	bool told = sdk_call_enter(&one, HIP, operation, &data);

	if (within)
		within();
	if (told)
		sdk_call_exit(&one, &data);
	return told;
}

static void start(int number)
{
	OK(rocprofiler_start_context(contexts[number]));
}

static void stop(int number)
{
	OK(rocprofiler_stop_context(contexts[number]));
}

static void flush(void)
{
	OK(rocprofiler_flush_buffer(buffer));
}

/* ---- contexts ---- */

static void starting_and_stopping(void)
{
	rocprofiler_context_id_t none = {12345678901u};
	int value = 9;

	scenario_tool(two_contexts);
	OK(rocprofiler_context_is_valid(contexts[0], &value));
	CHECK_EQUAL(value, 1);
	OK(rocprofiler_context_is_active(contexts[0], &value));
	CHECK_EQUAL(value, 0);
	REFUSED(rocprofiler_stop_context(contexts[0]), CONTEXT_NOT_FOUND);
	start(0);
	start(0); /* again: nothing */
	OK(rocprofiler_context_is_active(contexts[0], &value));
	CHECK_EQUAL(value, 1);
	stop(0);
	REFUSED(rocprofiler_stop_context(contexts[0]), CONTEXT_NOT_FOUND);
	value = 9;
	REFUSED(rocprofiler_context_is_active(none, &value), CONTEXT_NOT_FOUND);
	CHECK_EQUAL(value, 0);
	value = 9;
	REFUSED(rocprofiler_context_is_valid(none, &value), CONTEXT_NOT_FOUND);
	CHECK_EQUAL(value, 0);
	REFUSED(rocprofiler_start_context(none), CONTEXT_NOT_FOUND);
	REFUSED(rocprofiler_start_context((rocprofiler_context_id_t){0}), CONTEXT_NOT_FOUND);
	REFUSED(rocprofiler_stop_context(none), CONTEXT_NOT_FOUND);
}

static int many_contexts(void)
{
	for (int i = 0; i < SDK_STARTED_CONTEXTS_MAX + 2; i++) {
		OK(rocprofiler_create_context(&contexts[i]));
		OK(rocprofiler_configure_callback_tracing_service(contexts[i], HIP_KIND, NULL, 0,
								  tell, (void *)(intptr_t)i));
	}
	return 0;
}

static void as_many_as_there_are_places(void)
{
	scenario_tool(many_contexts);
	for (int i = 1; i <= SDK_STARTED_CONTEXTS_MAX; i++)
		start(i);
	REFUSED(rocprofiler_start_context(contexts[0]), CONTEXT_NOT_STARTED);
	start(SDK_STARTED_CONTEXTS_MAX);
	for (int i = 3; i <= SDK_STARTED_CONTEXTS_MAX; i++)
		stop(i);
	CHECK(call(1, NULL));
	CHECK_EQUAL(event_count, 4);
	start(SDK_STARTED_CONTEXTS_MAX);
	CHECK(call(1, NULL));
	CHECK_EQUAL(event_count, 10);
}

/* ---- calls ---- */

static void nobody_no_call(void)
{
	scenario_tool(two_contexts);
	CHECK(!sdk_is_domain_wanted(HIP));
	CHECK(!call(1, NULL));
	start(0);
	CHECK(sdk_is_domain_wanted(HIP));
	CHECK(call(1, NULL));
	stop(0);
	CHECK(!call(1, NULL));
	CHECK_EQUAL(event_count, 2);
	flush();
	CHECK_EQUAL(record_count, 1);
}

static void stop_first(void)
{
	stop(0);
}

static void start_second(void)
{
	start(1);
}

/* What is active when a call begins hears of its end, and nobody else. */
static void contexts_are_settled_at_the_entry(void)
{
	scenario_tool(two_contexts);
	start(0);
	CHECK(call(1, stop_first));
	CHECK_EQUAL(event_count, 2);
	flush();
	CHECK_EQUAL(record_count, 1);
	start(0);
	CHECK(call(2, start_second));
	CHECK_EQUAL(event_count, 4);
	CHECK_EQUAL(events[3].context, 0);
	CHECK(call(3, NULL));
	CHECK_EQUAL(event_count, 8);
}

static void each_context_has_its_user_data(void)
{
	scenario_tool(two_contexts);
	start(0);
	start(1);
	CHECK(call(4, NULL));
	CHECK_EQUAL(event_count, 4);
	CHECK_EQUAL(events[0].record.phase, ROCPROFILER_CALLBACK_PHASE_ENTER);
	CHECK_EQUAL(events[1].record.phase, ROCPROFILER_CALLBACK_PHASE_ENTER);
	CHECK_EQUAL(events[0].user_data, 1000);
	CHECK_EQUAL(events[1].user_data, 1001);
	for (int i = 0; i < 2; i++) {
		CHECK_EQUAL(events[2 + i].user_data, events[i].user_data);
		CHECK_EQUAL(events[i].record.context_id.handle, contexts[i].handle);
		CHECK_EQUAL(events[i].record.correlation_id.internal,
			    events[0].record.correlation_id.internal);
	}
}

static void call_inner(void)
{
	CHECK(call(6, NULL));
}

static void nested_calls_know_their_ancestor(void)
{
	scenario_tool(two_contexts);
	start(0);
	CHECK(call(5, call_inner));
	CHECK_EQUAL(event_count, 4);
	CHECK_EQUAL(events[0].record.correlation_id.internal, 1);
	CHECK_EQUAL(events[0].record.correlation_id.ancestor, 0);
	CHECK_EQUAL(events[1].record.correlation_id.ancestor,
		    events[0].record.correlation_id.internal);
	CHECK(events[1].record.correlation_id.internal != events[0].record.correlation_id.internal);
	CHECK(call(5, NULL));
	CHECK_EQUAL(events[4].record.correlation_id.ancestor, 0);
	flush();
	CHECK_EQUAL(record_count, 3);
	CHECK_EQUAL(records[0].operation, 6); /* ends first */
	CHECK_EQUAL(records[0].correlation_id.ancestor, records[1].correlation_id.internal);
	CHECK(records[1].start_timestamp <= records[0].start_timestamp);
	CHECK(records[0].end_timestamp <= records[1].end_timestamp);
}

static void call_from_tool(void)
{
	at_enter = NULL;
	CHECK(!call(8, NULL));
}

/* Else a tool that uses what it traces would never come to an end. */
static void what_tools_call_is_not_told(void)
{
	scenario_tool(two_contexts);
	start(0);
	at_enter = call_from_tool;
	CHECK(call(7, NULL));
	CHECK_EQUAL(event_count, 2);
}

static int some_operations(void)
{
	static const rocprofiler_tracing_operation_t few[] = {3, 400};
	static const rocprofiler_tracing_operation_t wrong[] = {3, 1000000};
	static const rocprofiler_tracing_operation_t negative[] = {-1};

	OK(rocprofiler_create_context(&contexts[0]));
	REFUSED(rocprofiler_configure_callback_tracing_service(contexts[0], HIP_KIND, wrong, 2,
							       tell, NULL),
		OPERATION_NOT_FOUND);
	REFUSED(rocprofiler_configure_callback_tracing_service(contexts[0], HIP_KIND, negative, 1,
							       tell, NULL),
		OPERATION_NOT_FOUND);
	OK(rocprofiler_configure_callback_tracing_service(contexts[0], HIP_KIND, few, 2, tell,
							  NULL));
	REFUSED(rocprofiler_configure_callback_tracing_service(contexts[0], HIP_KIND, NULL, 0, tell,
							       NULL),
		SERVICE_ALREADY_CONFIGURED);
	OK(rocprofiler_start_context(contexts[0]));
	return 0;
}

static void only_the_operations_asked_for(void)
{
	scenario_tool(some_operations);
	for (int32_t i = 0; i < 450; i++)
		CHECK_EQUAL(call(i, NULL), i == 3 || i == 400);
	CHECK(!call(-1, NULL));
	CHECK(!call(100000, NULL));
	CHECK_EQUAL(event_count, 4);
}

static int all_kinds(void)
{
	OK(rocprofiler_create_context(&contexts[0]));
	OK(rocprofiler_create_buffer(contexts[0], 4096, 4096, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     take, NULL, &buffer));
	for (int kind = 1; kind < ROCPROFILER_CALLBACK_TRACING_LAST; kind++)
		OK(rocprofiler_configure_callback_tracing_service(
			contexts[0], (rocprofiler_callback_tracing_kind_t)kind, NULL, 0, tell,
			NULL));
	for (int kind = 1; kind < ROCPROFILER_BUFFER_TRACING_LAST; kind++) {
		OK(rocprofiler_configure_buffer_tracing_service(
			contexts[0], (rocprofiler_buffer_tracing_kind_t)kind, NULL, 0, buffer));
		REFUSED(rocprofiler_configure_buffer_tracing_service(
				contexts[0], (rocprofiler_buffer_tracing_kind_t)kind, NULL, 0,
				buffer),
			SERVICE_ALREADY_CONFIGURED);
	}
	OK(rocprofiler_start_context(contexts[0]));
	return 0;
}

/* Tools configure all kinds in a loop, whatever the machine has. */
static void all_kinds_are_accepted(void)
{
	scenario_tool(all_kinds);
	CHECK(call(1, NULL));
}

static rocprofiler_buffer_tracing_hip_api_ext_record_t ext;
static int ext_count;

static void take_ext(rocprofiler_context_id_t of, rocprofiler_buffer_id_t from,
		     rocprofiler_record_header_t **headers, size_t count, void *data,
		     uint64_t dropped)
{
	(void)of;
	(void)from;
	(void)data;
	(void)dropped;
	CHECK_EQUAL(count, 1);
	CHECK_EQUAL(headers[0]->kind, ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT);
	memcpy(&ext, headers[0]->payload, sizeof(ext));
	ext_count++;
}

static int with_arguments(void)
{
	OK(rocprofiler_create_context(&contexts[0]));
	OK(rocprofiler_create_buffer(contexts[0], 4096, 4096, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     take_ext, NULL, &buffer));
	OK(rocprofiler_configure_buffer_tracing_service(
		contexts[0], ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, NULL, 0, buffer));
	OK(rocprofiler_start_context(contexts[0]));
	return 0;
}

static void arguments_are_in_the_extended_record(void)
{
	rocprofiler_callback_tracing_hip_api_data_t data = {.size = sizeof(data)};
	struct sdk_call_state one;

	scenario_tool(with_arguments);
	memset(&data.args, 0x5a, sizeof(data.args));
	CHECK(sdk_call_enter(&one, HIP, 9, &data));
	memset(&data.retval, 0x33, sizeof(data.retval));
	sdk_call_exit(&one, &data);
	flush();
	CHECK_EQUAL(ext_count, 1);
	CHECK_EQUAL(ext.size, sizeof(ext));
	CHECK_EQUAL(ext.operation, 9);
	CHECK(!memcmp(&ext.args, &data.args, sizeof(data.args)));
	CHECK(!memcmp(&ext.retval, &data.retval, sizeof(data.retval)));
}

/* ---- external ids ---- */

static uint64_t external_of(int event)
{
	return events[event].record.correlation_id.external.value;
}

static void push(int context, uint64_t tid, uint64_t value)
{
	OK(rocprofiler_push_external_correlation_id(contexts[context], tid,
						    (rocprofiler_user_data_t){.value = value}));
}

static uint64_t pop(int context, uint64_t tid)
{
	rocprofiler_user_data_t value = {.value = 99};

	OK(rocprofiler_pop_external_correlation_id(contexts[context], tid, &value));
	return value.value;
}

static void *call_elsewhere(void *data)
{
	if (data)
		push(0, (uint64_t)gettid(), *(uint64_t *)data);
	CHECK(call(1, NULL));
	return NULL;
}

static void in_thread(uint64_t *push_value)
{
	pthread_t thread;

	event_count = 0;
	CHECK_EQUAL(pthread_create(&thread, NULL, call_elsewhere, push_value), 0);
	pthread_join(thread, NULL);
}

static void ids_are_stacks_of_context_and_thread(void)
{
	uint64_t tid = (uint64_t)gettid(), other = 77;

	scenario_tool(two_contexts);
	start(0);
	start(1);
	CHECK_EQUAL(pop(0, tid), 0); /* empty: fine, and 0 */
	push(0, tid, 5);
	push(0, tid, 6);
	push(1, tid, 7);
	CHECK(call(1, NULL));
	CHECK_EQUAL(external_of(0), 6);
	CHECK_EQUAL(external_of(1), 7);
	CHECK_EQUAL(external_of(2), 6);
	in_thread(NULL); /* has none of its own: the main thread's */
	CHECK_EQUAL(external_of(0), 6);
	CHECK_EQUAL(external_of(1), 7);
	in_thread(&other);
	CHECK_EQUAL(external_of(0), 77);
	CHECK_EQUAL(external_of(1), 7);
	CHECK_EQUAL(pop(0, tid), 6);
	CHECK_EQUAL(pop(0, tid), 5);
	CHECK_EQUAL(pop(0, tid), 0);
	OK(rocprofiler_pop_external_correlation_id(contexts[1], tid, NULL));
	event_count = 0;
	CHECK(call(1, NULL));
	CHECK_EQUAL(external_of(0), 0);
	CHECK_EQUAL(external_of(1), 0);
	for (uint64_t i = 1; i <= 1000; i++)
		push(0, tid, i);
	for (uint64_t i = 1000; i; i--)
		CHECK_EQUAL(pop(0, tid), i);
}

static void push_at_enter(void)
{
	push(0, (uint64_t)gettid(), 31);
	at_enter = NULL;
}

static void a_push_in_enter_shows_in_exit(void)
{
	scenario_tool(two_contexts);
	start(0);
	at_enter = push_at_enter;
	CHECK(call(1, NULL));
	CHECK_EQUAL(external_of(0), 0);
	CHECK_EQUAL(external_of(1), 31);
	flush();
	CHECK_EQUAL(records[0].correlation_id.external.value, 31);
}

static int requests, request_answer;

static int request(rocprofiler_thread_id_t tid, rocprofiler_context_id_t context,
		   rocprofiler_external_correlation_id_request_kind_t kind,
		   rocprofiler_tracing_operation_t operation, uint64_t internal,
		   rocprofiler_user_data_t *external, void *data)
{
	CHECK_EQUAL(tid, gettid());
	CHECK_EQUAL(context.handle, contexts[0].handle);
	CHECK_EQUAL(kind, ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HIP_RUNTIME_API);
	CHECK_EQUAL(operation, 2);
	CHECK(internal > 0);
	CHECK(data == &requests);
	external->value = 4000 + internal;
	requests++;
	return request_answer;
}

static void ids_may_be_asked_for(void)
{
	rocprofiler_external_correlation_id_request_kind_t kinds[] = {
		ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HIP_RUNTIME_API,
		ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_LAST};

	scenario_tool(two_contexts);
	REFUSED(rocprofiler_configure_external_correlation_id_request_service(
			(rocprofiler_context_id_t){5}, NULL, 0, request, NULL),
		CONTEXT_NOT_FOUND);
	REFUSED(rocprofiler_configure_external_correlation_id_request_service(contexts[0], kinds, 0,
									      request, NULL),
		INVALID_ARGUMENT);
	REFUSED(rocprofiler_configure_external_correlation_id_request_service(contexts[0], kinds, 2,
									      request, NULL),
		KIND_NOT_FOUND);
	REFUSED(rocprofiler_configure_external_correlation_id_request_service(contexts[0], kinds, 1,
									      NULL, NULL),
		INVALID_ARGUMENT);
	OK(rocprofiler_configure_external_correlation_id_request_service(contexts[0], kinds, 1,
									 request, &requests));
	REFUSED(rocprofiler_configure_external_correlation_id_request_service(contexts[0], NULL, 0,
									      request, NULL),
		SERVICE_ALREADY_CONFIGURED);
	start(0);
	push(0, (uint64_t)gettid(), 8);
	CHECK(call(2, NULL));
	CHECK_EQUAL(requests, 1); /* callback and record share the answer */
	CHECK_EQUAL(external_of(0), 4000 + events[0].record.correlation_id.internal);
	CHECK_EQUAL(external_of(1), external_of(0));
	request_answer = 1; /* no answer: what was pushed */
	event_count = 0;
	CHECK(call(2, NULL));
	CHECK_EQUAL(external_of(0), 8);
}

static void ids_are_refused(void)
{
	rocprofiler_user_data_t value = {.value = 1};

	scenario_tool(two_contexts);
	REFUSED(rocprofiler_push_external_correlation_id((rocprofiler_context_id_t){3},
							 (uint64_t)gettid(), value),
		CONTEXT_NOT_FOUND);
	REFUSED(rocprofiler_push_external_correlation_id(contexts[0], (uint64_t)getpid() - 1,
							 value),
		INVALID_ARGUMENT);
	REFUSED(rocprofiler_pop_external_correlation_id((rocprofiler_context_id_t){3},
							(uint64_t)gettid(), &value),
		CONTEXT_NOT_FOUND);
	REFUSED(rocprofiler_pop_external_correlation_id(contexts[0], 0, &value), INVALID_ARGUMENT);
}

static void times_are_boot_times(void)
{
	rocprofiler_timestamp_t first, then;
	struct timespec real;
	int64_t off;

	scenario_tool(two_contexts);
	start(0);
	OK(rocprofiler_get_timestamp(&first));
	for (int i = 0; i < 20; i++) {
		for (int j = 0; j < 200000; j++) {
			OK(rocprofiler_get_timestamp(&then));
			CHECK(then >= first);
			first = then;
		}
		clock_gettime(CLOCK_BOOTTIME, &real);
		off = (int64_t)(then -
				((uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec));
		CHECK(off < 100000);
	}
	OK(rocprofiler_get_timestamp(&first));
	CHECK(call(1, NULL));
	OK(rocprofiler_get_timestamp(&then));
	flush();
	CHECK(first <= records[0].start_timestamp);
	CHECK(records[0].start_timestamp <= records[0].end_timestamp);
	CHECK(records[0].end_timestamp <= then);
}

#define TESTS(TEST)                                                                                \
	TEST(starting_and_stopping)                                                                \
	TEST(as_many_as_there_are_places)                                                          \
	TEST(nobody_no_call)                                                                       \
	TEST(contexts_are_settled_at_the_entry)                                                    \
	TEST(each_context_has_its_user_data)                                                       \
	TEST(nested_calls_know_their_ancestor)                                                     \
	TEST(what_tools_call_is_not_told)                                                          \
	TEST(only_the_operations_asked_for)                                                        \
	TEST(all_kinds_are_accepted)                                                               \
	TEST(arguments_are_in_the_extended_record)                                                 \
	TEST(ids_are_stacks_of_context_and_thread)                                                 \
	TEST(a_push_in_enter_shows_in_exit)                                                        \
	TEST(ids_may_be_asked_for)                                                                 \
	TEST(ids_are_refused)                                                                      \
	TEST(times_are_boot_times)

TESTS(SCENARIO)

#define ENTRY(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ENTRY)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
