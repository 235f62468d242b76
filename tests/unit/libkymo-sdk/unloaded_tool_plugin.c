/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See unloaded_tool.c.
 */
#include <dlfcn.h>

#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

#include "unloaded_tool.h"

void unloaded_share(struct unloaded_shared *given);
int unloaded_initialize(rocprofiler_client_finalize_t finalizer, void *data);

static struct unloaded_shared *shared;

void unloaded_share(struct unloaded_shared *given)
{
	shared = given;
}

static void tell(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		 void *data)
{
	(void)user_data;
	(void)data;
	if (record.phase != ROCPROFILER_CALLBACK_PHASE_ENTER)
		return;
	for (int i = 0; shared->own_handle && i < 20; i++)
		dlclose(shared->own_handle);
	shared->own_handle = NULL;
	shared->marks++;
}

int unloaded_initialize(rocprofiler_client_finalize_t finalizer, void *data)
{
	static const rocprofiler_tracing_operation_t only[] = {
		ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA};
	rocprofiler_context_id_t context = {0};

	(void)finalizer;
	(void)data;
	return rocprofiler_create_context(&context) ||
	       rocprofiler_configure_callback_tracing_service(
		       context, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API, only, 1, tell,
		       NULL) ||
	       rocprofiler_start_context(context);
}

static void finalize(void *data)
{
	(void)data;
	shared->finalized++;
}

rocprofiler_tool_configure_result_t *rocprofiler_configure(uint32_t version,
							   const char *runtime_version,
							   uint32_t priority,
							   rocprofiler_client_id_t *client_id)
{
	static rocprofiler_tool_configure_result_t result = {sizeof(result), unloaded_initialize,
							     finalize, NULL};

	(void)version;
	(void)runtime_version;
	(void)priority;
	client_id->name = "unloaded";
	return &result;
}
