/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A marker library that announces itself, and a tool that hears of its calls: by callbacks, and by
 * records in a buffer, from end to end.
 */
#include "scenario.h"

#include <pthread.h>
#include <rocprofiler-sdk-roctx/api_trace.h>

int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void),
					   uint32_t version, void **tables, uint64_t count,
					   uint64_t *identifier);

#define EVENTS_MAX 256

static struct event {
	rocprofiler_callback_tracing_record_t record;
	char message[32];
	int64_t returned;
	uint64_t user_data;
} events[EVENTS_MAX];
static int event_count;

static rocprofiler_buffer_tracing_marker_api_record_t records[EVENTS_MAX];
static _Atomic int record_count, callback_count;
static rocprofiler_buffer_id_t buffer;
static rocprofiler_context_id_t context;
static int finalized;

/* ---- a marker library ---- */

static int level;
static uint64_t last_range;
static const char *last_mark;

static void mark(const char *message)
{
	last_mark = message;
}

static int push(const char *message)
{
	(void)message;
	return level++;
}

static int pop(void)
{
	return level ? --level : -1;
}

static roctx_range_id_t start(const char *message)
{
	(void)message;
	return ++last_range;
}

static void stop(roctx_range_id_t id)
{
	(void)id;
}

static int thread_id(roctx_thread_id_t *tid)
{
	*tid = (roctx_thread_id_t)gettid();
	return 0;
}

static int pause_or_resume(roctx_thread_id_t tid)
{
	return (int)tid;
}

static int name_thread(const char *name)
{
	return (int)strlen(name);
}

static int name_agent(const char *name, const struct hsa_agent_s *agent)
{
	return agent ? (int)strlen(name) : -1;
}

static int name_device(const char *name, int device)
{
	return (int)strlen(name) + device;
}

static int name_stream(const char *name, const struct ihipStream_t *stream)
{
	return stream ? (int)strlen(name) : -2;
}

static roctxCoreApiTable_t core = {sizeof(core), mark, push, pop, start, stop, thread_id};
static roctxControlApiTable_t control = {sizeof(control), pause_or_resume, pause_or_resume};
static roctxNameApiTable_t name = {sizeof(name), name_thread, name_agent, name_device, name_stream};

static int announce(void)
{
	void *tables[] = {&core, &control, &name};
	uint64_t identifier = 0;

	return rocprofiler_register_library_api_table("roctx", NULL, 701, tables, 3, &identifier);
}

/* ---- a tool ---- */

static void tracing(rocprofiler_callback_tracing_record_t record,
		    rocprofiler_user_data_t *user_data, void *data)
{
	const rocprofiler_callback_tracing_marker_api_data_t *payload = record.payload;
	struct event *event = &events[event_count++];

	CHECK(data == &context);
	CHECK(event_count <= EVENTS_MAX);
	event->record = record;
	if (record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) {
		CHECK_EQUAL(user_data->value, 0);
		user_data->value = (uint64_t)event_count;
	}
	event->user_data = user_data->value;
	event->returned = payload->retval.int32_t_retval;
	if (record.kind == ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API &&
	    record.operation == ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA)
		snprintf(event->message, sizeof(event->message), "%s",
			 payload->args.roctxMarkA.message);
	if (record.kind == ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API)
		snprintf(event->message, sizeof(event->message), "%s",
			 payload->args.roctxThreadRangeA.message);
}

static void flushed(rocprofiler_context_id_t of, rocprofiler_buffer_id_t from,
		    rocprofiler_record_header_t **headers, size_t count, void *data,
		    uint64_t dropped)
{
	CHECK_EQUAL(of.handle, context.handle);
	CHECK_EQUAL(from.handle, buffer.handle);
	CHECK(data == records);
	CHECK_EQUAL(dropped, 0);
	CHECK(count > 0);
	callback_count++;
	for (size_t i = 0; i < count; i++) {
		CHECK_EQUAL(headers[i]->category, ROCPROFILER_BUFFER_CATEGORY_TRACING);
		CHECK_EQUAL(headers[i]->hash, rocprofiler_record_header_compute_hash(
						      headers[i]->category, headers[i]->kind));
		CHECK(record_count < EVENTS_MAX);
		memcpy(&records[record_count++], headers[i]->payload, sizeof(records[0]));
	}
}

static void finalize(void *data)
{
	CHECK(data == &finalized);
	finalized++;
	printf("finalized after %d records\n", record_count);
}

static const rocprofiler_callback_tracing_kind_t callback_kinds[] = {
	ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API,
	ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API,
	ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API,
	ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API,
};
static const rocprofiler_buffer_tracing_kind_t buffer_kinds[] = {
	ROCPROFILER_BUFFER_TRACING_MARKER_CORE_API,
	ROCPROFILER_BUFFER_TRACING_MARKER_CONTROL_API,
	ROCPROFILER_BUFFER_TRACING_MARKER_NAME_API,
	ROCPROFILER_BUFFER_TRACING_MARKER_CORE_RANGE_API,
};

static int initialize(rocprofiler_client_finalize_t finalizer, void *data)
{
	CHECK(finalizer != NULL);
	CHECK(data == &finalized);
	OK(rocprofiler_create_context(&context));
	OK(rocprofiler_create_buffer(context, 4096, 2048, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     flushed, records, &buffer));
	for (unsigned i = 0; i < 4; i++) {
		OK(rocprofiler_configure_callback_tracing_service(context, callback_kinds[i], NULL,
								  0, tracing, &context));
		OK(rocprofiler_configure_buffer_tracing_service(context, buffer_kinds[i], NULL, 0,
								buffer));
	}
	OK(rocprofiler_start_context(context));
	return 0;
}

static rocprofiler_tool_configure_result_t *
configure(uint32_t version, const char *text, uint32_t priority, rocprofiler_client_id_t *id)
{
	static rocprofiler_tool_configure_result_t result = {sizeof(result), initialize, finalize,
							     &finalized};

	CHECK_EQUAL(version, ROCPROFILER_VERSION);
	CHECK(!strcmp(text, ROCPROFILER_VERSION_STRING));
	CHECK_EQUAL(priority, 0);
	id->name = "markers";
	return &result;
}

/* ---- */

static void pair(int first, rocprofiler_callback_tracing_kind_t kind, int32_t operation)
{
	const struct event *enter = &events[first], *leave = &events[first + 1];

	CHECK(first + 1 < event_count);
	CHECK_EQUAL(enter->record.kind, kind);
	CHECK_EQUAL(enter->record.operation, operation);
	CHECK_EQUAL(enter->record.phase, ROCPROFILER_CALLBACK_PHASE_ENTER);
	CHECK_EQUAL(leave->record.kind, kind);
	CHECK_EQUAL(leave->record.operation, operation);
	CHECK_EQUAL(leave->record.phase, ROCPROFILER_CALLBACK_PHASE_EXIT);
	CHECK_EQUAL(enter->record.correlation_id.internal, leave->record.correlation_id.internal);
	CHECK(enter->record.correlation_id.internal != 0);
	CHECK_EQUAL(enter->record.thread_id, gettid());
	CHECK_EQUAL(leave->user_data, enter->user_data);
}

static void calls_are_told(void)
{
	roctx_thread_id_t tid = 0;

	OK(rocprofiler_force_configure(configure));
	CHECK_EQUAL(announce(), 0);
	core.roctxMarkA_fn("hello");
	CHECK(!strcmp(last_mark, "hello"));
	CHECK_EQUAL(event_count, 4); /* the call, and the mark as a range of no length in it */
	CHECK(!strcmp(events[0].message, "hello"));
	CHECK_EQUAL(events[1].record.correlation_id.ancestor,
		    events[0].record.correlation_id.internal);
	event_count = 0;
	CHECK_EQUAL(core.roctxGetThreadId_fn(&tid), 0);
	CHECK_EQUAL(tid, gettid());
	pair(0, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API,
	     ROCPROFILER_MARKER_CORE_API_ID_roctxGetThreadId);
	CHECK_EQUAL(control.roctxProfilerPause_fn(7), 7);
	pair(2, ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API,
	     ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerPause);
	CHECK_EQUAL(events[3].returned, 7);
	CHECK_EQUAL(control.roctxProfilerResume_fn(0), 0);
	pair(4, ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API,
	     ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerResume);
	CHECK_EQUAL(name.roctxNameOsThread_fn("four"), 4);
	CHECK_EQUAL(name.roctxNameHipDevice_fn("three", 1), 6);
	CHECK_EQUAL(name.roctxNameHsaAgent_fn("x", NULL), -1);
	CHECK_EQUAL(name.roctxNameHipStream_fn("x", NULL), -2);
	pair(6, ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API,
	     ROCPROFILER_MARKER_NAME_API_ID_roctxNameOsThread);
	pair(12, ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API,
	     ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipStream);
	OK(rocprofiler_flush_buffer(buffer));
	CHECK_EQUAL(record_count, 2 + 7);
	CHECK_EQUAL(records[0].kind, ROCPROFILER_BUFFER_TRACING_MARKER_CORE_RANGE_API);
	CHECK_EQUAL(records[1].kind, ROCPROFILER_BUFFER_TRACING_MARKER_CORE_API);
	CHECK_EQUAL(records[1].size, sizeof(records[0]));
	CHECK(records[1].start_timestamp <= records[0].start_timestamp);
	CHECK(records[0].end_timestamp <= records[1].end_timestamp);
	CHECK_EQUAL(records[1].thread_id, gettid());
}

static void *stop_elsewhere(void *data)
{
	core.roctxRangeStop_fn(*(roctx_range_id_t *)data);
	return NULL;
}

/* Of the ranges, only those as one event. */
static int ranges_only(struct event *found)
{
	int count = 0;

	for (int i = 0; i < event_count; i++) {
		if (events[i].record.kind == ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API)
			found[count++] = events[i];
	}
	return count;
}

static void ranges_are_one_event(void)
{
	char text[32] = "outer";
	struct event seen[EVENTS_MAX];
	roctx_range_id_t id;
	pthread_t thread;

	OK(rocprofiler_force_configure(configure));
	CHECK_EQUAL(announce(), 0);
	CHECK_EQUAL(core.roctxRangePushA_fn(text), 0);
	strcpy(text, "changed"); /* the program may reuse it */
	CHECK_EQUAL(core.roctxRangePushA_fn("inner"), 1);
	CHECK_EQUAL(core.roctxRangePop_fn(), 1);
	CHECK_EQUAL(core.roctxRangePop_fn(), 0);
	CHECK_EQUAL(core.roctxRangePop_fn(), -1);
	CHECK_EQUAL(ranges_only(seen), 4);
	CHECK(!strcmp(seen[0].message, "outer") && !strcmp(seen[1].message, "inner"));
	CHECK(!strcmp(seen[2].message, "inner") && !strcmp(seen[3].message, "outer"));
	CHECK_EQUAL(seen[0].record.correlation_id.internal, seen[3].record.correlation_id.internal);
	CHECK_EQUAL(seen[0].user_data, seen[3].user_data);
	CHECK_EQUAL(seen[3].record.phase, ROCPROFILER_CALLBACK_PHASE_EXIT);
	event_count = 0;
	id = core.roctxRangeStartA_fn("process");
	CHECK_EQUAL(pthread_create(&thread, NULL, stop_elsewhere, &id), 0);
	pthread_join(thread, NULL);
	CHECK_EQUAL(ranges_only(seen), 2);
	CHECK_EQUAL(seen[1].record.operation,
		    ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA);
	CHECK_EQUAL(seen[1].record.thread_id, gettid());
	CHECK(!strcmp(seen[1].message, "process"));
}

/* The watermark, and what is left at the end of the process. */
static void watermark_and_exit(void)
{
	OK(rocprofiler_force_configure(configure));
	CHECK_EQUAL(announce(), 0);
	for (int i = 0; i < 32; i++) { /* 64 bytes each */
		event_count = 0;
		CHECK_EQUAL(callback_count, 0);
		name.roctxNameOsThread_fn("x");
	}
	WAIT_FOR(record_count == 32);
	CHECK_EQUAL(callback_count, 1);
	event_count = 0;
	name.roctxNameOsThread_fn("y"); /* is handed over at exit */
}

/* The runtime was there long before the tool. */
static void a_runtime_before_the_tool(void)
{
	CHECK_EQUAL(announce(), 1); /* no tools */
	core.roctxMarkA_fn("unheard");
	CHECK_EQUAL(event_count, 0);
	OK(rocprofiler_force_configure(configure));
	core.roctxMarkA_fn("heard");
	CHECK_EQUAL(event_count, 4);
	CHECK(!strcmp(last_mark, "heard"));
	event_count = 0;
	CHECK_EQUAL(announce(), 0); /* a library that announces itself again is told once */
	core.roctxMarkA_fn("once");
	CHECK_EQUAL(event_count, 4);
}

static uint64_t other_range;
static const char *other_mark;

static void mark_of_other(const char *message)
{
	other_mark = message;
}

static roctx_range_id_t start_of_other(const char *message)
{
	(void)message;
	return ++other_range;
}

/* Another copy, as a framework brings one: both are told, each by its own functions, and ranges
 * with the same number are two. */
static void two_copies(void)
{
	roctxCoreApiTable_t other = {sizeof(other),  mark_of_other, push,     pop,
				     start_of_other, stop,          thread_id};
	roctxControlApiTable_t its_control = {sizeof(its_control), pause_or_resume,
					      pause_or_resume};
	roctxNameApiTable_t its_name = {sizeof(its_name), name_thread, name_agent, name_device,
					name_stream};
	void *tables[] = {&other, &its_control, &its_name};
	uint64_t identifier = 0, one, two;
	struct event seen[EVENTS_MAX];

	OK(rocprofiler_force_configure(configure));
	CHECK_EQUAL(announce(), 0);
	CHECK_EQUAL(
		rocprofiler_register_library_api_table("roctx", NULL, 701, tables, 3, &identifier),
		0);
	event_count = 0;
	other.roctxMarkA_fn("other");
	CHECK_EQUAL(event_count, 4);
	CHECK(!strcmp(other_mark, "other"));
	CHECK(last_mark == NULL);
	core.roctxMarkA_fn("one");
	CHECK(!strcmp(last_mark, "one"));
	CHECK(!strcmp(other_mark, "other"));
	CHECK_EQUAL(its_name.roctxNameOsThread_fn("four"), 4);
	event_count = 0;
	one = core.roctxRangeStartA_fn("of one");
	two = other.roctxRangeStartA_fn("of the other");
	CHECK_EQUAL(one, two);
	core.roctxRangeStop_fn(one);
	CHECK_EQUAL(ranges_only(seen), 3);
	CHECK_EQUAL(seen[0].record.correlation_id.internal, seen[2].record.correlation_id.internal);
	event_count = 0;
	other.roctxRangeStop_fn(two);
	CHECK_EQUAL(ranges_only(seen), 1);
	CHECK_EQUAL(seen[0].record.phase, ROCPROFILER_CALLBACK_PHASE_EXIT);
}

static void last_at_exit(void)
{
	CHECK_EQUAL(finalized, 1);
	CHECK_EQUAL(record_count, 33);
}

static void watermark_and_exit_checked(void)
{
	atexit(last_at_exit);
	watermark_and_exit();
}

static void test_calls(void **state)
{
	(void)state;
	scenario(calls_are_told);
}

static void test_ranges(void **state)
{
	(void)state;
	scenario(ranges_are_one_event);
}

static void test_watermark(void **state)
{
	(void)state;
	scenario(watermark_and_exit_checked);
}

static void test_two_copies(void **state)
{
	(void)state;
	scenario(two_copies);
}

static void test_late_tool(void **state)
{
	(void)state;
	scenario(a_runtime_before_the_tool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),      cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_watermark),  cmocka_unit_test(test_late_tool),
		cmocka_unit_test(test_two_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
