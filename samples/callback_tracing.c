/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A tool in C that is called for each event, before and after it, on the thread where it happens:
 * marks and ranges with their arguments, kernels, copies, code objects, calls of OpenCL. It prints
 * a line for each event that is over, and a sum at the end, to the file that SAMPLE_OUTPUT names.
 *
 * Loaded as it is: LD_PRELOAD=callback_tracing.so or ROCP_TOOL_LIBRARIES=callback_tracing.so.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kymo/tools.h>
#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

struct tool {
	rocprofiler_context_id_t context;
	FILE *output;
	atomic_uint_fast64_t entered, left;
};

static struct tool tool;

#define CALL(call)                                                                                 \
	do {                                                                                       \
		rocprofiler_status_t status = (call);                                              \
		if (status != ROCPROFILER_STATUS_SUCCESS) {                                        \
			fprintf(stderr, "%s: %s\n", #call, rocprofiler_get_status_string(status)); \
			return -1;                                                                 \
		}                                                                                  \
	} while (0)

struct line {
	char text[512];
	size_t used;
};

static int add_argument(rocprofiler_callback_tracing_kind_t kind,
			rocprofiler_tracing_operation_t operation, uint32_t number,
			const void *const address, int32_t indirections, const char *type,
			const char *name, const char *value, int32_t dereferences, void *data)
{
	struct line *line = data;
	int written;

	(void)kind;
	(void)operation;
	(void)address;
	(void)indirections;
	(void)type;
	(void)dereferences;
	written = snprintf(line->text + line->used, sizeof(line->text) - line->used, "%s%s=%s",
			   number ? ", " : "", name, value);
	if (written > 0 && (size_t)written < sizeof(line->text) - line->used)
		line->used += (size_t)written;
	return 0;
}

/* user_data is this event's own: what is put there before comes back after it. */
static void traced(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		   void *data)
{
	struct line line = {.used = 0};
	const char *kind = NULL, *operation = NULL;
	rocprofiler_timestamp_t now = 0;

	(void)data;
	rocprofiler_get_timestamp(&now);
	if (record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) {
		atomic_fetch_add(&tool.entered, 1);
		user_data->value = now;
		return;
	}
	if (record.phase == ROCPROFILER_CALLBACK_PHASE_EXIT)
		atomic_fetch_add(&tool.left, 1);
	rocprofiler_query_callback_tracing_kind_name(record.kind, &kind, NULL);
	rocprofiler_query_callback_tracing_kind_operation_name(record.kind, record.operation,
							       &operation, NULL);
	rocprofiler_iterate_callback_tracing_kind_operation_args(record, add_argument, 1, &line);
	fprintf(tool.output, "%s %s(%s) thread=%" PRIu64 " id=%" PRIu64 " %s\n", kind, operation,
		line.text, record.thread_id, record.correlation_id.internal,
		record.phase == ROCPROFILER_CALLBACK_PHASE_NONE || user_data->value <= now
			? "ok"
			: "time runs backwards");
}

static int initialize(rocprofiler_client_finalize_t finalize, void *data)
{
	static const rocprofiler_callback_tracing_kind_t kinds[] = {
		ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API,
		ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API,
		ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT,
		ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH,
		ROCPROFILER_CALLBACK_TRACING_MEMORY_COPY,
		KYMO_CALLBACK_TRACING_OPENCL_API,
	};

	(void)finalize;
	(void)data;
	CALL(rocprofiler_create_context(&tool.context));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		CALL(rocprofiler_configure_callback_tracing_service(tool.context, kinds[i], NULL, 0,
								    traced, NULL));
	CALL(rocprofiler_start_context(tool.context));
	return 0;
}

static void finalize(void *data)
{
	(void)data;
	fprintf(tool.output, "entered %" PRIu64 ", left %" PRIu64 "\n",
		(uint64_t)atomic_load(&tool.entered), (uint64_t)atomic_load(&tool.left));
	fflush(tool.output);
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version,
							   const char *runtime_version,
							   uint32_t priority,
							   rocprofiler_client_id_t *client_id)
{
	static rocprofiler_tool_configure_result_t result = {
		sizeof(rocprofiler_tool_configure_result_t), initialize, finalize, NULL};
	const char *path = getenv("SAMPLE_OUTPUT");

	(void)priority;
	client_id->name = "callback tracing";
	tool.output = path && *path ? fopen(path, "w") : stderr;
	if (!tool.output) {
		perror(path);
		return NULL;
	}
	fprintf(tool.output, "%s with version %u (%s)\n", client_id->name, version,
		runtime_version);
	return &result;
}
