/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A tool that writes a line for each call of HSA to the file that TOOL_OUTPUT names, and at the end
 * the agents that there are.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

static FILE *output;

static void traced(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		   void *data)
{
	const char *name = "?";

	(void)user_data;
	(void)data;
	rocprofiler_query_callback_tracing_kind_operation_name(record.kind, record.operation, &name,
							       NULL);
	if (record.kind == ROCPROFILER_CALLBACK_TRACING_RUNTIME_INITIALIZATION)
		fprintf(output, "%s\n", name);
	else if (record.phase == ROCPROFILER_CALLBACK_PHASE_EXIT)
		fprintf(output, "%s ancestor=%d status=%d\n", name,
			record.correlation_id.ancestor != 0,
			(int)((rocprofiler_callback_tracing_hsa_api_data_t *)record.payload)
				->retval.hsa_status_t_retval);
}

static int initialize(rocprofiler_client_finalize_t finalizer, void *data)
{
	rocprofiler_context_id_t context = {0};
	int failed;

	(void)finalizer;
	(void)data;
	failed = rocprofiler_create_context(&context) ||
		 rocprofiler_configure_callback_tracing_service(
			 context, ROCPROFILER_CALLBACK_TRACING_HSA_CORE_API, NULL, 0, traced,
			 NULL) ||
		 rocprofiler_configure_callback_tracing_service(
			 context, ROCPROFILER_CALLBACK_TRACING_RUNTIME_INITIALIZATION, NULL, 0,
			 traced, NULL) ||
		 rocprofiler_start_context(context);
	return failed ? -1 : 0;
}

static rocprofiler_status_t print_agents(rocprofiler_agent_version_t version, const void **agents,
					 size_t count, void *data)
{
	(void)version;
	(void)data;
	for (size_t i = 0; i < count; i++) {
		const rocprofiler_agent_v0_t *agent = agents[i];

		if (agent->type == ROCPROFILER_AGENT_TYPE_GPU)
			fprintf(output, "agent %s visible=%u\n", agent->name,
				agent->runtime_visibility.hsa || agent->runtime_visibility.hip);
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

static void finalize(void *data)
{
	(void)data;
	rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, print_agents,
					   sizeof(rocprofiler_agent_v0_t), NULL);
	fclose(output);
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version, const char *text,
							   uint32_t priority,
							   rocprofiler_client_id_t *id)
{
	static rocprofiler_tool_configure_result_t result = {sizeof(result), initialize, finalize,
							     NULL};
	const char *path = getenv("TOOL_OUTPUT");

	(void)version;
	(void)text;
	(void)priority;
	id->name = "calls of HSA";
	output = path ? fopen(path, "w") : NULL;
	return output ? &result : NULL;
}
