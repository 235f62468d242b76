/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The full sample of rocprofiler_configure() in the documentation of ROCprofiler-SDK, in C.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <rocprofiler-sdk/registration.h>

struct rocp_tool_data {
	uint32_t version;
	const char *runtime_version;
	uint32_t priority;
	rocprofiler_client_id_t *client_id;
	rocprofiler_client_finalize_t finalizer;
	rocprofiler_context_id_t contexts[8];
	size_t contexts_count;
};

static atomic_uint loads, unloads, kernels, marks;

static void tool_tracing_callback(rocprofiler_callback_tracing_record_t record,
				  rocprofiler_user_data_t *user_data, void *callback_data)
{
	(void)user_data;
	(void)callback_data;
	if (record.kind == ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API)
		atomic_fetch_add(&marks, record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER);
	else if (record.operation == ROCPROFILER_CODE_OBJECT_LOAD)
		atomic_fetch_add(
			record.phase == ROCPROFILER_CALLBACK_PHASE_LOAD ? &loads : &unloads, 1);
	else if (record.phase == ROCPROFILER_CALLBACK_PHASE_LOAD)
		atomic_fetch_add(&kernels, 1);
}

static int tool_init(rocprofiler_client_finalize_t fini_func, void *tool_data_v)
{
	struct rocp_tool_data *tool_data = tool_data_v;
	rocprofiler_context_id_t ctx = {0};

	tool_data->finalizer = fini_func;
	rocprofiler_create_context(&ctx);
	tool_data->contexts[tool_data->contexts_count++] = ctx;
	rocprofiler_configure_callback_tracing_service(ctx,
						       ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT,
						       NULL, 0, tool_tracing_callback, tool_data);
	rocprofiler_configure_callback_tracing_service(ctx,
						       ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API,
						       NULL, 0, tool_tracing_callback, tool_data);
	rocprofiler_start_context(ctx);
	return 0;
}

static void tool_fini(void *tool_data_v)
{
	struct rocp_tool_data *tool_data = tool_data_v;
	const char *path = getenv("SAMPLE_OUTPUT");
	FILE *output = path && *path ? fopen(path, "w") : stderr;

	if (output) {
		fprintf(output, "%s: version %u (%s), %zu context\n", tool_data->client_id->name,
			tool_data->version, tool_data->runtime_version, tool_data->contexts_count);
		fprintf(output, "code objects %u, unloaded %u, kernels %u, marks %u\n", loads,
			unloads, kernels, marks);
		if (output != stderr)
			fclose(output);
	}
	free(tool_data);
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version,
							   const char *runtime_version,
							   uint32_t priority,
							   rocprofiler_client_id_t *client_id)
{
	static rocprofiler_tool_configure_result_t cfg = {
		sizeof(rocprofiler_tool_configure_result_t), tool_init, tool_fini, NULL};
	struct rocp_tool_data *my_tool_data;

	if (priority > 0)
		return NULL;
	client_id->name = "ExampleTool";
	my_tool_data = calloc(1, sizeof(*my_tool_data));
	if (!my_tool_data)
		return NULL;
	my_tool_data->version = version;
	my_tool_data->runtime_version = runtime_version;
	my_tool_data->priority = priority;
	my_tool_data->client_id = client_id;
	cfg.tool_data = my_tool_data;
	return &cfg;
}
