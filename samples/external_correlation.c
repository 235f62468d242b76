/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A tool in C that gives events numbers of its own. Ranges of the program are steps: each push of
 * one makes its number the id of everything within it, by a stack a thread; and marks get theirs by
 * a function that is asked for each. Records carry it; the tool compares.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

#define ASKED ((uint64_t)1 << 63)

static rocprofiler_context_id_t steps_context, records_context;
static rocprofiler_buffer_id_t buffer;
static atomic_uint_fast64_t last_step, asked;
static uint64_t by_stack, by_request, without;

#define CALL(call)                                                                                 \
	do {                                                                                       \
		rocprofiler_status_t status = (call);                                              \
		if (status != ROCPROFILER_STATUS_SUCCESS) {                                        \
			fprintf(stderr, "%s: %s\n", #call, rocprofiler_get_status_string(status)); \
			return -1;                                                                 \
		}                                                                                  \
	} while (0)

/* Pushed before the range begins and popped when it is over: its own record has the id as well. */
static void step(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		 void *data)
{
	rocprofiler_user_data_t id;

	(void)user_data;
	(void)data;
	if (record.operation == ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA &&
	    record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) {
		id.value = atomic_fetch_add(&last_step, 1) + 1;
		rocprofiler_push_external_correlation_id(records_context, record.thread_id, id);
	}
	if (record.operation == ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop &&
	    record.phase == ROCPROFILER_CALLBACK_PHASE_EXIT)
		rocprofiler_pop_external_correlation_id(records_context, record.thread_id, &id);
}

/* Only marks are answered for; the others have what was pushed. */
static int ask(rocprofiler_thread_id_t thread, rocprofiler_context_id_t context,
	       rocprofiler_external_correlation_id_request_kind_t kind,
	       rocprofiler_tracing_operation_t operation, uint64_t internal,
	       rocprofiler_user_data_t *external, void *data)
{
	(void)thread;
	(void)context;
	(void)kind;
	(void)data;
	if (operation != ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA)
		return 1;
	atomic_fetch_add(&asked, 1);
	external->value = ASKED | internal;
	return 0;
}

static void handed_over(rocprofiler_context_id_t context, rocprofiler_buffer_id_t id,
			rocprofiler_record_header_t **headers, size_t count, void *data,
			uint64_t drop_count)
{
	(void)context;
	(void)id;
	(void)data;
	(void)drop_count;
	for (size_t i = 0; i < count; i++) {
		const rocprofiler_buffer_tracing_marker_api_record_t *record = headers[i]->payload;
		uint64_t external = record->correlation_id.external.value;

		if (record->operation == ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA)
			by_request += external == (ASKED | record->correlation_id.internal);
		else if (external && external <= atomic_load(&last_step))
			by_stack++;
		else
			without++;
	}
}

static int initialize(rocprofiler_client_finalize_t finalize, void *data)
{
	static const rocprofiler_tracing_operation_t ranges[] = {
		ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA,
		ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop,
	};
	static const rocprofiler_external_correlation_id_request_kind_t markers =
		ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MARKER_CORE_API;

	(void)finalize;
	(void)data;
	CALL(rocprofiler_create_context(&steps_context));
	CALL(rocprofiler_create_context(&records_context));
	CALL(rocprofiler_configure_callback_tracing_service(
		steps_context, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API, ranges, 2, step,
		NULL));
	CALL(rocprofiler_create_buffer(records_context, 16384, 8192,
				       ROCPROFILER_BUFFER_POLICY_LOSSLESS, handed_over, NULL,
				       &buffer));
	CALL(rocprofiler_configure_buffer_tracing_service(
		records_context, ROCPROFILER_BUFFER_TRACING_MARKER_CORE_API, NULL, 0, buffer));
	CALL(rocprofiler_configure_external_correlation_id_request_service(records_context,
									   &markers, 1, ask, NULL));
	CALL(rocprofiler_start_context(records_context));
	CALL(rocprofiler_start_context(steps_context));
	return 0;
}

static void finalize(void *data)
{
	const char *path = getenv("SAMPLE_OUTPUT");
	FILE *output = path && *path ? fopen(path, "w") : stderr;

	(void)data;
	rocprofiler_flush_buffer(buffer);
	if (!output)
		return;
	fprintf(output, "steps %" PRIu64 "\nasked %" PRIu64 "\n", (uint64_t)atomic_load(&last_step),
		(uint64_t)atomic_load(&asked));
	fprintf(output, "by stack %" PRIu64 "\nby request %" PRIu64 "\nwithout %" PRIu64 "\n",
		by_stack, by_request, without);
	if (output != stderr)
		fclose(output);
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version,
							   const char *runtime_version,
							   uint32_t priority,
							   rocprofiler_client_id_t *client_id)
{
	static rocprofiler_tool_configure_result_t result = {
		sizeof(rocprofiler_tool_configure_result_t), initialize, finalize, NULL};

	(void)version;
	(void)runtime_version;
	(void)priority;
	client_id->name = "external correlation";
	return &result;
}
