/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * OpenMP's reports as events: a stand-in for its runtime calls what was set. tests/e2e/samples.py
 * has a real one.
 */
#include "scenario.h"

#include <pthread.h>

#include <rocprofiler-sdk/ompt.h>

static ompt_callback_t set[64];
static rocprofiler_context_id_t context;
static rocprofiler_buffer_id_t buffer;
static unsigned phases[ROCPROFILER_OMPT_ID_LAST][ROCPROFILER_CALLBACK_PHASE_LAST];
static unsigned records[ROCPROFILER_OMPT_ID_LAST];
static uint64_t last_bytes, entered_id, left_id;
static ompt_get_num_procs_t told_num_procs;

static ompt_set_result_t runtime_set(ompt_callbacks_t event, ompt_callback_t callback)
{
	set[event] = callback;
	return ompt_set_always;
}

static int runtime_num_procs(void)
{
	return 12;
}

static ompt_interface_fn_t runtime_lookup(const char *name)
{
	if (!strcmp(name, "ompt_set_callback"))
		return (ompt_interface_fn_t)runtime_set;
	if (!strcmp(name, "ompt_get_num_procs"))
		return (ompt_interface_fn_t)runtime_num_procs;
	return NULL;
}

static ompt_interface_fn_t runtime_lookup_nothing(const char *name)
{
	(void)name;
	return NULL;
}

static void traced(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		   void *data)
{
	const rocprofiler_callback_tracing_ompt_data_t *ompt = record.payload;

	(void)data;
	CHECK(record.kind == ROCPROFILER_CALLBACK_TRACING_OMPT && ompt->size == sizeof(*ompt));
	CHECK(record.correlation_id.internal);
	phases[record.operation][record.phase]++;
	if (record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER)
		user_data->value = record.correlation_id.internal;
	if (record.phase == ROCPROFILER_CALLBACK_PHASE_EXIT)
		CHECK_EQUAL(user_data->value, record.correlation_id.internal);
	if (record.operation == ROCPROFILER_OMPT_ID_callback_functions)
		told_num_procs = ompt->args.callback_functions.ompt_get_num_procs;
	if (record.operation == ROCPROFILER_OMPT_ID_work) {
		CHECK_EQUAL(ompt->args.work.count, 100);
		*(record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER ? &entered_id : &left_id) =
			record.correlation_id.internal;
	}
}

static void handed_over(rocprofiler_context_id_t id, rocprofiler_buffer_id_t from,
			rocprofiler_record_header_t **headers, size_t count, void *data,
			uint64_t dropped)
{
	(void)id;
	(void)from;
	(void)data;
	CHECK_EQUAL(dropped, 0);
	for (size_t i = 0; i < count; i++) {
		const rocprofiler_buffer_tracing_ompt_record_t *record = headers[i]->payload;

		CHECK(headers[i]->kind == ROCPROFILER_BUFFER_TRACING_OMPT);
		CHECK_EQUAL(record->size, sizeof(*record));
		CHECK(record->start_timestamp && record->start_timestamp <= record->end_timestamp);
		records[record->operation]++;
		if (record->operation == ROCPROFILER_OMPT_ID_target_data_op_emi)
			last_bytes = record->target_data_op.bytes;
	}
}

static int initialize(rocprofiler_client_finalize_t finalize, void *data)
{
	(void)finalize;
	(void)data;
	OK(rocprofiler_create_context(&context));
	OK(rocprofiler_create_buffer(context, 65536, 65536, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     handed_over, NULL, &buffer));
	OK(rocprofiler_configure_callback_tracing_service(
		context, ROCPROFILER_CALLBACK_TRACING_OMPT, NULL, 0, traced, NULL));
	OK(rocprofiler_configure_buffer_tracing_service(context, ROCPROFILER_BUFFER_TRACING_OMPT,
							NULL, 0, buffer));
	OK(rocprofiler_start_context(context));
	return 0;
}

static rocprofiler_tool_configure_result_t *configure(uint32_t version, const char *runtime_version,
						      uint32_t priority,
						      rocprofiler_client_id_t *id)
{
	static rocprofiler_tool_configure_result_t result = {
		sizeof(rocprofiler_tool_configure_result_t), initialize, NULL, NULL};

	(void)version;
	(void)runtime_version;
	(void)priority;
	id->name = "ompt";
	return &result;
}

static ompt_start_tool_result_t *start(void)
{
	ompt_start_tool_result_t *result;

	OK(rocprofiler_force_configure(configure));
	result = rocprofiler_ompt_start_tool(202011, "a stand-in");
	CHECK(result && result->initialize && result->finalize);
	return result;
}

#define CALLED(event, type) ((ompt_callback_##type##_t)set[ompt_callback_##event])

typedef void (*ompt_callback_work_t)(ompt_work_t, ompt_scope_endpoint_t, ompt_data_t *,
				     ompt_data_t *, uint64_t, const void *);
typedef void (*ompt_callback_flush_t)(ompt_data_t *, const void *);
typedef void (*ompt_callback_sync_region_t)(ompt_sync_region_t, ompt_scope_endpoint_t,
					    ompt_data_t *, ompt_data_t *, const void *);
typedef void (*ompt_callback_target_data_op_emi_t)(ompt_scope_endpoint_t, ompt_data_t *,
						   ompt_data_t *, ompt_id_t *,
						   ompt_target_data_op_t, void *, int, void *, int,
						   size_t, const void *);

static void work(ompt_scope_endpoint_t endpoint)
{
	CALLED(work, work)(ompt_work_loop, endpoint, NULL, NULL, 100, NULL);
}

static void sync_region(ompt_scope_endpoint_t endpoint)
{
	CALLED(sync_region, sync_region)(ompt_sync_region_barrier, endpoint, NULL, NULL, NULL);
}

static void reports_become_events_body(void)
{
	ompt_start_tool_result_t *result = start();
	int status = 9;

	OK(rocprofiler_ompt_is_initialized(&status));
	CHECK_EQUAL(status, -1);
	CHECK_EQUAL(result->initialize(runtime_lookup, 0, &result->tool_data), 1);
	OK(rocprofiler_ompt_is_initialized(&status));
	CHECK_EQUAL(status, 1);
	CHECK(told_num_procs && told_num_procs() == 12);
	/* At once, in scopes, and both ends in one. */
	CALLED(flush, flush)(NULL, NULL);
	work(ompt_scope_begin);
	sync_region(ompt_scope_begin);
	sync_region(ompt_scope_begin);
	sync_region(ompt_scope_end);
	sync_region(ompt_scope_end);
	work(ompt_scope_end);
	CHECK(entered_id && entered_id == left_id);
	CALLED(target_data_op_emi, target_data_op_emi)
	(ompt_scope_beginend, NULL, NULL, NULL, ompt_target_data_alloc, NULL, 0, NULL, 1, 4096,
	 NULL);
	CHECK_EQUAL(phases[ROCPROFILER_OMPT_ID_flush][ROCPROFILER_CALLBACK_PHASE_NONE], 1);
	CHECK_EQUAL(phases[ROCPROFILER_OMPT_ID_work][ROCPROFILER_CALLBACK_PHASE_ENTER], 1);
	CHECK_EQUAL(phases[ROCPROFILER_OMPT_ID_work][ROCPROFILER_CALLBACK_PHASE_EXIT], 1);
	CHECK_EQUAL(phases[ROCPROFILER_OMPT_ID_sync_region][ROCPROFILER_CALLBACK_PHASE_EXIT], 2);
	CHECK_EQUAL(
		phases[ROCPROFILER_OMPT_ID_target_data_op_emi][ROCPROFILER_CALLBACK_PHASE_ENTER],
		1);
	CHECK_EQUAL(phases[ROCPROFILER_OMPT_ID_target_data_op_emi][ROCPROFILER_CALLBACK_PHASE_EXIT],
		    1);
	OK(rocprofiler_flush_buffer(buffer));
	CHECK_EQUAL(records[ROCPROFILER_OMPT_ID_flush], 1);
	CHECK_EQUAL(records[ROCPROFILER_OMPT_ID_work], 1);
	CHECK_EQUAL(records[ROCPROFILER_OMPT_ID_sync_region], 2);
	CHECK_EQUAL(last_bytes, 4096);
	OK(rocprofiler_ompt_is_finalized(&status));
	CHECK_EQUAL(status, 0);
	result->finalize(&result->tool_data);
	OK(rocprofiler_ompt_is_finalized(&status));
	CHECK_EQUAL(status, 1);
}

static void reports_become_events(void **state)
{
	(void)state;
	scenario(reports_become_events_body);
}

static void *ends_elsewhere(void *nothing)
{
	work(ompt_scope_end);
	return nothing;
}

/* Scopes of which nobody heard the begin, or that end on another thread. */
static void ends_without_begins_body(void)
{
	ompt_start_tool_result_t *result = start();
	pthread_t thread;

	CHECK_EQUAL(result->initialize(runtime_lookup, 0, &result->tool_data), 1);
	OK(rocprofiler_stop_context(context));
	work(ompt_scope_begin);
	OK(rocprofiler_start_context(context));
	work(ompt_scope_begin);
	work(ompt_scope_end);
	work(ompt_scope_end);
	work(ompt_scope_end);
	CHECK_EQUAL(phases[ROCPROFILER_OMPT_ID_work][ROCPROFILER_CALLBACK_PHASE_ENTER], 1);
	CHECK_EQUAL(phases[ROCPROFILER_OMPT_ID_work][ROCPROFILER_CALLBACK_PHASE_EXIT], 1);
	work(ompt_scope_begin);
	CHECK(!pthread_create(&thread, NULL, ends_elsewhere, NULL));
	pthread_join(thread, NULL);
	CHECK_EQUAL(phases[ROCPROFILER_OMPT_ID_work][ROCPROFILER_CALLBACK_PHASE_EXIT], 1);
	/* Begun while somebody wanted it: its end is told although nobody does any more. */
	OK(rocprofiler_stop_context(context));
	work(ompt_scope_end);
	CHECK_EQUAL(phases[ROCPROFILER_OMPT_ID_work][ROCPROFILER_CALLBACK_PHASE_EXIT], 2);
}

static void ends_without_begins(void **state)
{
	(void)state;
	scenario(ends_without_begins_body);
}

static void misuse_is_refused_body(void)
{
	ompt_start_tool_result_t *result;
	int status = 9;

	REFUSED(rocprofiler_ompt_is_initialized(NULL), INVALID_ARGUMENT);
	REFUSED(rocprofiler_ompt_is_finalized(NULL), INVALID_ARGUMENT);
	OK(rocprofiler_ompt_is_initialized(&status));
	CHECK_EQUAL(status, 0);
	result = start();
	/* The process has one runtime. */
	CHECK(!rocprofiler_ompt_start_tool(202011, NULL));
	CHECK_EQUAL(result->initialize(runtime_lookup_nothing, 0, &result->tool_data), 0);
	OK(rocprofiler_ompt_is_initialized(&status));
	CHECK_EQUAL(status, 0);
}

static void misuse_is_refused(void **state)
{
	(void)state;
	scenario(misuse_is_refused_body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_become_events),
		cmocka_unit_test(ends_without_begins),
		cmocka_unit_test(misuse_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
